//! What OpenAI's two wire formats share.

use provost_harness::{ModelRequest, ToolChoice};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::client::below;
use crate::key::Key;

/// The headers of every request; `None` if the key can't be in one.
pub(crate) fn headers(key: &Key) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if !key.is_empty() {
        headers.insert(AUTHORIZATION, key.header("Bearer ")?);
    }
    Some(headers)
}

/// `base` with `segments` behind its path, once `own`, the format's own path, is taken from the end of that. An
/// address without any path gets the usual version.
pub(crate) fn url<'a>(base: &Url, own: &str, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let is_bare = base.path().trim_matches('/').is_empty();
    below(base, own, is_bare.then_some("v1").into_iter().chain(segments))
}

/// The word for whether tools are called; `None` where nothing need be said.
pub(crate) fn tool_choice(request: &ModelRequest<'_>) -> Option<&'static str> {
    match request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("required"),
        ToolChoice::None => Some("none"),
    }
}
