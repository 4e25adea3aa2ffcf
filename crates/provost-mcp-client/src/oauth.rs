//! Logins of the user at addresses: OAuth, with tokens in a file that only the user reads.
//!
//! The protocol is `rmcp`'s: discovery (RFC 9728, RFC 8414), registration (RFC 7591), PKCE (RFC 7636), the resource
//! that a token is for (RFC 8707), the issuer of an answer (RFC 9207), renewal.

mod browser;
mod file;
mod pending;

use std::time::Duration;

use mcp_reqwest::Url;
use mcp_reqwest::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use provost_event::Timestamp;
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};
use secrecy::ExposeSecret as _;

pub(crate) use file::tokens;
pub use pending::{LoginRequest, PendingLogin};

use crate::setup::LoginSetup;
use crate::shown::revealed;
use crate::stdio::with_causes;
use crate::{Reach, ServerSetup};

/// How long the revocation of a token may take.
const REVOKE_MAX: Duration = Duration::from_secs(5);
/// Characters of others' texts in errors.
const TEXT_CHARS_MAX: usize = 1_000;

/// A login can't be made, read or ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no login at the MCP server {server}: {why}")]
pub struct LoginError {
    /// The server.
    pub server: String,
    /// Why.
    pub why: String,
}

/// A login, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// When the token came.
    pub at: Option<Timestamp>,
    /// When the token expires; `None` if the authorization server didn't say.
    pub expires_at: Option<Timestamp>,
    /// Whether the token is renewed without the user.
    pub renews: bool,
    /// The scopes that were granted, as far as known.
    pub scopes: Vec<String>,
    /// The authorization server.
    pub issuer: Option<String>,
}

impl Login {
    /// The login of the user at the server; `None` if there is none at its address.
    ///
    /// # Errors
    /// When its file can't be read.
    pub fn read(setup: &ServerSetup) -> Result<Option<Self>, LoginError> {
        let Reach::Http { url, login, .. } = &setup.reach else { return Ok(None) };
        let kept = file::read(&login.file, url).map_err(|why| error(setup, why))?;
        Ok(kept.and_then(|kept| kept.login()))
    }

    /// Ends the login of the user at the server: its file is removed, and the authorization server is told to forget the
    /// token where it says how. Returns `None` if there was no login, and else whether it was told.
    ///
    /// # Errors
    /// When the file can't be removed.
    pub async fn end(setup: &ServerSetup) -> Result<Option<bool>, LoginError> {
        let Reach::Http { url, login, .. } = &setup.reach else { return Ok(None) };
        // One that can't be read is removed all the same.
        let kept = file::read(&login.file, url).unwrap_or_default();
        let was_there = file::remove(&login.file).map_err(|why| error(setup, why))?;
        let told = match kept {
            Some(kept) => revoked(&kept, login).await,
            None => false,
        };
        Ok(was_there.then_some(told))
    }
}

fn error(setup: &ServerSetup, why: impl Into<String>) -> LoginError {
    LoginError { server: setup.name.clone(), why: why.into() }
}

/// Text of an error of others, for people.
fn shown(error: &dyn std::error::Error) -> String {
    revealed(&with_causes(error)).replace('\n', "\\n").chars().take(TEXT_CHARS_MAX).collect()
}

/// What authorizes the requests to `url` by the login of the user; `None` without one, and where the address names another
/// authorization server now. Where it names none, the authorization server is the one of the login: the token that renews it
/// is sent to no other.
///
/// # Errors
/// When the login can't be read or used.
pub(crate) async fn authorized(
    url: &str,
    login: &LoginSetup,
) -> Result<Option<AuthorizationManager>, String> {
    let Some(kept) = file::read(&login.file, url)? else { return Ok(None) };
    let mut manager = manager(url).await?;
    let head = kept.head.clone();
    let metadata = match manager.resolve_metadata().await {
        Ok(found) if found.source.is_discovered() => {
            if found.metadata.issuer != head.metadata.issuer {
                return Ok(None);
            }
            found.metadata
        }
        // Without metadata `rmcp` would take the address itself for the authorization server.
        Ok(_) => head.metadata.clone(),
        Err(error) => {
            tracing::debug!("the authorization server can't be looked up: {}", shown(&error));
            head.metadata.clone()
        }
    };
    if let Some(why) = objection_to_endpoints(url, &metadata) {
        return Err(why);
    }
    manager.set_metadata(metadata);
    manager.set_credential_store(file::FileStore::new(login.file.clone(), head.clone()));
    if !manager.initialize_from_store().await.map_err(|error| shown(&error))? {
        return Ok(None);
    }
    let mut config = OAuthClientConfig::new(kept.client_id(), head.redirect_uri.clone());
    if let Some(secret) = secret_of(&head.client_secret, login) {
        config = config.with_client_secret(secret);
    }
    manager.configure_client(config).map_err(|error| shown(&error))?;
    Ok(Some(manager))
}

