//! A tool as its server defines it, and what of that is refused.

use provost_event::{Access, Json, ToolSpec, ToolSubject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ServerSetup;
use crate::schema;
use crate::shown::{has_hidden, quoted, revealed};

/// Bytes of a tool's definition.
pub const DEFINITION_BYTES_MAX: usize = 128 * 1024;
/// Tools of a server.
pub const TOOLS_MAX: usize = 1_000;
/// Bytes of the definitions of all tools of a server.
pub(crate) const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Refused tools that are named.
const REFUSED_MAX: usize = 100;
/// Characters of a tool's name as models know it: providers take no longer ones.
const NAME_CHARS_MAX: usize = 64;
/// Characters of the part of a longer name that stays readable.
const NAME_KEPT: usize = 54;
/// Bytes of output for the model.
const OUTPUT_BYTES_MAX: usize = 32 * 1024;
/// Characters of a refused name that are shown.
const SHOWN_NAME_CHARS: usize = 80;

/// A tool as its server defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name on the server.
    pub name: String,
    /// Its title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server says of it, as it is.
    #[serde(default)]
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Value,
    /// The schema of its structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server claims of it, such as that it only reads. Shown, never believed.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub annotations: Value,
}

/// A tool that isn't taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTool {
    /// Its name, with hidden characters written out.
    pub name: String,
    /// Why not.
    pub why: String,
}

impl ToolDefinition {
    /// Reads the definition of a tool.
    ///
    /// # Errors
    /// Why it isn't taken.
    pub(crate) fn read(raw: &Value) -> Result<Self, RefusedTool> {
        let text = |field: &str| raw.get(field).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").unwrap_or_default();
        let refused = |why: String| {
            let shown = revealed(&name).chars().take(SHOWN_NAME_CHARS).collect::<String>();
            RefusedTool { name: shown.replace('\n', "\\n"), why }
        };
        if let Some(why) = objection_to_name(&name) {
            return Err(refused(why.to_owned()));
        }
        let bytes = serde_json::to_string(raw).map_or(usize::MAX, |text| text.len());
        if bytes > DEFINITION_BYTES_MAX {
            return Err(refused(format!(
                "its definition has {bytes} bytes, and a tool may have {DEFINITION_BYTES_MAX}"
            )));
        }
        let input_schema =
            raw.get("inputSchema").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if let Some(why) = schema::objection(&input_schema) {
            return Err(refused(why));
        }
        Ok(Self {
            title: text("title"),
            description: text("description").unwrap_or_default(),
            input_schema,
            output_schema: raw.get("outputSchema").filter(|schema| !schema.is_null()).cloned(),
            annotations: raw.get("annotations").cloned().unwrap_or_default(),
            name,
        })
    }

    /// What the server claims of it, each as it is written there, such as `readOnlyHint`.
    #[must_use]
    pub fn claims(&self) -> Vec<String> {
        let Value::Object(fields) = &self.annotations else { return Vec::new() };
        let is_true = |value: &Value| value.as_bool() == Some(true);
        fields.iter().filter(|(_, value)| is_true(value)).map(|(name, _)| revealed(name)).collect()
    }

    /// The tool for models: under its own name among all tools, its description quoted.
    #[must_use]
    pub fn spec(&self, server: &ServerSetup) -> ToolSpec {
        let schema = schema::for_models(&self.input_schema);
        let schema = with_type(schema);
        ToolSpec {
            access: Access::Anything,
            subject: server.subjects.get(&self.name).cloned().unwrap_or_default(),
            idempotent: server.is_idempotent(&self.name),
            timeout_ms: u64::try_from(server.timeout.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: OUTPUT_BYTES_MAX,
            ..ToolSpec::new(
                tool_name(&server.name, &self.name),
                quoted(&server.name, &self.description),
                Json::of(&schema).unwrap_or_else(|_| Json::empty_object()),
            )
        }
    }

    /// Why calls can't be about `subject`; `None` if they can. An argument that the schema doesn't have would never be
    /// compared with a pattern.
    #[must_use]
    pub fn objection_to_subject(&self, subject: &ToolSubject) -> Option<String> {
        let field = subject.field()?;
        let known = self.input_schema.get("properties").and_then(|fields| fields.get(field));
        match known {
            None => Some(format!("it has no argument `{field}`")),
            Some(known) => match known.get("type").and_then(Value::as_str) {
                Some("string") => None,
                _ => Some(format!("its argument `{field}` isn't a text")),
            },
        }
    }

    /// Its definition in lines, for people to compare: everything that the user agrees to.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(
            self.title.iter().map(|title| format!("title: {}", revealed(title).replace('\n', "\\n"))),
        );
        lines.extend(revealed(&self.description).lines().map(|line| format!("> {line}")));
        for (what, value) in
            [("arguments", Some(&self.input_schema)), ("results", self.output_schema.as_ref())]
        {
            let Some(value) = value else { continue };
            lines.push(format!("{what}:"));
            lines.extend(revealed(&format!("{value:#}")).lines().map(|line| format!("  {line}")));
        }
        if !self.annotations.is_null() {
            lines.push(format!(
                "claims, which count for nothing: {}",
                revealed(&self.annotations.to_string())
            ));
        }
        lines
    }
}

