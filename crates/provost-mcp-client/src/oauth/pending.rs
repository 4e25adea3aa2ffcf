//! A login that waits for the user.

use std::net::Ipv4Addr;
use std::time::Duration;

use mcp_reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession};
use tokio::net::TcpListener;

use super::file::{FileStore, Head};
use super::{
    Challenge, Login, LoginError, browser, error, file, manager, objection_to_endpoints, shown, shown_url,
};
use crate::setup::LoginSetup;
use crate::{Reach, ServerSetup};

/// The name by which Provost registers itself.
const CLIENT_NAME: &str = "Provost";
/// Bytes of the address that the user opens.
const ADDRESS_BYTES_MAX: usize = 16 * 1024;

/// What a login is to be.
#[derive(Debug, Clone, Default)]
pub struct LoginRequest {
    /// The port on 127.0.0.1 to which the browser comes back; 0: any that is free.
    pub port: u16,
    /// Scopes that are asked for besides those of the login that there is; empty: those of the settings, or else those
    /// that the server names.
    pub scopes: Vec<String>,
}

/// A login that waits for the user to agree in a browser.
pub struct PendingLogin {
    setup: ServerSetup,
    session: AuthorizationSession,
    listener: TcpListener,
    /// What the answer must repeat.
    state: String,
}

impl PendingLogin {
    /// Finds the authorization server of an address, registers Provost there where that is needed, and prepares what the
    /// user agrees to.
    ///
    /// # Errors
    /// When there is nothing to log in to, or it can't be reached or used.
    pub async fn begin(setup: &ServerSetup, request: &LoginRequest) -> Result<Self, LoginError> {
        let Reach::Http { url, login, headers } = &setup.reach else {
            return Err(error(setup, "it is a program; logins are for addresses"));
        };
        if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Err(error(
                setup,
                "its settings send the header Authorization themselves, with headers_env",
            ));
        }
        if let Some(scope) = request.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(error(setup, format!("`{}` is no scope", scope.escape_debug())));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, request.port)).await;
        let listener = listener.map_err(|why| error(setup, format!("the port can't be had: {why}")))?;
        let port = listener.local_addr().map_err(|why| error(setup, why.to_string()))?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{}", browser::PATH);
        let manager = discovered(url).await.map_err(|why| error(setup, why))?;
        let scopes = match (request.scopes.is_empty(), login.scopes.is_empty()) {
            (false, _) => {
                let granted = Login::read(setup).ok().flatten().map(|login| login.scopes).unwrap_or_default();
                let more = request.scopes.iter().filter(|scope| !granted.contains(scope)).cloned();
                granted.iter().cloned().chain(more).collect()
            }
            (true, false) => login.scopes.clone(),
            (true, true) => manager.manager.select_initial_scopes(&[]).await,
        };
        let session = manager.session(url, login, redirect_uri, scopes).await;
        let session = session.map_err(|why| error(setup, why))?;
        let state = checked_address(session.get_authorization_url(), url).map_err(|why| error(setup, why))?;
        Ok(Self { setup: setup.clone(), session, listener, state })
    }

    /// The address that the user opens in a browser.
    #[must_use]
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// The authorization server: scheme, host and port of that address.
    #[must_use]
    pub fn authorization_server(&self) -> String {
        Url::parse(self.address()).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
    }

    /// Waits at most `limit` for the browser to come back to this machine.
    ///
    /// # Errors
    /// When it doesn't, the user doesn't agree, or the answer is no answer.
    ///
    /// # Cancellation
    /// Nothing is kept then.
    pub async fn by_browser(self, limit: Duration) -> Result<Login, LoginError> {
        let Self { setup, session, listener, state } = self;
        let returned = tokio::time::timeout(limit, browser::returned(listener, &state)).await;
        let returned = returned.map_err(|_| {
            let why = format!("the browser didn't come back within {} s", limit.as_secs());
            error(&setup, why)
        })?;
        let (query, told) = returned.map_err(|why| error(&setup, why))?;
        let login = completed(&setup, &session, &query).await;
        told.tell(login.as_ref().map_or_else(|error| error.to_string(), |_| browser::DONE.to_owned())).await;
        login
    }

    /// Takes the address to which the browser was sent, or its part after the `?`.
    ///
    /// # Errors
    /// When it isn't the answer to this login, or the user didn't agree.
    pub async fn by_address(self, address: &str) -> Result<Login, LoginError> {
        let Self { setup, session, listener: _, state } = self;
        let address = address.trim();
        let query = address.split_once('?').map_or(address, |(_, query)| query);
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        if browser::value_of(query, "state").as_deref() != Some(state.as_str()) {
            let why = "this isn't the address to which the browser was sent by this login";
            return Err(error(&setup, why));
        }
        completed(&setup, &session, query).await
    }
}

