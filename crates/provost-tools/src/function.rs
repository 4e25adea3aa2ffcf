//! Tools made of a function: schema and description come from the type of its arguments.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::OUTPUT_BYTES_MAX;
use crate::arguments::{description_of, name_of, read, schema_of};

/// The default time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(60);

type Answer = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;
type Handler<A> = dyn Fn(A, ToolContext) -> Answer + Send + Sync;

/// What a tool's function may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of a tool",
    note = "return a `String`, a `&str`, a `ToolOutput`, or a `Result` of these whose error implements `Display`"
)]
pub trait IntoToolOutput {
    /// The result of the call.
    fn into_output(self) -> ToolOutput;
}

impl IntoToolOutput for ToolOutput {
    fn into_output(self) -> ToolOutput {
        self
    }
}

impl IntoToolOutput for String {
    fn into_output(self) -> ToolOutput {
        ToolOutput::ok(self)
    }
}

impl IntoToolOutput for &str {
    fn into_output(self) -> ToolOutput {
        ToolOutput::ok(self)
    }
}

/// An error is a failure of the call, with the error's text for the model.
impl<T: IntoToolOutput, E: Display> IntoToolOutput for Result<T, E> {
    fn into_output(self) -> ToolOutput {
        self.map_or_else(|error| ToolOutput::error(error.to_string()), T::into_output)
    }
}

/// A tool whose calls are handled by a function. Made by [`tool`] or [`tool_in`].
pub struct FunctionTool<A> {
    spec: ToolSpec,
    handler: Box<Handler<A>>,
}

/// A tool of the function `handler`.
///
/// The type of its arguments says the rest: its name in snake case is the tool's name, its documentation the
/// description for the model, its fields the arguments, with their documentation. Arguments that don't fit are answered
/// with what fits, and never reach the function. What it returns is the result: a text, a [`ToolOutput`], or a `Result`,
/// whose error the model gets as a failure.
///
/// Unless changed, a call excludes all others meanwhile, isn't repeated after a crash, and may take 60 s.
///
/// ```
/// /// Takes pieces from the stock.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Take {
///     /// How many.
///     number: u32,
/// }
///
/// let take = provost_tools::tool(|take: Take| async move { format!("{} taken", take.number) });
/// assert_eq!(provost_harness::Tool::spec(&take).name, "take");
/// ```
pub fn tool<A, F, R>(handler: F) -> FunctionTool<A>
where
    A: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
{
    tool_in(move |arguments, context: ToolContext| {
        let answer = handler(arguments);
        async move {
            tokio::select! {
                output = answer => output.into_output(),
                () = context.cancel.cancelled() => ToolOutput::error("the call was stopped"),
            }
        }
    })
}

/// As [`tool`], for a function that also gets the call's context: workspace, time limit, stored state, and the token
/// that fires when the call must end. The function watches that token and leaves nothing running; one of [`tool`] is
/// dropped where it waits.
pub fn tool_in<A, F, R>(handler: F) -> FunctionTool<A>
where
    A: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoToolOutput> + Send + 'static,
{
    let spec = ToolSpec {
        name: name_of::<A>(),
        description: description_of::<A>(),
        input_schema: schema_of::<A>(),
        access: Access::Anything,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        summary_field: None,
        idempotent: false,
        timeout_ms: millis(TIMEOUT),
        output_bytes_max: OUTPUT_BYTES_MAX,
    };
    let handler = move |arguments, context| -> Answer {
        let answer = handler(arguments, context);
        Box::pin(async move { answer.await.into_output() })
    };
    FunctionTool { spec, handler: Box::new(handler) }
}

impl<A> FunctionTool<A> {
    /// Sets its name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets its description for the model.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Sets what its calls access, which decides which of them run side by side.
    #[must_use]
    pub const fn access(mut self, access: Access) -> Self {
        self.spec.access = access;
        self
    }

    /// Sets what its calls are about, so that permissions such as `fetch(https://example.com/*)` apply to them.
    #[must_use]
    pub fn subject(mut self, subject: ToolSubject) -> Self {
        self.spec.subject = subject;
        self
    }

    /// Sets its other names, which hooks' scripts for other agent programs and permissions may use.
    #[must_use]
    pub fn aliases<N: Into<String>>(mut self, aliases: impl IntoIterator<Item = N>) -> Self {
        self.spec.aliases = aliases.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the argument that represents a call in one line. By default that of the subject.
    #[must_use]
    pub fn summary_field(mut self, field: impl Into<String>) -> Self {
        self.spec.summary_field = Some(field.into());
        self
    }

    /// Allows a call that was interrupted by a crash to be repeated.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.spec.idempotent = true;
        self
    }

    /// Sets the time limit of a call, to the millisecond.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout_ms = millis(timeout);
        self
    }

    /// Sets the maximum bytes of output for the model; the middle of a longer one is left out.
    #[must_use]
    pub const fn output_bytes_max(mut self, bytes: usize) -> Self {
        self.spec.output_bytes_max = bytes;
        self
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl<A: DeserializeOwned + JsonSchema + Send + Sync> Tool for FunctionTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match read::<A>(&self.spec.name, input) {
            Ok(arguments) => (self.handler)(arguments, context.clone()).await,
            Err(rejected) => rejected,
        }
    }
}
