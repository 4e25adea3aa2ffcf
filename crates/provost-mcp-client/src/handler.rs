//! What servers send by themselves: news of their tools, and questions to the user.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shown::without_hidden;

/// Characters of a question's text.
const MESSAGE_CHARS_MAX: usize = 4_000;
/// Bytes of the schema of an answer; it is kept in the log.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// What is in the names of fields for secrets, letters and digits only.
const SECRET_PARTS: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "credential",
    "privatekey",
    "sshkey",
    "pincode",
    "cvv",
    "seedphrase",
    "recoveryphrase",
    "onetimecode",
    "verificationcode",
];

/// What a server asks of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Its text, without hidden characters.
    pub(crate) message: String,
    /// The schema of the answer's fields.
    pub(crate) schema: Value,
}

/// A question, or why it isn't put.
pub(crate) fn question_of(request: &ElicitRequestParams) -> Result<Question, String> {
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).unwrap_or_default();
            if schema.to_string().len() > SCHEMA_BYTES_MAX {
                return Err(format!("the fields that it asks for have more than {SCHEMA_BYTES_MAX} bytes"));
            }
            if let Some(field) = secret_in(message, &schema) {
                return Err(format!("it asks for a secret ({field}), which no server is given this way"));
            }
            let message = without_hidden(message).chars().take(MESSAGE_CHARS_MAX).collect();
            Ok(Question { message, schema: crate::schema::for_models(&schema) })
        }
        _ => Err("it asks to open an address, which Provost doesn't do".to_owned()),
    }
}

/// What in a question is for a secret.
fn secret_in(message: &str, schema: &Value) -> Option<String> {
    // As people read it: what they don't see, and what stands between letters, hides no word.
    let names_secret = |text: &str| {
        let text = without_hidden(text).chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let text = text.to_lowercase();
        SECRET_PARTS.iter().any(|part| text.contains(part))
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let texts = ["title", "description", "format"].iter().filter_map(|key| field.get(key)?.as_str());
        if names_secret(name) || texts.into_iter().any(names_secret) {
            return Some(without_hidden(name));
        }
    }
    // A text field of any name, asked for by a text about secrets.
    let takes_text = |field: &Value| field.get("type").and_then(Value::as_str) == Some("string");
    let has_text =
        fields.into_iter().flatten().any(|(_, field)| takes_text(field) && field.get("enum").is_none());
    (has_text && names_secret(message)).then(|| "by its text".to_owned())
}

/// What has come from a server by itself.
#[derive(Debug, Default)]
pub(crate) struct News {
    list_changed: AtomicBool,
    /// Calls that wait for their results.
    calls: AtomicUsize,
    asked: Mutex<Asked>,
}

/// What a server has asked during a call, in the revisions in which it asks by itself.
#[derive(Debug, Default)]
struct Asked {
    /// The answer to the question that it will ask again.
    prepared: Option<(Question, ElicitResult)>,
    question: Option<Question>,
    refused: Option<String>,
}

/// A call that waits for its result.
pub(crate) struct OpenCall<'a>(&'a News);

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

impl News {
    /// Whether the server has said that its tools are others, since the last time.
    pub(crate) fn take_list_changed(&self) -> bool {
        self.list_changed.swap(false, Ordering::AcqRel)
    }

    /// Begins a call, for which the answer to a question may be there.
    pub(crate) fn begin(&self, prepared: Option<(Question, ElicitResult)>) -> OpenCall<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = Asked { prepared, question: None, refused: None };
        OpenCall(self)
    }

    /// The question that came during the call, or why it wasn't put.
    pub(crate) fn take_question(&self) -> Option<Result<Question, String>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = asked.refused.take().map(Err);
        asked.question.take().map(Ok).or(refused)
    }

    fn answer(&self, request: &ElicitRequestParams) -> ElicitResult {
        let is_only_call = self.calls.load(Ordering::Acquire) == 1;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match question_of(request) {
            Err(why) => {
                asked.refused = Some(why);
                ElicitResult::new(ElicitationAction::Decline)
            }
            Ok(_) if !is_only_call => ElicitResult::new(ElicitationAction::Cancel),
            Ok(question) => match asked.prepared.take() {
                Some((known, answer)) if known == question => answer,
                _ => {
                    asked.question = Some(question);
                    ElicitResult::new(ElicitationAction::Cancel)
                }
            },
        }
    }
}

/// Answers a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handler {
    pub(crate) news: Arc<News>,
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.news.answer(&request))
    }

    #[expect(deprecated, reason = "older servers may ask for roots, and are told that there are none")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots aren't offered", None))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.news.list_changed.store(true, Ordering::Release);
    }

    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let mut info =
            ClientConfig::new(capabilities, Implementation::new("provost", env!("CARGO_PKG_VERSION")));
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::secret_in;

    #[test]
    fn a_question_for_a_secret_is_known_by_its_fields_and_its_text() {
        let with = |name: &str, extra: serde_json::Value| {
            let mut field = json!({ "type": "string" });
            field.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({ "type": "object", "properties": { name: field } })
        };
        let asks = |message: &str, schema| secret_in(message, &schema);
        assert_eq!(asks("Your name?", with("name", json!({}))), None);
        assert_eq!(asks("?", with("github_token", json!({}))), Some("github_token".to_owned()));
        assert_eq!(asks("?", with("x", json!({ "title": "API_KEY" }))), Some("x".to_owned()));
        assert_eq!(asks("Type your password", with("x", json!({}))), Some("by its text".to_owned()));
        assert_eq!(asks("?", with("pass\u{200b}wo\u{2060}rd", json!({}))), Some("password".to_owned()));
        assert_eq!(asks("?", with("x", json!({ "description": "Your A.P.I. Key" }))), Some("x".to_owned()));
        assert_eq!(asks("Your pass \u{1b}[0m word", with("x", json!({}))), Some("by its text".to_owned()));
        assert_eq!(asks("Rotate the token?", with("x", json!({ "enum": ["yes", "no"] }))), None);
    }
}
