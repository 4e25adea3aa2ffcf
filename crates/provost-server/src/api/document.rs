//! The OpenAPI 3.1 document: its schemas are the JSON Schemas of the types that the routes take and give.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// What a route does.
pub(crate) struct Operation {
    pub(crate) path: String,
    method: &'static str,
    summary: String,
    parameters: SchemaOf,
    body: Option<SchemaOf>,
    answer: Answer,
    /// Its status where it is fulfilled.
    status: &'static str,
    /// Headers that it may have.
    headers: &'static [HeaderParameter],
}

/// A header of a request.
pub(crate) struct HeaderParameter {
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) description: &'static str,
    /// The schema of its value.
    pub(crate) schema: fn() -> Value,
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a route gives.
pub(crate) enum Answer {
    Json(SchemaOf),
    /// Events, with data of this type each.
    Events(SchemaOf),
    /// A WebSocket: what the server sends, and what a client does.
    Socket(SchemaOf, SchemaOf),
}

impl Answer {
    pub(crate) fn json<A: JsonSchema>() -> Self {
        Self::Json(|generator| generator.subschema_for::<A>())
    }

    pub(crate) fn socket<A: JsonSchema, B: JsonSchema>() -> Self {
        Self::Socket(|generator| generator.subschema_for::<A>(), |generator| generator.subschema_for::<B>())
    }

    pub(crate) fn events<A: JsonSchema>() -> Self {
        Self::Events(|generator| generator.subschema_for::<A>())
    }
}

impl Operation {
    pub(crate) fn get<Q: JsonSchema>(path: &str, summary: &str, answer: Answer) -> Self {
        Self {
            path: path.to_owned(),
            method: "get",
            summary: summary.to_owned(),
            parameters: Q::json_schema,
            body: None,
            answer,
            status: "200",
            headers: &[],
        }
    }

    pub(crate) fn post<B: JsonSchema>(path: &str, summary: &str, answer: Answer) -> Self {
        Self {
            method: "post",
            body: Some(|generator| generator.subschema_for::<B>()),
            ..Self::get::<super::NoParameters>(path, summary, answer)
        }
    }

    /// One that makes something new, once for an idempotency key.
    pub(crate) fn create<B: JsonSchema>(path: &str, summary: &str, answer: Answer) -> Self {
        Self { status: "201", headers: super::work::HEADERS, ..Self::post::<B>(path, summary, answer) }
    }

    /// The same, which takes headers.
    pub(crate) fn with_headers(self, headers: &'static [HeaderParameter]) -> Self {
        Self { headers, ..self }
    }
}

/// The operations of an API.
#[derive(Default)]
pub(crate) struct Document(Vec<Operation>);

impl Document {
    pub(crate) fn add(&mut self, operation: Operation) {
        self.0.push(operation);
    }

    pub(crate) fn json(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut generator = settings
            .with(|settings| settings.definitions_path = "/components/schemas".into())
            .into_generator();
        // Members that have a default needn't be given, and are always there in an answer.
        let settings = SchemaSettings::draft2020_12();
        let mut given = settings
            .with(|settings| settings.definitions_path = "/components/schemas".into())
            .into_generator();
        let mut paths = Map::new();
        for operation in &self.0 {
            let described = operation.json(&mut generator, &mut given);
            let methods = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
            if let Some(methods) = methods.as_object_mut() {
                methods.insert(operation.method.to_owned(), described);
            }
        }
        let problem = generator.subschema_for::<Problem>();
        let mut schemas = given.take_definitions(true);
        schemas.extend(generator.take_definitions(true));
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Provost",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Runs of autonomous agents under supervision: looking at them and acting on them.",
            },
            "security": [{ "token": [] }],
            "paths": paths,
            "components": {
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
                "responses": {
                    "Problem": {
                        "description": "Why the request wasn't fulfilled",
                        "content": { "application/problem+json": { "schema": problem } },
                    },
                },
                "schemas": schemas,
            },
        });
        bound_numbers(&mut document);
        document
    }
}

/// Says of each number how large it may be, which its format says only to who knows it.
fn bound_numbers(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(bound_numbers),
        Value::Object(members) => {
            let max = match members.get("format").and_then(Value::as_str) {
                Some("uint16") => Some(u64::from(u16::MAX)),
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint64" | "uint") => Some(u64::MAX),
                _ => None,
            };
            if let Some(max) = max.filter(|_| !members.contains_key("maximum")) {
                members.insert("maximum".to_owned(), max.into());
            }
            members.values_mut().for_each(bound_numbers);
        }
        _ => {}
    }
}

impl Operation {
    fn json(&self, generator: &mut SchemaGenerator, given: &mut SchemaGenerator) -> Value {
        let answer = self.answer(generator);
        let mut operation = json!({
            "summary": self.summary,
            "parameters": self.parameters(given),
            "responses": {
                self.status(): answer,
                "default": { "$ref": "#/components/responses/Problem" },
            },
        });
        if let (Some(body), Some(members)) = (self.body, operation.as_object_mut()) {
            let schema = body(given);
            let content = json!({ "application/json": { "schema": schema } });
            members.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        operation
    }

    const fn status(&self) -> &'static str {
        match self.answer {
            Answer::Json(_) | Answer::Events(_) => self.status,
            Answer::Socket(..) => "101",
        }
    }

    /// What it gives where it is fulfilled.
    fn answer(&self, generator: &mut SchemaGenerator) -> Value {
        let (content, schema) = match &self.answer {
            Answer::Json(schema) => ("application/json", schema(generator).to_value()),
            Answer::Events(data) => {
                ("text/event-stream", json!({ "type": "string", "x-event-data": data(generator) }))
            }
            Answer::Socket(server, client) => {
                return json!({
                    "description": "Messages of JSON follow, over the WebSocket",
                    "x-server-sends": server(generator),
                    "x-client-sends": client(generator),
                });
            }
        };
        json!({ "description": "As asked for", "content": { content: { "schema": schema } } })
    }

    /// Those in the path, and the members of the type that the query is read into.
    fn parameters(&self, generator: &mut SchemaGenerator) -> Vec<Value> {
        let in_path = self.path.split(['{', '}']).skip(1).step_by(2).map(|name| {
            let schema = match name {
                "run" => json!({ "type": "string" }),
                _ => json!({ "type": "integer", "minimum": 0 }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        });
        let query = (self.parameters)(generator).to_value();
        let members = query.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let in_query = members.into_iter().map(|(name, mut schema)| {
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            json!({ "name": name, "in": "query", "required": false, "schema": schema, "description": description })
        });
        let in_head = self.headers.iter().map(|HeaderParameter { name, description, schema }| {
            json!({ "name": name, "in": "header", "required": false, "schema": schema(), "description": description })
        });
        in_path.chain(in_query).chain(in_head).collect()
    }
}
