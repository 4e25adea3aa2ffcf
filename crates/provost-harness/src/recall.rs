//! `recall`: looks up parts of the agent's conversation that were left out; the log keeps all of it.

mod page;
mod search;

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, Json, Seq, ToolSpec, ToolStatus, ToolSubject};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BackendError, Tool, ToolContext, ToolOutput};

/// The tool's name; the engine mentions it to agents that have it.
const NAME: &str = "recall";
/// Default maximum bytes of an answer.
const ANSWER_BYTES_DEFAULT: usize = 4 * 1024;
/// The range of an answer's maximum bytes: a lookup must not fill a small context window by itself.
const ANSWER_BYTES_MIN: usize = 1024;
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of a name in an answer.
const NAME_BYTES: usize = 60;
/// Time limit of a call; an interrupted search says how to continue.
const TIMEOUT: Duration = Duration::from_secs(30);

const DESCRIPTION: &str = "Looks up what was left out of your conversation to save room. Lines such as `[left out: … \
entry 431 …]` name the entry that has the whole; a summary says up to which entry it stands for the rest. `entry` \
shows one entry as it was, in pages; `search` finds the entries that have a text, the newest first. Give one of the \
two. Each answer ends with a line that says how to go on.";

/// Shows an agent entries of its own log, and searches them: only those that it was shown or wrote itself.
///
/// An answer has at most 4 KiB unless the agent requests up to 8 KiB, and never more than its output limit. A
/// search holds 128 entries at a time, whatever the length of the log, and can be interrupted after each such
/// piece.
#[derive(Debug, Clone)]
pub struct Recall {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    entry: Option<u64>,
    offset: Option<u64>,
    search: Option<String>,
    before: Option<u64>,
    bytes_max: Option<u64>,
}

/// A parsed request.
enum Wanted {
    Entry { entry: Seq, offset: usize },
    Search { text: String, before: Seq },
}

/// Why there is no answer.
enum Trouble {
    /// The arguments are invalid.
    Senseless(String),
    /// The requested entry doesn't exist, or can't be read.
    Missing(String),
    /// The call was cancelled, or timed out.
    Stopped,
}

impl From<BackendError> for Trouble {
    fn from(error: BackendError) -> Self {
        Self::Missing(error.to_string())
    }
}

impl Recall {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            input_schema: schema(),
            access: Access::Reads,
            subject: ToolSubject::Opaque,
            aliases: Vec::new(),
            forms: Vec::new(),
            freeform: None,
            summary_field: Some("search".to_owned()),
            idempotent: true,
            timeout_ms: u64::try_from(TIMEOUT.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: ANSWER_BYTES_MAX,
        };
        Self { spec }
    }
}

impl Default for Recall {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Recall {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match answer(input, context).await {
            Ok(output) => output,
            Err(Trouble::Senseless(why)) => ToolOutput::rejected(why),
            Err(Trouble::Missing(why)) => ToolOutput::error(why),
            Err(Trouble::Stopped) => ToolOutput {
                status: ToolStatus::Cancelled,
                ..ToolOutput::error("stopped; nothing was found yet")
            },
        }
    }
}

async fn answer(input: &Json, context: &ToolContext) -> Result<ToolOutput, Trouble> {
    let arguments = read(input)?;
    let bytes_max = answer_bytes(&arguments, context);
    match arguments.wanted()? {
        Wanted::Entry { entry, offset } => page::show(context, entry, offset, bytes_max).await,
        Wanted::Search { text, before } => search::search(context, &text, before, bytes_max).await,
    }
}

fn read(input: &Json) -> Result<Arguments, Trouble> {
    let misfit = |why: String| Trouble::Senseless(format!("the arguments of {NAME} don't fit: {why}"));
    let value = input.read::<Value>().map_err(|error| misfit(error.to_string()))?;
    if !value.is_object() {
        // A list would be parsed as the fields in their order.
        return Err(misfit("they must be one JSON object".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| misfit(error.to_string()))
}

fn answer_bytes(arguments: &Arguments, context: &ToolContext) -> usize {
    let wanted = arguments.bytes_max.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let wanted = wanted.map_or(ANSWER_BYTES_DEFAULT, |bytes| bytes.clamp(ANSWER_BYTES_MIN, ANSWER_BYTES_MAX));
    wanted.min(context.output_bytes_max)
}

impl Arguments {
    fn wanted(self) -> Result<Wanted, Trouble> {
        match (self.entry, self.search) {
            (Some(_), None) if self.before.is_some() => {
                senseless("`before` goes with `search`; pages of an entry are turned with `offset`")
            }
            (Some(entry), None) => {
                let offset = usize::try_from(self.offset.unwrap_or(0)).unwrap_or(usize::MAX);
                Ok(Wanted::Entry { entry: Seq(entry), offset })
            }
            (None, Some(_)) if self.offset.is_some() => {
                senseless("`offset` goes with `entry`; a search goes on with `before`")
            }
            (None, Some(text)) if text.trim().is_empty() => {
                senseless("`search` is empty: give the text to find")
            }
            (None, Some(text)) if text.len() > search::TEXT_BYTES_MAX => {
                let most = search::TEXT_BYTES_MAX;
                senseless(&format!("`search` has more than {most} bytes: give a shorter piece of the text"))
            }
            (None, Some(text)) => Ok(Wanted::Search { text, before: Seq(self.before.unwrap_or(u64::MAX)) }),
            (Some(_), Some(_)) => {
                senseless("give `entry` or `search`, not both: search first, then show an entry")
            }
            (None, None) => senseless(
                "give `entry`, the number in a line such as `[left out: … entry 431 …]`, or `search`, a text to find",
            ),
        }
    }
}

fn senseless<T>(why: &str) -> Result<T, Trouble> {
    Err(Trouble::Senseless(why.to_owned()))
}

/// `text`, or its beginning.
fn shortened(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let begin = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default();
    Cow::Owned(format!("{begin}…"))
}

/// The arguments' schema: the same text in every process.
fn schema() -> Json {
    let number =
        |about: &str, least: u64| json!({ "description": about, "minimum": least, "type": "integer" });
    let mut schema = json!({
        "additionalProperties": false,
        "properties": {
            "entry": number("The number of the entry to show.", 1),
            "offset": number("With `entry`: the byte to go on from, as the page before said. Default 0.", 0),
            "search": {
                "description": "The text to find: as it is, but upper and lower case count the same.",
                "type": "string",
            },
            "before": number("With `search`: look only at entries before this one. Default: all of them.", 1),
            "bytes_max": number("How long the answer may be, in bytes. Default 4096, at most 8192.", 1024),
        },
        "type": "object",
    });
    schema.sort_all_objects();
    Json::of(&schema).unwrap_or_else(|_| Json::empty_object())
}