/// Providers want to know that the arguments are an object.
fn with_type(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| Value::from("object"));
        fields.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    schema
}

fn objection_to_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if name.is_empty() {
        return Some("it has no name");
    }
    if has_hidden(name) {
        return Some("its name has characters that people don't see");
    }
    if name.len() > 128 {
        return Some("its name is longer than 128 characters");
    }
    (!name.chars().all(fits)).then_some("its name has characters besides letters, digits, _, -, . and /")
}

/// The name under which models, permissions and hooks know a tool: `mcp__SERVER__TOOL`. Characters that providers
/// don't take become `_`, and a name that is too long for them ends with a fingerprint.
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name = format!("mcp__{server}__{}", tool.chars().map(plain).collect::<String>());
    if name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let kept = name.chars().take(NAME_KEPT).collect::<String>();
    format!("{kept}_{}", hash.chars().take(8).collect::<String>())
}

/// What of a list of tools is taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<ToolDefinition>,
    /// At most [`REFUSED_MAX`]; the last one says how many more there are.
    pub(crate) refused: Vec<RefusedTool>,
    bytes: usize,
    unnamed: u64,
}

impl Listed {
    /// Reads definitions. Of two tools that models would know by the same name, the first is taken; one that holds a token
    /// of the user's login isn't.
    pub(crate) fn read(&mut self, server: &str, raw: &[Value], tokens: &[String]) {
        for raw in raw {
            match self.taken(server, raw, tokens) {
                Ok(tool) => self.tools.push(tool),
                Err(refused) => self.refuse(refused),
            }
        }
    }

    fn taken(&mut self, server: &str, raw: &Value, tokens: &[String]) -> Result<ToolDefinition, RefusedTool> {
        let text = raw.to_string();
        if tokens.iter().any(|token| text.contains(token)) {
            let why = "its definition holds the user's login".to_owned();
            return Err(RefusedTool { name: "[secret]".to_owned(), why });
        }
        let tool = ToolDefinition::read(raw)?;
        let refused = |why: String| Err(RefusedTool { name: tool.name.clone(), why });
        if self.tools.len() >= TOOLS_MAX {
            return refused(format!("a server may have {TOOLS_MAX} tools"));
        }
        let name = tool_name(server, &tool.name);
        if let Some(twin) = self.tools.iter().find(|known| tool_name(server, &known.name) == name) {
            return refused(format!("it can't be told from the tool `{}`", twin.name));
        }
        if self.bytes.saturating_add(text.len()) > LIST_BYTES_MAX {
            return refused(format!("the tools of a server may have {LIST_BYTES_MAX} bytes together"));
        }
        self.bytes = self.bytes.saturating_add(text.len());
        Ok(tool)
    }

    fn refuse(&mut self, refused: RefusedTool) {
        if self.refused.len() < REFUSED_MAX {
            return self.refused.push(refused);
        }
        self.unnamed = self.unnamed.saturating_add(1);
        if let Some(last) = self.refused.last_mut() {
            *last = RefusedTool {
                name: format!("{} more", self.unnamed.saturating_add(1)),
                why: "they aren't named one by one".to_owned(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Listed, tool_name};

    #[test]
    fn models_know_a_tool_by_its_server_and_a_name_that_providers_take() {
        assert_eq!(tool_name("git", "git_log"), "mcp__git__git_log");
        assert_eq!(tool_name("fs", "dir/list.all"), "mcp__fs__dir_list_all");
        let long = tool_name("filesystem", &"a".repeat(100));
        assert_eq!(long.len(), 63);
        assert_ne!(long, tool_name("filesystem", &"a".repeat(101)));
    }

    #[test]
    fn what_is_refused_of_a_list_is_named() {
        let raw = [
            json!({ "name": "fine", "inputSchema": { "type": "object" } }),
            json!({ "name": "a.b" }),
            json!({ "name": "a_b" }),
            json!({ "name": "\u{1b}[31mred\u{202e}" }),
            json!({ "inputSchema": {} }),
            json!({ "name": "big", "description": "x".repeat(200_000) }),
            json!({ "name": "far", "inputSchema": { "$ref": "https://x.example/" } }),
        ];
        let mut listed = Listed::default();
        listed.read("s", &raw, &[]);
        assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["fine", "a.b"]);
        let refused =
            listed.refused.iter().map(|tool| format!("{}: {}", tool.name, tool.why)).collect::<Vec<_>>();
        assert_eq!(
            refused,
            [
                "a_b: it can't be told from the tool `a.b`",
                "\\u{1b}[31mred\\u{202e}: its name has characters that people don't see",
                ": it has no name",
                "big: its definition has 200031 bytes, and a tool may have 131072",
                "far: the schema of its arguments refers to https://x.example/, which is elsewhere",
            ]
        );
    }
}