/// An address whose authorization server is known.
struct Discovered {
    manager: AuthorizationManager,
    metadata: rmcp::transport::auth::AuthorizationMetadata,
}

async fn discovered(url: &str) -> Result<Discovered, String> {
    let challenge = Challenge::of(url).await?;
    let mut manager = manager(url).await?;
    let found = manager.resolve_metadata_from_challenge(challenge.header.as_deref()).await;
    let found = found.map_err(|error| shown(&error))?;
    if !found.source.is_discovered() && !challenge.is_refused {
        return Err("it doesn't ask for one".to_owned());
    }
    if let Some(why) = objection_to_endpoints(url, &found.metadata) {
        return Err(why);
    }
    manager.set_metadata(found.metadata.clone());
    Ok(Discovered { manager, metadata: found.metadata })
}

impl Discovered {
    async fn session(
        self,
        url: &str,
        login: &LoginSetup,
        redirect_uri: String,
        scopes: Vec<String>,
    ) -> Result<AuthorizationSession, String> {
        let Self { mut manager, metadata } = self;
        let mut head = Head::new(url, &redirect_uri, metadata);
        let mut request = AuthorizationRequest::new(redirect_uri.clone()).with_scopes(scopes.clone());
        match &login.client_id {
            Some(id) => {
                request = request.with_preregistered_client(id.clone());
                if let Some(secret) = super::secret_of(&None, login) {
                    request = request.with_client_secret(secret);
                }
            }
            None => {
                let scopes = scopes.iter().map(String::as_str).collect::<Vec<_>>();
                let client = manager.register_client(CLIENT_NAME, &redirect_uri, &scopes).await;
                let client = client.map_err(|error| unregistered(&error))?;
                request = request.with_preregistered_client(client.client_id);
                if let Some(secret) = client.client_secret {
                    request = request.with_client_secret(secret.clone());
                    head.client_secret = Some(secret);
                }
            }
        }
        manager.set_credential_store(FileStore::new(login.file.clone(), head));
        AuthorizationSession::new(manager, request).await.map_err(|(_, error)| shown(&error))
    }
}

/// As RFC 6749 (3.3) has them.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn unregistered(error: &AuthError) -> String {
    format!(
        "Provost can't register itself there ({}); register a client with the redirect address http://127.0.0.1{} and \
         set its id as oauth_client_id",
        shown(error),
        browser::PATH
    )
}

/// The state in the address that the user is to open.
///
/// # Errors
/// Why the user isn't asked to open it.
fn checked_address(address: &str, server: &str) -> Result<String, String> {
    let is_clear = server.starts_with("http://");
    let parsed = Url::parse(address).ok();
    let fits = |url: &Url| url.scheme() == "https" || (url.scheme() == "http" && is_clear);
    let parsed = parsed.filter(fits).filter(|_| address.len() <= ADDRESS_BYTES_MAX);
    let state = parsed.as_ref().and_then(|url| browser::value_of(url.query()?, "state"));
    state.ok_or_else(|| format!("the address to open is none of the web: {}", shown_url(address)))
}

async fn completed(
    setup: &ServerSetup,
    session: &AuthorizationSession,
    query: &str,
) -> Result<Login, LoginError> {
    if let Some(refusal) = browser::value_of(query, "error") {
        let more = browser::value_of(query, "error_description").map(|text| format!(" ({text})"));
        let why = format!("the authorization server answered {refusal}{}", more.unwrap_or_default());
        return Err(error(setup, shown_url(&why)));
    }
    let address = format!("{}?{query}", session.redirect_uri);
    session.handle_callback_url(&address).await.map_err(|why| error(setup, shown(&why)))?;
    let Reach::Http { url, login, .. } = &setup.reach else { return Err(error(setup, "it is a program")) };
    let kept = file::read(&login.file, url).map_err(|why| error(setup, why))?;
    if let Some(why) = kept.as_ref().map_or(Some("it gave no token"), |kept| kept.objection()) {
        file::remove(&login.file).map_err(|why| error(setup, why))?;
        return Err(error(setup, format!("the authorization server can't be used: {why}")));
    }
    Login::read(setup)?.ok_or_else(|| error(setup, "the authorization server gave no token"))
}