async fn manager(url: &str) -> Result<AuthorizationManager, String> {
    // One that is there stays; all of this process are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    AuthorizationManager::new(url).await.map_err(|error| shown(&error))
}

/// The secret of the client: that of its registration, or of the settings.
fn secret_of(registered: &Option<String>, login: &LoginSetup) -> Option<String> {
    let set = || login.client_secret.as_ref().map(|secret| secret.expose_secret().to_owned());
    registered.clone().or_else(set)
}

/// Why the endpoints of an authorization server aren't used. A server that is reached in the clear may have one that is,
/// too.
fn objection_to_endpoints(server: &str, metadata: &AuthorizationMetadata) -> Option<String> {
    let is_clear = Url::parse(server).is_ok_and(|url| url.scheme() == "http");
    let named = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint)];
    let mut all = named.into_iter().chain([metadata.registration_endpoint.as_ref()]).flatten();
    all.find_map(|endpoint| {
        let scheme = Url::parse(endpoint).ok().map(|url| url.scheme().to_owned());
        match scheme.as_deref() {
            Some("https") => None,
            Some("http") if is_clear => None,
            _ => Some(format!(
                "its authorization server has the address {}, which isn't https",
                shown_url(endpoint)
            )),
        }
    })
}

fn shown_url(url: &str) -> String {
    revealed(url).replace('\n', "\\n").chars().take(200).collect()
}

/// Has the authorization server forget a token (RFC 7009), where its metadata say how, and at the place that got the
/// token before. Returns whether it did.
async fn revoked(kept: &file::Kept, login: &LoginSetup) -> bool {
    let metadata = &kept.head.metadata;
    let endpoint = metadata.additional_fields.get("revocation_endpoint").and_then(serde_json::Value::as_str);
    let parsed = endpoint.and_then(|endpoint| Url::parse(endpoint).ok());
    let of_tokens = Url::parse(&metadata.token_endpoint).ok();
    let (Some(endpoint), Some(of_tokens)) = (parsed, of_tokens) else { return false };
    let Some(token) = kept.longest_lived() else { return false };
    if endpoint.origin() != of_tokens.origin() {
        return false;
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = mcp_reqwest::Client::builder().redirect(mcp_reqwest::redirect::Policy::none()).build();
    let Ok(client) = client else { return false };
    let id = kept.client_id();
    let mut form = Url::parse("http://form/").ok();
    let Some(form) = form.as_mut() else { return false };
    form.query_pairs_mut().append_pair("token", &token).append_pair("client_id", &id);
    if let Some(secret) = secret_of(&kept.head.client_secret, login) {
        form.query_pairs_mut().append_pair("client_secret", &secret);
    }
    let body = form.query().unwrap_or_default().to_owned();
    let request =
        client.post(endpoint).header(CONTENT_TYPE, "application/x-www-form-urlencoded").timeout(REVOKE_MAX);
    request.body(body).send().await.is_ok_and(|response| response.status().is_success())
}

/// How the server answers a request without a login: whether it refuses it, and its challenge.
#[derive(Debug, Default)]
struct Challenge {
    is_refused: bool,
    header: Option<String>,
}

impl Challenge {
    /// Some servers let anyone in and refuse the first request for tools.
    async fn of(url: &str) -> Result<Self, String> {
        let initialize = serde_json::json!({
            "protocolVersion": rmcp::model::ProtocolVersion::LATEST_WITH_INITIALIZE,
            "capabilities": {},
            "clientInfo": { "name": "provost", "version": env!("CARGO_PKG_VERSION") },
        });
        let first = Self::to(url, "initialize", initialize).await?;
        if first.is_refused { Ok(first) } else { Self::to(url, "tools/list", serde_json::json!({})).await }
    }

    /// How it answers one request.
    async fn to(url: &str, method: &str, params: serde_json::Value) -> Result<Self, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = mcp_reqwest::Client::builder().redirect(mcp_reqwest::redirect::Policy::none()).build();
        let client = client.map_err(|error| shown(&error))?;
        let request = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = client
            .post(url)
            .header(mcp_reqwest::header::ACCEPT, "application/json, text/event-stream")
            .timeout(crate::http::CONNECT_MAX)
            .json(&request);
        let response = request.send().await.map_err(|error| shown(&error))?;
        let header = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        Ok(Self { is_refused: response.status().as_u16() == 401, header: header.map(str::to_owned) })
    }
}
