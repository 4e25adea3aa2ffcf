//! Calls in the forms that models learned from other programs, turned into calls of the agent's own tools.
//!
//! This comes before everything that decides on a call: hooks, permissions, approvals and the tool see the result
//! only. The answer in the log keeps what the model sent.

mod value;

use provost_event::{CallForm, FieldForm, Json, ToolCall, ToolSpec, ValueForm};
use serde_json::{Map, Value};

use value::{fitted, in_own_form, might_fit_otherwise};

/// A call of one of the agent's tools, or why there is no telling what is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCall {
    /// The tool's own name; the name as it was called if no tool is meant.
    pub tool: String,
    /// The tool's own arguments.
    pub input: Json,
    /// Why the call isn't made, as text for the model.
    pub ambiguous: Option<String>,
}

/// The call as one of `tools`. A tool of the very name that was called is always the one that is meant; a name that no
/// tool has stays as it is.
#[must_use]
pub fn own_call(call: &ToolCall, tools: &[ToolSpec]) -> OwnCall {
    let given = call.input.read::<Value>().unwrap_or_default();
    let as_sent =
        |tool: &str, ambiguous| OwnCall { tool: tool.to_owned(), input: call.input.clone(), ambiguous };
    let meant = match meant_by(&call.name, &given, tools) {
        Ok(Some(meant)) => meant,
        Ok(None) => return as_sent(&call.name, None),
        Err(ambiguous) => return as_sent(&call.name, Some(ambiguous)),
    };
    let tool = &meant.tool.name;
    let Value::Object(fields) = &given else { return as_sent(tool, None) };
    match input_of(&meant, fields) {
        Ok(own) if own == *fields => as_sent(tool, None),
        Ok(own) => {
            let input = Json::of(&Value::Object(own)).unwrap_or_else(|_| call.input.clone());
            OwnCall { tool: tool.clone(), input, ambiguous: None }
        }
        Err(ambiguous) => as_sent(tool, Some(ambiguous)),
    }
}

/// A tool, and the form that a call of it has.
struct MeantTool<'a> {
    tool: &'a ToolSpec,
    form: Option<&'a CallForm>,
}

/// The tool that is called `name` with these arguments; none if there is no such tool.
fn meant_by<'a>(name: &str, given: &Value, tools: &'a [ToolSpec]) -> Result<Option<MeantTool<'a>>, String> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Ok(Some(MeantTool { tool, form: form_of(tool, name, given) }));
    }
    let has_form = |tool: &&ToolSpec| tool.forms.iter().any(|form| form.is_called(name) && fits(form, given));
    let mut meant: Vec<_> = tools.iter().filter(has_form).collect();
    if meant.is_empty() {
        meant = tools.iter().filter(|tool| tool.aliases.iter().any(|alias| alias == name)).collect();
    }
    match meant.as_slice() {
        [] => Ok(None),
        [tool] => Ok(Some(MeantTool { tool, form: form_of(tool, name, given) })),
        several => {
            let names =
                several.iter().map(|tool| format!("`{}`", tool.name)).collect::<Vec<_>>().join(" or ");
            Err(format!("There is no tool `{name}`, and it may mean {names}: call the one that you mean."))
        }
    }
}

/// The form of a call of `tool` by this name: one for that name, else the first.
fn form_of<'a>(tool: &'a ToolSpec, name: &str, given: &Value) -> Option<&'a CallForm> {
    let named = tool.forms.iter().find(|form| form.is_called(name) && fits(form, given));
    named.or_else(|| tool.forms.first().filter(|form| fits(form, given)))
}

/// Whether the arguments have the value that selects this form.
fn fits(form: &CallForm, given: &Value) -> bool {
    form.when.as_ref().is_none_or(|when| given.get(&when.field).and_then(Value::as_str) == Some(&when.value))
}

/// The tool's own arguments.
fn input_of(meant: &MeantTool<'_>, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let MeantTool { tool, form } = meant;
    let mut fields = Fields { tool: &tool.name, own: Map::new(), sources: Vec::new() };
    for (name, value) in given {
        let is_left_out = form.is_some_and(|form| {
            form.ignored.contains(name) || form.when.as_ref().is_some_and(|when| when.field == *name)
        });
        if is_left_out {
            continue;
        }
        let forms = form.map(|form| form.fields.as_slice()).unwrap_or_default();
        fields.add(name, value, forms)?;
    }
    let mut own = Value::Object(fields.own);
    if might_fit_otherwise(&own) {
        fitted(&mut own, &tool.input_schema.read().unwrap_or_default());
    }
    match own {
        Value::Object(own) => Ok(own),
        _ => Ok(given.clone()),
    }
}

/// Arguments of one object, each under the tool's own name.
struct Fields<'a> {
    tool: &'a str,
    own: Map<String, Value>,
    /// The tool's own name of each argument, and the name that it was given by.
    sources: Vec<(String, String)>,
}

impl Fields<'_> {
    fn add(&mut self, name: &str, value: &Value, forms: &[FieldForm]) -> Result<(), String> {
        let renamed = forms.iter().find(|form| form.names.iter().any(|other| other == name));
        let own =
            forms.iter().find(|form| form.field == name && form.names.iter().all(|other| other != name));
        match (renamed, own) {
            (Some(form), _) => self.put(name, &form.field, in_own_form(self.tool, &form.value, value)?)?,
            // Seconds by the tool's own name are seconds.
            (None, Some(form)) if form.value != ValueForm::Millis => {
                self.put(name, name, in_own_form(self.tool, &form.value, value)?)?;
            }
            (None, _) => self.put(name, name, Some(value.clone()))?,
        }
        if let Some(FieldForm { value: ValueForm::LineRange { count }, .. }) = renamed
            && let Some(lines) = value::lines_in(value)
        {
            self.put(name, count, Some(lines.into()))?;
        }
        Ok(())
    }

    /// Two different values of the same argument are no value.
    fn put(&mut self, given_as: &str, own: &str, value: Option<Value>) -> Result<(), String> {
        let Some(value) = value.filter(|value| !value.is_null() || given_as == own) else { return Ok(()) };
        match self.own.get(own).filter(|other| !other.is_null()) {
            Some(_) if value.is_null() => Ok(()),
            Some(other) if *other != value => {
                let before =
                    self.sources.iter().find(|(name, _)| name == own).map_or(own, |(_, given)| given);
                Err(format!(
                    "`{before}` and `{given_as}` both stand for the argument `{own}` of {}, and they differ: give \
                     only `{own}`.",
                    self.tool
                ))
            }
            Some(_) => Ok(()),
            None => {
                self.sources.push((own.to_owned(), given_as.to_owned()));
                self.own.insert(own.to_owned(), value);
                Ok(())
            }
        }
    }
}
