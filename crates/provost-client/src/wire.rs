//! Connections, requests, answers.

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::{Client, ClientError, ServerAddress};

/// A connection, which is closed when this is dropped.
pub(crate) struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a request is, besides its token.
struct Asked<'a> {
    method: Method,
    path: &'a str,
    body: Vec<u8>,
    header: Option<(&'static str, &'a str)>,
}

#[derive(Deserialize)]
struct Problem {
    detail: String,
}

impl Client {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.answered(Asked { method: Method::GET, path, body: Vec::new(), header: None }).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|source| ClientError::Foreign { source })?;
        let header = key.map(|key| ("idempotency-key", key));
        self.answered(Asked { method: Method::POST, path, body, header }).await
    }

    /// The body of a stream of events, and the connection that it comes by.
    pub(crate) async fn open(
        &self,
        path: &str,
        after: Option<&str>,
    ) -> Result<(Connection, Incoming), ClientError> {
        let header = after.map(|id| ("last-event-id", id));
        let asked = Asked { method: Method::GET, path, body: Vec::new(), header };
        let (connection, response) = self.send(asked).await?;
        match response.status() {
            StatusCode::OK => Ok((connection, response.into_body())),
            status => Err(self.refused(status, response).await?),
        }
    }

    async fn answered<T: DeserializeOwned>(&self, asked: Asked<'_>) -> Result<T, ClientError> {
        let (_connection, response) = self.send(asked).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(status, response).await?);
        }
        let bytes = self.whole(response).await?;
        serde_json::from_slice(&bytes).map_err(|source| ClientError::Foreign { source })
    }

    async fn refused(
        &self,
        status: StatusCode,
        response: Response<Incoming>,
    ) -> Result<ClientError, ClientError> {
        let bytes = self.whole(response).await?;
        let problem = serde_json::from_slice::<Problem>(&bytes);
        let detail = problem.map_or_else(|_| status.to_string(), |problem| problem.detail);
        Ok(ClientError::Refused { status: status.as_u16(), detail })
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = response.into_body().collect().await;
        Ok(body.map_err(|error| self.unreachable(io::Error::other(error)))?.to_bytes())
    }

    async fn send(&self, asked: Asked<'_>) -> Result<(Connection, Response<Incoming>), ClientError> {
        let broken = |error: hyper::Error| self.unreachable(io::Error::other(error));
        let (mut sender, connection) = self.connect().await?;
        let mut request = Request::builder()
            .method(asked.method)
            .uri(asked.path)
            .header(header::HOST, self.host())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some((name, value)) = asked.header {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(asked.body)));
        let request = request.map_err(|error| self.unreachable(io::Error::other(error)))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok((connection, response))
    }

    async fn connect(&self) -> Result<(SendRequest<Full<Bytes>>, Connection), ClientError> {
        let cant = |source: io::Error| self.unreachable(source);
        match &self.address {
            ServerAddress::Tcp(address) => self.greet(TcpStream::connect(address).await.map_err(cant)?).await,
            #[cfg(unix)]
            ServerAddress::Unix(path) => {
                self.greet(tokio::net::UnixStream::connect(path).await.map_err(cant)?).await
            }
            #[cfg(not(unix))]
            ServerAddress::Unix(_) => Err(cant(io::ErrorKind::Unsupported.into())),
        }
    }

    async fn greet(
        &self,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(SendRequest<Full<Bytes>>, Connection), ClientError> {
        let greeted = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = greeted.map_err(|error| self.unreachable(io::Error::other(error)))?;
        // It ends with the connection, or is ended when the last of it is dropped.
        let driving = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok((sender, Connection(driving)))
    }

    fn host(&self) -> String {
        match &self.address {
            ServerAddress::Tcp(address) => address.to_string(),
            ServerAddress::Unix(_) => "localhost".to_owned(),
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        let at = match &self.address {
            ServerAddress::Tcp(address) => address.to_string(),
            ServerAddress::Unix(path) => path.display().to_string(),
        };
        ClientError::Unreachable { at, source }
    }
}
