//! The common part of OpenAI's two wire formats.

use provost_event::Effort;
use provost_harness::{ModelRequest, ToolChoice};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::client::below;
use crate::key::Key;

/// The headers of every request; `None` if the key isn't a valid header value.
pub(crate) fn headers(key: &Key) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if !key.is_empty() {
        headers.insert(AUTHORIZATION, key.header("Bearer ")?);
    }
    Some(headers)
}

/// `base` with `segments` appended to its path, after removing `own`, the format's own path, from its end. An
/// address without a path gets the usual version.
pub(crate) fn url<'a>(base: &Url, own: &str, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let is_bare = base.path().trim_matches('/').is_empty();
    below(base, own, is_bare.then_some("v1").into_iter().chain(segments))
}

/// The value for whether tools are called; `None` for the default.
pub(crate) fn tool_choice(request: &ModelRequest<'_>) -> Option<&'static str> {
    match request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("required"),
        ToolChoice::None => Some("none"),
    }
}

/// The provider's name of an effort. The lowest one differs: the GPT-5 generation's `minimal` became `none` with
/// GPT-5.1, and models made for code, and others, have neither and refuse unknown names (the refusals are quoted
/// in openai/codex#6647 and anomalyco/opencode#4451). GPT-5 Pro only accepts `high` (anomalyco/opencode#3474), the
/// Pro models after it nothing below `medium`.
pub(crate) fn effort_word(effort: Effort, model: &str) -> &'static str {
    let model = model.rsplit('/').next().unwrap_or_default();
    let is_made_for = |what: &str| model.split('-').any(|part| part == what);
    let pro = gpt_version(model).filter(|_| is_made_for("pro"));
    match effort {
        _ if pro == Some((5, 0)) => "high",
        Effort::Minimal | Effort::Low if pro.is_some() => "medium",
        Effort::Minimal if is_made_for("codex") || is_made_for("pro") || is_made_for("chat") => "low",
        Effort::Minimal if gpt_version(model) == Some((5, 0)) => "minimal",
        Effort::Minimal if gpt_version(model).is_some() => "none",
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High | Effort::Xhigh | Effort::Max => effort.name(),
    }
}

/// The first version that doesn't accept tools together with an effort over Chat Completions.
pub(crate) const TOOLS_WITHOUT_EFFORT_FROM: (u32, u32) = (5, 4);

/// The version of one of OpenAI's GPT models from 5 on, from its name: `gpt-5.4-mini-2026-03-17` is (5, 4).
pub(crate) fn gpt_version(model: &str) -> Option<(u32, u32)> {
    let version = model.rsplit('/').next()?.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?)).filter(|version| *version >= (5, 0))
}

#[cfg(test)]
mod tests {
    use super::gpt_version;

    #[test]
    fn a_version_is_read_out_of_a_name() {
        assert_eq!(gpt_version("gpt-5.4-mini-2026-03-17"), Some((5, 4)));
        assert_eq!(gpt_version("openai/gpt-6-sol"), Some((6, 0)));
        assert_eq!(gpt_version("gpt-5.10"), Some((5, 10)));
        for name in ["gpt-4o", "gpt-4.1", "o3", "gpt-oss-120b", "chat-latest", ""] {
            assert_eq!(gpt_version(name), None, "{name}");
        }
    }
}
