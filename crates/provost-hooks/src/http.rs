//! Asks a server: one POST, and its response.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use provost_harness::Clock;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use tokio_util::sync::CancellationToken;

/// Maximum bytes of a response; a longer one counts as none.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;
/// An idle connection is closed before common load balancers close it.
const IDLE_MAX: Duration = Duration::from_secs(55);

/// An address to ask.
#[derive(Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(String, String)],
    /// The variables that headers may name.
    pub(crate) allowed_env: &'a [String],
    pub(crate) timeout: Duration,
}

/// Posts questions.
pub(crate) struct Poster {
    clock: Arc<dyn Clock>,
    /// Values of the variables that headers may name, if the policy allows the name too.
    header_env: HashMap<String, String>,
    /// For servers on this machine: no proxy, and no certificates, which take tens of milliseconds to load.
    near: OnceLock<Client>,
    far: OnceLock<Client>,
}

/// The body of a successful response.
pub(crate) enum Body {
    Whole(String),
    /// It exceeds the maximum, in words.
    TooLong(String),
}

impl Poster {
    pub(crate) const fn new(clock: Arc<dyn Clock>, header_env: HashMap<String, String>) -> Self {
        Self { clock, header_env, near: OnceLock::new(), far: OnceLock::new() }
    }

    /// Posts `question` and returns the body of a successful response.
    ///
    /// # Errors
    /// Why there is no successful response, without the values of headers.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns at once.
    pub(crate) async fn ask(
        &self,
        address: Address<'_>,
        question: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<Body, String> {
        let late = self.clock.sleep(address.timeout);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err("cancelled".to_owned()),
            answer = self.post(address, question) => answer,
            () = late => Err(format!("no answer within {} s", address.timeout.as_secs_f32())),
        }
    }

    async fn post(&self, address: Address<'_>, question: Vec<u8>) -> Result<Body, String> {
        let url = parse(address.url)?;
        let place = place(&url);
        let headers = self.headers(address)?;
        let client = self.client(&url)?;
        let request = client.post(url).headers(headers).body(question);
        let response = request.send().await.map_err(|error| format!("{place}: {}", causes(error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("{place} answered with HTTP {status}"));
        }
        read(response, &place).await
    }

    fn headers(&self, address: Address<'_>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in address.headers {
            let bad = || {
                format!("the header `{name}` can't be sent: its name or value has characters that don't go")
            };
            let value = filled(value, |variable| self.variable(address, variable));
            let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
        }
        Ok(headers)
    }

    fn variable(&self, address: Address<'_>, name: &str) -> &str {
        let allowed = address.allowed_env.iter().any(|one| one == name);
        self.header_env.get(name).filter(|_| allowed).map_or("", String::as_str)
    }

    fn client(&self, url: &Url) -> Result<Client, String> {
        let is_tls = url.scheme() == "https";
        match (is_loopback(url), is_tls) {
            (true, false) => kept(&self.near, || client().no_proxy().tls_built_in_root_certs(false)),
            (true, true) => client().no_proxy().build().map_err(causes),
            (false, _) => kept(&self.far, client),
        }
    }
}

fn kept(place: &OnceLock<Client>, make: impl Fn() -> reqwest::ClientBuilder) -> Result<Client, String> {
    if let Some(client) = place.get() {
        return Ok(client.clone());
    }
    let client = make().build().map_err(causes)?;
    Ok(place.get_or_init(|| client).clone())
}

fn client() -> reqwest::ClientBuilder {
    // A redirect would send the question and its headers to another host.
    Client::builder().redirect(redirect::Policy::none()).pool_idle_timeout(IDLE_MAX).tcp_nodelay(true)
}

/// Checks an address from the settings.
pub(crate) fn parse(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url.trim()).map_err(|error| format!("its `url` is no address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("its `url` doesn't begin with http:// or https://".to_owned());
    }
    Ok(parsed)
}

/// Host and port, for display.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

async fn read(mut response: Response, place: &str) -> Result<Body, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| format!("{place}: {}", causes(error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > BODY_BYTES_MAX {
            return Ok(Body::TooLong(format!("the answer of {place} is longer than {BODY_BYTES_MAX} bytes")));
        }
    }
    Ok(Body::Whole(String::from_utf8_lossy(&body).into_owned()))
}

/// The chain of causes; without the address, which may contain a password.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// `text` with `$NAME` and `${NAME}` replaced.
fn filled<'a>(text: &str, value: impl Fn(&str) -> &'a str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let (name, behind) = braced.unwrap_or_else(|| {
            let end = after.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
            after.split_at(end.unwrap_or(after.len()))
        });
        let is_name = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
        if is_name {
            out.push_str(value(name));
            rest = behind;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn variables_of_headers_are_filled_in_both_forms() {
        let fill = |text| filled(text, |name| if name == "TOKEN" { "secret$X" } else { "" });
        assert_eq!(fill("Bearer $TOKEN"), "Bearer secret$X");
        assert_eq!(fill("${TOKEN}-$TOKEN.x"), "secret$X-secret$X.x");
        assert_eq!(fill("$OTHER|${OTHER}|"), "||");
        assert_eq!(fill("5$ and $1 and ${"), "5$ and $1 and ${");
    }
}
