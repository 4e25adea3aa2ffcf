//! The fields of an answer to a tool's question, and what may be in them.

use provost_event::{ApprovalAnswer, Json};
use serde_json::{Map, Value};

use crate::{ApprovalQuestion, ToolQuestion, visible};

/// Fields of an answer; more aren't shown, and what they must have makes the question one that can't be answered.
const FIELDS_MAX: usize = 50;
/// Choices of a field.
const CHOICES_MAX: usize = 200;

/// A field of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerField {
    /// Its name.
    pub name: String,
    /// Its name for people, with hidden characters written out.
    pub label: String,
    /// What it is about, with hidden characters written out; empty if the tool doesn't say.
    pub about: String,
    /// What may be in it.
    pub kind: AnswerKind,
    /// Whether an answer must have it.
    pub is_required: bool,
    /// What is in it unless something else is given.
    pub default: Option<Value>,
}

/// What may be in a field.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// A text.
    Text {
        /// The fewest characters.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// Whether it is a whole one.
        is_whole: bool,
    },
    /// Yes or no.
    Truth,
    /// One of these.
    OneOf(Vec<AnswerChoice>),
    /// Some of these.
    SomeOf(Vec<AnswerChoice>),
    /// Something that only JSON can give.
    Other,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoice {
    /// What the tool gets.
    pub value: String,
    /// What people read, with hidden characters written out.
    pub label: String,
}

impl ToolQuestion {
    /// The fields of the answer, in the order of the schema.
    #[must_use]
    pub fn fields(&self) -> Vec<AnswerField> {
        let schema = self.schema.read::<Value>().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let all = schema.get("properties").and_then(Value::as_object);
        let field = |(name, field): (&String, &Value)| {
            let is_required = required.iter().any(|known| known.as_str() == Some(name));
            AnswerField::of(name, field, is_required)
        };
        all.into_iter().flatten().take(FIELDS_MAX).map(field).collect()
    }

    /// The first field that must be given and isn't among [`Self::fields`].
    fn unseen(&self) -> Option<String> {
        let schema = self.schema.read::<Value>().unwrap_or_default();
        let required = schema.get("required")?.as_array()?;
        let beyond = schema.get("properties")?.as_object()?.keys().skip(FIELDS_MAX);
        let mut beyond = beyond.filter(|name| required.iter().any(|known| known.as_str() == Some(name)));
        beyond.next().cloned()
    }

    /// The answer of a user who only agrees: yes, and defaults. `None` if there are no fields.
    ///
    /// # Errors
    /// The first field that must be given and isn't filled by that.
    pub fn agreed(&self) -> Result<Option<Map<String, Value>>, String> {
        let fields = self.fields();
        if fields.is_empty() {
            return Ok(None);
        }
        let is_yes = |field: &AnswerField| field.kind == AnswerKind::Truth && field.default.is_none();
        let yes = fields.into_iter().filter(is_yes);
        self.filled(yes.map(|field| (field.name, Value::Bool(true))).collect()).map(Some)
    }

    /// The answer with these fields: those that aren't given have their defaults.
    ///
    /// # Errors
    /// What is wrong with the first field that isn't right, with its name.
    pub fn filled(&self, mut given: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let fields = self.fields();
        if let Some(name) = given.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
            let known = fields.iter().map(AnswerField::named).collect::<Vec<_>>();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{}: there is no such field; there is {known}", visible(name)));
        }
        if let Some(name) = self.unseen() {
            return Err(format!(
                "{}: must be given, and is beyond the {FIELDS_MAX} fields that are read",
                visible(&name)
            ));
        }
        let mut answer = Map::new();
        for field in fields {
            match given.remove(&field.name).filter(|value| !value.is_null()).or(field.default.clone()) {
                Some(value) => {
                    field.objection(&value).map_or(Ok(()), |why| Err(format!("{}: {why}", field.named())))?;
                    answer.insert(field.name, value);
                }
                None if field.is_required => return Err(format!("{}: must be given", field.named())),
                None => {}
            }
        }
        Ok(answer)
    }
}

