//! What a request's path asks for.

use axum::http::Method;
use provost_llm::WireFormat;

/// The provider family that a path belongs to: the first segment of the address that a program is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses and Chat Completions.
    Openai,
    /// Google's Gemini API.
    Gemini,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A model call. The model stands in the body, or, with Gemini, in the path.
    Generate {
        /// The wire format.
        wire: WireFormat,
        /// The model in the path.
        model: Option<String>,
        /// Whether the path asks for a stream.
        streams: bool,
    },
    /// Something without cost: a count of tokens, or the list of models.
    Free,
    /// Anything else.
    Unknown,
}

/// A request's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) family: Family,
    pub(crate) endpoint: Endpoint,
    /// The path below the provider's version.
    pub(crate) path: String,
}

impl Family {
    /// The wire format in which errors are given where the endpoint has none.
    pub(crate) const fn wire(self) -> WireFormat {
        match self {
            Self::Anthropic => WireFormat::Anthropic,
            Self::Openai => WireFormat::OpenaiResponses,
            Self::Gemini => WireFormat::Gemini,
        }
    }
}

/// Reads a path: `/anthropic/v1/messages`, `/openai/v1/responses`, `/gemini/v1beta/models/NAME:generateContent`. A
/// program may leave the version out. `None` if no provider is named.
pub(crate) fn route(method: &Method, path: &str) -> Option<Route> {
    let (family, rest) = path.trim_start_matches('/').split_once('/')?;
    let family = match family {
        "anthropic" => Family::Anthropic,
        "openai" => Family::Openai,
        "gemini" => Family::Gemini,
        _ => return None,
    };
    let rest = without_version(rest);
    let is_plain = !rest.split('/').any(|segment| matches!(segment, "." | "..")) && !rest.contains('%');
    let endpoint = match is_plain {
        true => endpoint(family, method, rest),
        false => Endpoint::Unknown,
    };
    Some(Route { family, endpoint, path: rest.to_owned() })
}

fn without_version(path: &str) -> &str {
    let versions = ["v1beta/", "v1alpha/", "v1/"];
    let path = path.trim_start_matches('/');
    versions.iter().find_map(|version| path.strip_prefix(version)).unwrap_or(path)
}

fn endpoint(family: Family, method: &Method, path: &str) -> Endpoint {
    let generate = |wire| Endpoint::Generate { wire, model: None, streams: false };
    let is_list = path == "models" || path.starts_with("models/");
    match (family, path) {
        (Family::Anthropic, "messages") if method == Method::POST => generate(WireFormat::Anthropic),
        (Family::Anthropic, "messages/count_tokens") if method == Method::POST => Endpoint::Free,
        (Family::Openai, "responses") if method == Method::POST => generate(WireFormat::OpenaiResponses),
        (Family::Openai, "responses/input_tokens") if method == Method::POST => Endpoint::Free,
        (Family::Openai, "chat/completions") if method == Method::POST => generate(WireFormat::OpenaiChat),
        (Family::Gemini, path) if method == Method::POST => gemini(path),
        _ if is_list && method == Method::GET && !path.contains(':') => Endpoint::Free,
        _ => Endpoint::Unknown,
    }
}

fn gemini(path: &str) -> Endpoint {
    let Some((model, action)) = path.strip_prefix("models/").and_then(|path| path.rsplit_once(':')) else {
        return Endpoint::Unknown;
    };
    let wire = WireFormat::Gemini;
    match action {
        "generateContent" => Endpoint::Generate { wire, model: Some(model.to_owned()), streams: false },
        "streamGenerateContent" => Endpoint::Generate { wire, model: Some(model.to_owned()), streams: true },
        "countTokens" => Endpoint::Free,
        _ => Endpoint::Unknown,
    }
}
