//! A provider as the end of a request that passes through: its address, its key, one pooled client.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response, Url};

use crate::KeyFilter;
use crate::client::{address, below, client_for};
use crate::failure::cause_of;
use crate::key::Key;
use crate::provider::wire_of;
use crate::{Deviations, ProviderSettings, ResolveError, WireFormat};

/// A provider that requests are forwarded to.
pub struct Upstream {
    name: String,
    base: Url,
    wire: WireFormat,
    deviations: Deviations,
    key: Key,
    /// The headers with the key, and those that the provider needs where a client sends none.
    headers: HeaderMap,
    client: Client,
    first_byte: Duration,
}

/// A request to forward.
#[derive(Debug, Clone)]
pub struct UpstreamRequest {
    /// The method.
    pub method: Method,
    /// The path below the provider's version, such as `messages/count_tokens`.
    pub path: String,
    /// The query, without a key.
    pub query: Option<String>,
    /// The client's headers, without its key and those of its connection.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why a request wasn't answered.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The connection failed.
    #[error("can't reach {place}: {cause}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// The cause.
        cause: String,
    },
    /// Nothing was answered in time.
    #[error("{place} didn't answer within {seconds} s")]
    Silent {
        /// Host and port.
        place: String,
        /// The limit.
        seconds: u64,
    },
}

impl Upstream {
    /// The provider called `name`, with its key.
    ///
    /// # Errors
    /// If there is no such provider, it needs a key and has none, or its address is invalid.
    pub fn new(settings: &ProviderSettings, name: &str) -> Result<Self, ResolveError> {
        let provider = settings.providers.get(name).ok_or_else(|| ResolveError::UnknownProvider {
            name: name.to_owned(),
            hint: "`[gateway]` names it; write one of `provost models`, or a `[providers]` table".to_owned(),
        })?;
        let secret = settings.key(name);
        if secret.is_none() && provider.key_required {
            let key_env = provider.key_env.clone().unwrap_or_default();
            return Err(ResolveError::MissingKey { name: name.to_owned(), key_env });
        }
        let key = Key::new(secret);
        let wire = wire_of(provider.wire, (String::new(), None), provider.deviations);
        let headers = wire.headers(&key).ok_or(ResolveError::BadKey { provider: name.to_owned() })?;
        let base = address(&provider.base_url)?;
        let client = client_for(&base, settings.limits)?;
        Ok(Self {
            name: name.to_owned(),
            base,
            wire: provider.wire,
            deviations: provider.deviations,
            key,
            headers,
            client,
            first_byte: Duration::from_millis(settings.limits.quiet_ms),
        })
    }

    /// The provider's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its deviations in Chat Completions.
    #[must_use]
    pub const fn deviations(&self) -> Deviations {
        self.deviations
    }

    /// Sends a request with the provider's key, and returns the response once its head has arrived.
    ///
    /// # Errors
    /// If there is none.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    pub async fn send(&self, request: UpstreamRequest) -> Result<Response, UpstreamError> {
        let UpstreamRequest { method, path, query, mut headers, body } = request;
        for (name, value) in &self.headers {
            if value.is_sensitive() || !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
        let sending = self.client.request(method, self.url(&path, query)).headers(headers).body(body).send();
        let place = || self.place();
        match tokio::time::timeout(self.first_byte, sending).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let cause = self.key.scrub(&cause_of(&error));
                Err(UpstreamError::Unreachable { place: place(), cause })
            }
            Err(_) => Err(UpstreamError::Silent { place: place(), seconds: self.first_byte.as_secs() }),
        }
    }

    /// `text` without the key.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        self.key.scrub(text)
    }

    /// Hides the key in an answer's body.
    #[must_use]
    pub fn key_filter(&self) -> KeyFilter {
        self.key.filter()
    }

    fn place(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    fn url(&self, path: &str, query: Option<String>) -> Url {
        let segments = path.split('/').filter(|segment| !segment.is_empty());
        let is_bare = self.base.path().trim_matches('/').is_empty();
        let mut url = match self.wire {
            WireFormat::Anthropic => below(&self.base, "/v1", std::iter::once("v1").chain(segments)),
            WireFormat::Gemini => below(&self.base, "/v1beta", std::iter::once("v1beta").chain(segments)),
            WireFormat::OpenaiChat => {
                below(&self.base, "/chat/completions", is_bare.then_some("v1").into_iter().chain(segments))
            }
            WireFormat::OpenaiResponses => {
                below(&self.base, "/responses", is_bare.then_some("v1").into_iter().chain(segments))
            }
        };
        url.set_query(query.as_deref());
        url
    }
}