impl ApprovalQuestion {
    /// Why agreeing alone is no answer: the fields that the tool must be given; `None` if it is one.
    #[must_use]
    pub fn objection_to_agreeing(&self) -> Option<String> {
        let needed = self.question.as_ref().map(ToolQuestion::needed).filter(|needed| !needed.is_empty())?;
        Some(format!("the tool asks for {}, which agreeing alone doesn't give", visible(&needed.join(", "))))
    }

    /// The answer of a user who only agrees to what a tool asks: yes, and defaults. `None` if it asks for no fields, or if
    /// this is about a call.
    ///
    /// # Errors
    /// Why agreeing alone is no answer.
    pub fn agreed(&self) -> Result<Option<ApprovalAnswer>, String> {
        if let Some(why) = self.objection_to_agreeing() {
            return Err(why);
        }
        let content = self.question.as_ref().map(ToolQuestion::agreed).transpose()?.flatten();
        let answered = |content| Json::of(&content).map(|content| ApprovalAnswer::Answered { content });
        content.map(answered).transpose().map_err(|error| error.to_string())
    }

    /// The answer with these fields, to what a tool asks.
    ///
    /// # Errors
    /// When no tool asks, or a field isn't right.
    pub fn filled(&self, given: Map<String, Value>) -> Result<ApprovalAnswer, String> {
        let Some(asked) = &self.question else {
            return Err("no tool asks for fields: this is about a call".to_owned());
        };
        let content = Json::of(&asked.filled(given)?).map_err(|error| error.to_string())?;
        Ok(ApprovalAnswer::Answered { content })
    }
}

impl AnswerField {
    fn of(name: &str, schema: &Value, is_required: bool) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(visible).unwrap_or_default();
        let title = text("title");
        let kind = AnswerKind::of(schema);
        let default = schema.get("default").filter(|value| !value.is_null()).cloned();
        let mut field = Self {
            name: name.to_owned(),
            label: if title.trim().is_empty() { visible(name) } else { title },
            about: text("description"),
            kind,
            is_required,
            default: None,
        };
        // A default that isn't right is none.
        field.default = default.filter(|value| field.objection(value).is_none());
        field
    }

    /// Its name, and that for people where it is another.
    fn named(&self) -> String {
        let name = visible(&self.name);
        if name == self.label { name } else { format!("{name} ({})", self.label) }
    }

    /// Why a value can't be in it.
    fn objection(&self, value: &Value) -> Option<String> {
        let is_chosen = |choices: &[AnswerChoice], value: &Value| {
            choices.iter().any(|choice| value.as_str() == Some(&choice.value))
        };
        let fits = match &self.kind {
            AnswerKind::Text { min, max } => value.as_str().is_some_and(|text| {
                let length = text.chars().count() as u64;
                length >= *min && length <= *max
            }),
            AnswerKind::Number { min, max, is_whole } => value.as_f64().is_some_and(|number| {
                number >= *min && number <= *max && (!is_whole || number.fract() == 0.0)
            }),
            AnswerKind::Truth => value.is_boolean(),
            AnswerKind::OneOf(choices) => is_chosen(choices, value),
            AnswerKind::SomeOf(choices) => {
                value.as_array().is_some_and(|all| all.iter().all(|value| is_chosen(choices, value)))
            }
            AnswerKind::Other => true,
        };
        (!fits).then(|| format!("must be {}", self.expected()))
    }

    /// What may be in it, in words.
    #[must_use]
    pub fn expected(&self) -> String {
        let labels = |choices: &[AnswerChoice]| {
            let all = choices.iter().map(|choice| {
                let value = visible(&choice.value);
                if value == choice.label { value } else { format!("{value} ({})", choice.label) }
            });
            all.collect::<Vec<_>>().join(", ")
        };
        match &self.kind {
            AnswerKind::Text { min: 0, max: u64::MAX } => "a text".to_owned(),
            AnswerKind::Text { min, max: u64::MAX } => format!("a text of at least {min} characters"),
            AnswerKind::Text { min, max } => format!("a text of {min} to {max} characters"),
            AnswerKind::Number { min, max, is_whole } => {
                let what = if *is_whole { "a whole number" } else { "a number" };
                match (min.is_finite(), max.is_finite()) {
                    (false, false) => what.to_owned(),
                    (true, false) => format!("{what} of at least {min}"),
                    (false, true) => format!("{what} of at most {max}"),
                    (true, true) => format!("{what} from {min} to {max}"),
                }
            }
            AnswerKind::Truth => "yes or no".to_owned(),
            AnswerKind::OneOf(choices) => format!("one of {}", labels(choices)),
            AnswerKind::SomeOf(choices) => format!("some of {}, with commas between them", labels(choices)),
            AnswerKind::Other => "a JSON value".to_owned(),
        }
    }

    /// Reads what was typed. Nothing is the default, or leaves the field out.
    ///
    /// # Errors
    /// What it must be.
    pub fn typed(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match (&self.default, self.is_required) {
                (None, true) => Err(format!("must be {}", self.expected())),
                (default, _) => Ok(default.clone()),
            };
        }
        let must = || format!("must be {}", self.expected());
        let value = match &self.kind {
            AnswerKind::Text { .. } | AnswerKind::OneOf(_) => Value::from(text),
            AnswerKind::Number { .. } => {
                serde_json::from_str::<serde_json::Number>(text).map(Value::from).map_err(|_| must())?
            }
            AnswerKind::Truth => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => return Err(must()),
            },
            AnswerKind::SomeOf(_) => {
                Value::from(text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>())
            }
            AnswerKind::Other => serde_json::from_str(text).map_err(|_| must())?,
        };
        self.objection(&value).map_or(Ok(Some(value)), Err)
    }
}

