//! A tool of a server, as agents have it.

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{CallQuestion, Json, QuestionAnswer, SessionId, ToolSpec, ToolStatus};
use provost_harness::{Tool, ToolContext, ToolOutput};
use serde_json::{Map, Value};

use crate::connection::{Call, CallEnd, CallFailure, UsersAnswer, Waiting};
use crate::live::LiveServer;
use crate::oauth::tokens;
use crate::result::output_of;
use crate::{McpServers, ServerSetup, ToolDefinition};

/// Attempts of a call that wasn't made, or that may be made twice.
const ATTEMPTS_MAX: u32 = 2;

/// A tool of a server.
pub(crate) struct McpTool {
    spec: ToolSpec,
    setup: Arc<ServerSetup>,
    /// Its name on the server.
    name: String,
    servers: McpServers,
}

impl McpTool {
    pub(crate) fn new(servers: McpServers, setup: Arc<ServerSetup>, definition: &ToolDefinition) -> Self {
        Self { spec: definition.spec(&setup), name: definition.name.clone(), setup, servers }
    }

    async fn made(
        &self,
        server: &LiveServer,
        arguments: Map<String, Value>,
        answer: Option<&QuestionAnswer>,
    ) -> ToolOutput {
        let waited = match answer.map(waited).transpose() {
            // Others are asked before the server is called again.
            Ok(Some(Waited::More(waiting))) => return self.asking(&waiting),
            Ok(Some(Waited::All(waiting, answer))) => Some((waiting, answer)),
            Ok(None) => None,
            Err(why) => return ToolOutput::error(why),
        };
        let mut attempt = 1;
        loop {
            let open = match server.ready().await {
                Ok(open) => open,
                Err(why) => return ToolOutput::error(why),
            };
            if let Some(why) = open.objection(&self.name) {
                return ToolOutput { status: ToolStatus::Denied, ..ToolOutput::error(why) };
            }
            let call = Call { tool: self.name.clone(), arguments: arguments.clone(), waited: waited.clone() };
            let failure = match open.connection.call(call).await {
                Ok(end) => return self.output(end),
                Err(failure) => failure,
            };
            let may_repeat = match &failure {
                CallFailure::Answered(_) => false,
                CallFailure::Unsent(_) => true,
                CallFailure::Lost(_) => self.spec.idempotent,
            };
            if !may_repeat || attempt >= ATTEMPTS_MAX {
                return self.failed(&failure);
            }
            attempt = attempt.saturating_add(1);
        }
    }

    fn output(&self, end: CallEnd) -> ToolOutput {
        let server = &self.setup.name;
        match end {
            CallEnd::Done(result) => output_of(&result),
            CallEnd::Refused(why, result) => {
                let mut output = output_of(&result);
                output.text.push_str(&format!("\n[The MCP server {server} was refused an answer: {why}.]"));
                output
            }
            CallEnd::Asks(waiting) => self.asking(&waiting),
        }
    }

    /// The server's next question, for the user.
    fn asking(&self, waiting: &Waiting) -> ToolOutput {
        let server = &self.setup.name;
        let (Some(question), Ok(state)) = (waiting.question(), Json::of(waiting)) else {
            return ToolOutput::error(format!("The MCP server {server} asks nothing that can be answered."));
        };
        let message = format!("The MCP server {server} asks: {}", question.message);
        let schema = Json::of(&question.schema).unwrap_or_else(|_| Json::empty_object());
        let asks = Box::new(CallQuestion { message, schema, state });
        ToolOutput { asks: Some(asks), ..ToolOutput::ok("") }
    }

    fn failed(&self, failure: &CallFailure) -> ToolOutput {
        let server = &self.setup.name;
        match failure {
            CallFailure::Answered(why) => ToolOutput::error(format!("The MCP server {server} failed: {why}")),
            CallFailure::Unsent(why) => ToolOutput::error(format!(
                "The call wasn't made: the MCP server {server} can't be reached ({why})."
            )),
            CallFailure::Lost(why) => ToolOutput {
                status: ToolStatus::Unknown,
                ..ToolOutput::error(format!(
                    "The connection to the MCP server {server} was lost during the call ({why}). Whether the call took \
                     effect isn't known; it isn't made again by itself. Look before you repeat it."
                ))
            },
        }
    }
}

/// What an answer leads to.
enum Waited {
    /// The next question.
    More(Waiting),
    /// The call, with all answers.
    All(Waiting, UsersAnswer),
}

/// Takes the user's answer to the question that a call waited for.
fn waited(answer: &QuestionAnswer) -> Result<Waited, String> {
    let unread =
        |_| "What the MCP server asked before can't be read any more; make the call again.".to_owned();
    let mut waiting = answer.state.read::<Waiting>().map_err(unread)?;
    let given = match &answer.content {
        Some(content) => content.read::<Value>().map_err(unread)?,
        None => waiting.question().map(|question| agreed(&question.schema)).unwrap_or_default(),
    };
    let answer = UsersAnswer(given);
    Ok(if waiting.answer(&answer) { Waited::More(waiting) } else { Waited::All(waiting, answer) })
}

/// The fields of an answer that only agrees: defaults, and yes.
fn agreed(schema: &Value) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object);
    let value = |field: &Value| match field.get("default") {
        Some(default) => Some(default.clone()),
        None => (field.get("type").and_then(Value::as_str) == Some("boolean")).then_some(Value::Bool(true)),
    };
    let filled = fields.into_iter().flatten().filter_map(|(name, field)| Some((name.clone(), value(field)?)));
    Value::Object(filled.collect())
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        let Ok(arguments) = input.read::<Map<String, Value>>() else {
            return ToolOutput::rejected("The arguments must be a JSON object.");
        };
        let server = match self.servers.of_run(context.effect.actor.run(), &self.setup) {
            Ok(server) => server,
            Err(why) => return ToolOutput::error(why),
        };
        let mut output = tokio::select! {
            output = self.made(&server, arguments, context.answer.as_ref()) => output,
            () = context.cancel.cancelled() => {
                ToolOutput::error(format!(
                    "The MCP server {} was told that the call is cancelled; what it has done until then isn't known.",
                    self.setup.name
                ))
            }
        };
        // What the server says may repeat what it was sent.
        tokens(&self.setup.reach).iter().for_each(|token| context.secrets.learn(token));
        let failed = if output.status == ToolStatus::Ok { "" } else { output.text.as_str() };
        let denied = server.denials(failed);
        if !denied.is_empty() {
            output.text.push_str(&format!("\n[sandbox of the MCP server: {}]", denied.join("; ")));
            output.facts.denied = denied;
        }
        output
    }

    fn session_over(&self, session: SessionId) {
        self.servers.session_over(session);
    }
}
