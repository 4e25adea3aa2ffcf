//! How a program is pointed to the model gateway.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a program needs so that it calls models through the gateway. In all texts `{url}` stands for the gateway's address,
/// `{token}` for the program's token, `{folder}` for the folder with its files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRoute {
    /// The provider family that it calls.
    pub family: GatewayFamily,
    /// Arguments before its own.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables; they replace others of the same name.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files, written before it starts, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// The wire formats of one vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewayFamily {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses and Chat Completions.
    Openai,
    /// Google's Gemini API.
    Gemini,
    /// Whichever the program chooses: it gets the addresses of all.
    Any,
}

/// The values of the places in a route's texts.
#[derive(Debug, Clone, Copy)]
pub struct RouteValues<'a> {
    /// The gateway's address.
    pub url: &'a str,
    /// The program's token.
    pub token: &'a str,
    /// The folder with its files.
    pub folder: &'a str,
}

impl RouteValues<'_> {
    /// `text` with the values in their places.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        text.replace("{url}", self.url).replace("{token}", self.token).replace("{folder}", self.folder)
    }
}
