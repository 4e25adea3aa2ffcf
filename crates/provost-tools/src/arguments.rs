//! Arguments of tools: their schemas, and parsing them.

use provost_event::Json;
use provost_harness::ToolOutput;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the JSON Schema of `A`, the same text at every call: only types, bounds and descriptions.
pub(crate) fn schema_of<A: JsonSchema>() -> Json {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    RecursiveTransform(tidy).transform(&mut schema);
    schema.remove("description");
    let mut value = schema.to_value();
    // Otherwise the order would depend on the features of the program's JSON library.
    value.sort_all_objects();
    Json::of(&value).unwrap_or_else(|_| Json::empty_object())
}

/// The name of the type `A` in snake case, as a tool's name.
pub(crate) fn name_of<A: JsonSchema>() -> String {
    let mut name = String::new();
    for letter in A::schema_name().chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// The documentation of the type `A`; empty if it has none.
pub(crate) fn description_of<A: JsonSchema>() -> String {
    let schema = schemars::schema_for!(A);
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Removes what is useless to a model: titles, number formats, and that an optional field may be null.
fn tidy(schema: &mut Schema) {
    for noise in ["title", "format"] {
        // A property of that name is an object or a boolean, the keyword is text.
        if schema.get(noise).is_some_and(Value::is_string) {
            schema.remove(noise);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    let types = schema.get("type").and_then(Value::as_array).cloned();
    if let Some([only]) =
        types.map(|all| all.into_iter().filter(|name| name != "null").collect::<Vec<_>>()).as_deref()
    {
        schema.insert("type".to_owned(), only.clone());
    }
}

/// Parses `input` as an `A`, or reports which field doesn't fit, what it got, and which fields exist.
pub(crate) fn read<A: DeserializeOwned + JsonSchema>(tool: &str, input: &Json) -> Result<A, ToolOutput> {
    // Parsed as a value first: the messages then name fields instead of columns.
    let value: Value = input.read().map_err(|error| misfit::<A>(tool, "", &error.to_string()))?;
    if !value.is_object() {
        // A list would be taken as the fields in order.
        return Err(misfit::<A>(tool, "", "they must be one JSON object"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        misfit::<A>(tool, &path, &error.into_inner().to_string())
    })
}

/// `output` with the fact that the argument `name` was above the maximum, which counted in its place. Both are in its unit.
pub(crate) fn limited(output: ToolOutput, name: &str, asked: Option<u128>, most: u128) -> ToolOutput {
    let Some(asked) = asked.filter(|asked| *asked > most) else { return output };
    let text = format!("{}\n[{name} {asked} is above the maximum: {most} counted]", output.text);
    ToolOutput { text, ..output }
}

fn misfit<A: JsonSchema>(tool: &str, path: &str, message: &str) -> ToolOutput {
    let at = if path.is_empty() || path == "." { String::new() } else { format!("`{path}`: ") };
    ToolOutput::rejected(format!(
        "the arguments of {tool} don't fit: {at}{message}\nits fields: {}",
        fields_of::<A>()
    ))
}

/// Lists the fields with their types, the required ones first.
fn fields_of<A: JsonSchema>() -> String {
    let schema: Value = schema_of::<A>().read().unwrap_or_default();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let optional =
        properties.into_iter().flatten().map(|(name, _)| name.as_str()).filter(|n| !required.contains(n));
    let kind =
        |name: &str| properties.and_then(|all| all.get(name)?.get("type")?.as_str()).unwrap_or("value");
    let with_kind = |name: &&str| format!("`{name}` ({}, required)", kind(name));
    required
        .iter()
        .map(with_kind)
        .chain(optional.map(|name| format!("`{name}` ({})", kind(name))))
        .collect::<Vec<_>>()
        .join(", ")
}