impl AnswerKind {
    fn of(schema: &Value) -> Self {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => match choices(schema) {
                Some(choices) => Self::OneOf(choices),
                None => Self::Text {
                    min: count("minLength").unwrap_or(0),
                    max: count("maxLength").unwrap_or(u64::MAX),
                },
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                min: bound("minimum").unwrap_or(f64::NEG_INFINITY),
                max: bound("maximum").unwrap_or(f64::INFINITY),
                is_whole: kind == "integer",
            },
            Some("boolean") => Self::Truth,
            Some("array") => schema.get("items").and_then(choices).map_or(Self::Other, Self::SomeOf),
            _ => Self::Other,
        }
    }
}

/// The choices of a schema: `enum`, with `enumNames` or not, or constants with titles.
fn choices(schema: &Value) -> Option<Vec<AnswerChoice>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array).cloned().unwrap_or_default();
        let choice = |(at, value): (usize, &Value)| {
            let value = value.as_str()?.to_owned();
            let name = names.get(at).and_then(Value::as_str).unwrap_or(&value);
            Some(AnswerChoice { label: visible(name), value })
        };
        return Some(values.iter().enumerate().take(CHOICES_MAX).filter_map(choice).collect());
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choice = |one: &Value| {
        let value = one.get("const")?.as_str()?.to_owned();
        let name = one.get("title").and_then(Value::as_str).unwrap_or(&value);
        Some(AnswerChoice { label: visible(name), value })
    };
    Some(titled.iter().take(CHOICES_MAX).filter_map(choice).collect())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use provost_event::Json;
    use serde_json::{Map, Value, json};

    use crate::ToolQuestion;

    fn question() -> ToolQuestion {
        let schema = json!({
            "type": "object",
            "properties": {
                "branch": { "type": "string", "title": "Branch\u{202e}", "maxLength": 5 },
                "age": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
                "sure": { "type": "boolean" },
                "how": { "type": "string", "enum": ["m", "s"], "enumNames": ["merge", "squash"], "default": "other" },
                "colours": { "type": "array", "items": { "anyOf": [
                    { "const": "r", "title": "red" }, { "const": "g", "title": "green" }] } },
                "odd": { "type": "object" },
            },
            "required": ["branch", "how"],
        });
        ToolQuestion { message: "?".to_owned(), schema: Json::of(&schema).unwrap() }
    }

    fn filled(given: &Value) -> Result<Map<String, Value>, String> {
        question().filled(given.as_object().unwrap().clone())
    }

    #[test]
    fn an_answer_has_what_it_must_and_defaults_for_what_isnt_given() {
        let answer = filled(&json!({ "branch": "main", "how": "m", "colours": ["g"] })).unwrap();
        expect![[r#"{"branch":"main","age":3,"how":"m","colours":["g"]}"#]]
            .assert_eq(&Value::Object(answer).to_string());
    }

    #[test]
    fn what_cant_be_in_a_field_is_refused_with_its_name() {
        let refused = |given: Value| filled(&given).unwrap_err();
        let all = [
            refused(json!({})),
            refused(json!({ "branch": "main" })),
            refused(json!({ "branch": "mainly", "how": "m" })),
            refused(json!({ "branch": "a", "how": "merge" })),
            refused(json!({ "branch": "a", "how": "m", "age": 10 })),
            refused(json!({ "branch": "a", "how": "m", "age": 2.5 })),
            refused(json!({ "branch": "a", "how": "m", "sure": "yes" })),
            refused(json!({ "branch": "a", "how": "m", "colours": ["b"] })),
            refused(json!({ "branch": "a", "how": "m", "more": 1 })),
        ];
        expect![[r#"
            branch (Branch\u{202e}): must be given
            how: must be given
            branch (Branch\u{202e}): must be a text of 0 to 5 characters
            how: must be one of m (merge), s (squash)
            age: must be a whole number from 1 to 9
            age: must be a whole number from 1 to 9
            sure: must be yes or no
            colours: must be some of r (red), g (green), with commas between them
            more: there is no such field; there is branch (Branch\u{202e}), age, sure, how, colours, odd
        "#]]
        .assert_eq(&all.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn who_only_agrees_says_yes_and_gives_no_default_that_cant_be() {
        let schema = json!({ "type": "object", "properties": {
            "sure": { "type": "boolean" }, "n": { "type": "integer", "maximum": 5, "default": 99 },
            "how": { "type": "string", "default": "m" } } });
        let agreed = |schema: &Value| {
            let asked = ToolQuestion { message: "?".to_owned(), schema: Json::of(schema).unwrap() };
            asked.agreed().map(|answer| answer.map(|answer| Value::Object(answer).to_string()))
        };
        assert_eq!(agreed(&schema).unwrap(), Some(r#"{"sure":true,"how":"m"}"#.to_owned()));
        let needs = json!({ "type": "object", "properties": { "n": { "type": "integer", "maximum": 5, "default": 99 } },
            "required": ["n"] });
        assert_eq!(agreed(&needs).unwrap_err(), "n: must be given");
        assert_eq!(agreed(&json!({ "type": "object" })).unwrap(), None);
    }

    #[test]
    fn a_field_that_must_be_given_beyond_those_that_are_read_is_named() {
        let fields = (0..51).map(|number| (format!("f{number:02}"), json!({ "type": "string" })));
        let fields = fields.collect::<Map<_, _>>();
        let ask = |required: Value| {
            let schema = json!({ "type": "object", "properties": fields, "required": required });
            let asked = ToolQuestion { message: "?".to_owned(), schema: Json::of(&schema).unwrap() };
            asked.filled(Map::new())
        };
        assert_eq!(ask(json!([])), Ok(Map::new()));
        expect!["f50: must be given, and is beyond the 50 fields that are read"]
            .assert_eq(&ask(json!(["f50"])).unwrap_err());
    }

    #[test]
    fn what_is_typed_is_read_as_the_field_wants_it() {
        let fields = question().fields();
        let typed = |name: &str, text: &str| {
            let field = fields.iter().find(|field| field.name == name).unwrap();
            field.typed(text).map(|value| value.map(|value| value.to_string()))
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(typed("branch", " main "), some("\"main\""));
        assert_eq!(typed("branch", ""), Err("must be a text of 0 to 5 characters".to_owned()));
        assert_eq!(typed("age", ""), some("3"));
        assert_eq!(typed("age", "4"), some("4"));
        assert!(typed("age", "four").is_err());
        assert_eq!(typed("sure", "y"), some("true"));
        assert_eq!(typed("sure", ""), Ok(None));
        assert_eq!(typed("colours", "r, g"), some(r#"["r","g"]"#));
        assert_eq!(typed("odd", r#"{"a":1}"#), some(r#"{"a":1}"#));
    }
}
