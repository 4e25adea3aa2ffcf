//! Posts one JSON document to an address of the user's.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use crate::transport::{client, innermost};
use reqwest::Url;

/// Posts `body` with these headers, and no redirect is followed. Succeeds with a status of success; the answer's body
/// isn't read.
///
/// # Errors
/// Why not, without the address's path and query and the headers' values, which may hold secrets.
///
/// # Cancellation
/// The request may have arrived.
pub async fn post_json(
    address: &str,
    headers: &[(String, SecretString)],
    body: Vec<u8>,
    within: Duration,
) -> Result<(), String> {
    let url = Url::parse(address.trim()).map_err(|error| format!("the address is none: {error}"))?;
    let place = url.host_str().unwrap_or_default().to_owned();
    let mut all = HeaderMap::new();
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let bad = || format!("the header `{name}` can't be sent");
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| bad())?;
        value.set_sensitive(true);
        all.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    let client = client(&url, within).map_err(|error| error.to_string())?;
    let answer = client.post(url).headers(all).body(body).send().await.map_err(|error| {
        if error.is_timeout() {
            format!("{place} didn't answer in time")
        } else {
            format!("no connection to {place}: {}", innermost(&error.without_url()))
        }
    })?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("{place} answered HTTP {}", status.as_u16())),
    }
}
