//! A provider's key: used in one header and nowhere else.

use provost_harness::Redactor;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::KeyFilter;

/// The replacement for the key in texts.
const HIDDEN: &str = "[key]";

pub(crate) struct Key(SecretString);

impl Key {
    /// Takes `secret` without surrounding white space, which key files tend to end with. No secret is an empty
    /// key.
    pub(crate) fn new(secret: Option<&SecretString>) -> Self {
        Self(secret.map(|secret| secret.expose_secret().trim()).unwrap_or_default().into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.expose_secret().is_empty()
    }

    /// The key as a header value after `scheme`, marked as sensitive; `None` if it isn't a valid one.
    pub(crate) fn header(&self, scheme: &str) -> Option<HeaderValue> {
        let value = SecretString::from(format!("{scheme}{}", self.0.expose_secret()));
        let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `text` without the key: some servers repeat it in their errors. A key that is too short to be distinguished
    /// from parts of words stays.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let key = self.0.expose_secret();
        if Redactor::is_too_short(key) { text.to_owned() } else { text.replace(key, HIDDEN) }
    }

    /// The same for bytes that pass in pieces.
    pub(crate) fn filter(&self) -> KeyFilter {
        let is_distinct = !Redactor::is_too_short(self.0.expose_secret());
        KeyFilter::new(if is_distinct { self.0.clone() } else { SecretString::default() })
    }
}
