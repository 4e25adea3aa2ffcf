//! Gives the SDK's services the names of an installation and its workers, which are known at run time only: the SDK
//! takes names from types. Names are exchanged where requests come in, and in what the engine reads at a registration.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::service::Service;
use hyper::{Request, Response, StatusCode, Uri};
use restate_sdk::endpoint::ResponseBody;
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk_shared_core::IdentityVerifier;

/// Services and their names.
#[derive(Clone)]
pub(crate) struct NamedEndpoint {
    services: HyperEndpoint,
    names: Arc<[ServiceName]>,
    /// The requests are signed with the names that the engine knows, so the services don't check that themselves.
    identity: Arc<IdentityVerifier>,
}

/// A service's name.
#[derive(Debug, Clone)]
pub(crate) struct ServiceName {
    /// The name of its type.
    pub(crate) of_type: &'static str,
    /// What the engine calls it.
    pub(crate) registered: String,
    /// Whether the engine reads of it at a registration. One that isn't told of is served for requests that were begun at
    /// another address, which leads here now.
    pub(crate) is_told: bool,
}

type Answer = Response<Either<ResponseBody, Full<Bytes>>>;

impl NamedEndpoint {
    pub(crate) fn new(
        services: HyperEndpoint,
        names: Vec<ServiceName>,
        identity: Arc<IdentityVerifier>,
    ) -> Self {
        Self { services, names: names.into(), identity }
    }
}

impl Service<Request<Incoming>> for NamedEndpoint {
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let path = request.uri().path();
        if let Err(error) = self.identity.verify_identity(request.headers(), path) {
            return futures::future::ok(failed(StatusCode::UNAUTHORIZED, error.to_string())).boxed();
        }
        if path.ends_with("/discover") {
            let (names, answer) = (Arc::clone(&self.names), self.services.call(request));
            return answer.and_then(move |answer| renamed(answer, names)).boxed();
        }
        if let Some(uri) = with_type(request.uri(), &self.names) {
            *request.uri_mut() = uri;
        }
        self.services.call(request).map_ok(|answer| answer.map(Either::Left)).boxed()
    }
}

/// A request's address (`…/invoke/SERVICE/HANDLER`) with the name of the service's type; `None` for any other.
fn with_type(uri: &Uri, names: &[ServiceName]) -> Option<Uri> {
    let mut parts = uri.path().rsplitn(4, '/');
    let (handler, service, invoke) = (parts.next()?, parts.next()?, parts.next()?);
    let before = parts.next()?;
    let name = names.iter().find(|name| name.registered == service).filter(|_| invoke == "invoke")?;
    let mut uri = uri.clone().into_parts();
    uri.path_and_query = Some(format!("{before}/invoke/{}/{handler}", name.of_type).parse().ok()?);
    Uri::from_parts(uri).ok()
}

/// What the engine reads of the services, with the names that it is to know.
async fn renamed(answer: Response<ResponseBody>, names: Arc<[ServiceName]>) -> Result<Answer, Infallible> {
    let (mut parts, body) = answer.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Ok(failed(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    };
    if !parts.status.is_success() {
        return Ok(Response::from_parts(parts, Either::Right(Full::new(body))));
    }
    parts.headers.remove(CONTENT_LENGTH);
    Ok(match with_registered(&body, &names) {
        Ok(body) => Response::from_parts(parts, Either::Right(Full::new(body.into()))),
        Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })
}

fn with_registered(manifest: &[u8], names: &[ServiceName]) -> Result<Vec<u8>, serde_json::Error> {
    let mut manifest: serde_json::Value = serde_json::from_slice(manifest)?;
    if let Some(services) = manifest.get_mut("services").and_then(serde_json::Value::as_array_mut) {
        let known =
            |name: &serde_json::Value| names.iter().find(|known| name.as_str() == Some(known.of_type));
        services.retain(|service| service.get("name").and_then(known).is_none_or(|known| known.is_told));
        for name in services.iter_mut().filter_map(|service| service.get_mut("name")) {
            if let Some(known) = known(name) {
                *name = known.registered.clone().into();
            }
        }
    }
    serde_json::to_vec(&manifest)
}

fn failed(status: StatusCode, message: String) -> Answer {
    let mut answer = Response::new(Either::Right(Full::new(message.into())));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<ServiceName> {
        let name = |of_type, registered: &str, is_told| ServiceName {
            of_type,
            registered: registered.to_owned(),
            is_told,
        };
        vec![name("RunObject", "ann.Run", true), name("Index", "ann.Index", false)]
    }

    #[test]
    fn a_request_goes_to_the_service_of_its_name() {
        let of = |uri: &str| with_type(&uri.parse().unwrap(), &names()).map(|uri| uri.to_string());
        let expected = Some("http://worker:1/below/invoke/RunObject/post".to_owned());
        assert_eq!(of("http://worker:1/below/invoke/ann.Run/post"), expected);
        assert_eq!(of("http://worker:1/invoke/bob.Run/post"), None, "another installation's");
        assert_eq!(of("http://worker:1/health"), None);
    }

    #[test]
    fn the_engine_reads_the_names_that_it_is_to_know() {
        let manifest =
            br#"{"services":[{"name":"Index","ty":"VIRTUAL_OBJECT"},{"name":"RunObject","ty":"VIRTUAL_OBJECT"}]}"#;
        let renamed = with_registered(manifest, &names()).unwrap();
        let expected = r#"{"services":[{"name":"ann.Run","ty":"VIRTUAL_OBJECT"}]}"#;
        assert_eq!(String::from_utf8(renamed).unwrap(), expected);
    }
}
