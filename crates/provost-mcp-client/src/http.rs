//! Messages to and from an address, by streamable HTTP.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use mcp_reqwest::header::{HeaderName, HeaderValue};
use mcp_reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthError};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpClientTransportConfig,
};
use secrecy::{ExposeSecret as _, SecretString};

use crate::oauth;
use crate::setup::LoginSetup;
use crate::shown::revealed;
use crate::stdio::{MESSAGE_BYTES_MAX, with_causes};

pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Scopes that a server wants, and bytes of each.
const SCOPES_MAX: usize = 20;
const SCOPE_BYTES_MAX: usize = 200;
/// Characters of others' texts in errors.
const TEXT_CHARS_MAX: usize = 500;

/// The transport to an address.
pub(crate) enum HttpTransport {
    /// Without a login.
    Plain(StreamableHttpClientTransport<mcp_reqwest::Client>),
    /// With the user's.
    LoggedIn(StreamableHttpClientTransport<AuthClient<mcp_reqwest::Client>>),
}

impl HttpTransport {
    /// The transport to `url`.
    ///
    /// # Errors
    /// When a header isn't one, or the login can't be read.
    pub(crate) async fn new(
        url: &str,
        headers: &[(String, SecretString)],
        login: &LoginSetup,
    ) -> Result<Self, String> {
        // One that is there stays; all of this process are the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // An address that sends elsewhere would get the headers sent there too.
        let client = mcp_reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_MAX)
            .build()
            .map_err(|error| with_causes(&error))?;
        let mut custom = HashMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("{name} is no name of a header"))?;
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                format!("the value for the header {name} has characters that no header may have")
            })?;
            value.set_sensitive(true);
            custom.insert(name, value);
        }
        // What the settings send is the user's word.
        let manager = if custom.contains_key(&mcp_reqwest::header::AUTHORIZATION) {
            None
        } else {
            oauth::authorized(url, login).await?
        };
        Ok(match manager {
            Some(manager) => Self::LoggedIn(transport(AuthClient::new(client, manager), url, custom)),
            None => Self::Plain(transport(client, url, custom)),
        })
    }
}

fn transport<C: StreamableHttpClient + Sync>(
    client: C,
    url: &str,
    headers: HashMap<HeaderName, HeaderValue>,
) -> StreamableHttpClientTransport<C> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = headers;
    config.max_sse_event_size = MESSAGE_BYTES_MAX;
    config.max_json_response_size = MESSAGE_BYTES_MAX;
    StreamableHttpClientTransport::with_client(client, config)
}

/// What is wrong with the login, if that is why a request wasn't taken, with the remedy.
pub(crate) fn login_trouble(error: &(dyn Error + 'static), server: &str) -> Option<String> {
    std::iter::successors(Some(error), |error| (**error).source()).find_map(|cause| trouble(cause, server))
}

fn trouble(cause: &(dyn Error + 'static), server: &str) -> Option<String> {
    if cause.is::<AuthRequiredError>() {
        return Some(format!("the user must log in there: `provost mcp login {server}`"));
    }
    if let Some(lacks) = cause.downcast_ref::<InsufficientScopeError>() {
        let scopes = scopes_of(lacks.get_required_scope().unwrap_or_default());
        let flags = scopes.iter().map(|scope| format!(" --scope {scope}")).collect::<String>();
        let scopes = scopes.join(" ");
        return Some(format!(
            "the user's login there doesn't allow that, it lacks the scope {scopes}: `provost mcp login {server}{flags}`"
        ));
    }
    match cause.downcast_ref::<AuthError>()? {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            Some(format!("the user's login there is over: `provost mcp login {server}`"))
        }
        error => {
            let why = revealed(&with_causes(error)).chars().take(TEXT_CHARS_MAX).collect::<String>();
            Some(format!("the user's login there can't be renewed: {why}"))
        }
    }
}

/// The scopes that a server wants, each as RFC 6749 (3.3) has them; a user copies them into a command.
fn scopes_of(text: &str) -> Vec<String> {
    let is_scope = |scope: &&str| {
        scope.len() <= SCOPE_BYTES_MAX
            && scope.chars().all(|c| c.is_ascii_alphanumeric() || "-._:/@+,=".contains(c))
            && !scope.starts_with('-')
    };
    text.split_whitespace().filter(is_scope).take(SCOPES_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::scopes_of;

    #[test]
    fn scopes_that_would_be_something_else_in_a_shell_are_left_out() {
        assert_eq!(scopes_of("issues:read https://a.example/b.c"), ["issues:read", "https://a.example/b.c"]);
        assert_eq!(scopes_of("a$(id) b;rm `x` --paste c'd e\u{1b}[m ok"), ["ok"]);
        assert!(scopes_of(&"x".repeat(300)).is_empty());
    }
}
