//! Data for `cargo xtask wire-check`, which checks it with the providers' own types: every kind of request, as
//! sent to a server; and what is parsed from recorded answers.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use provost_engine::Answer;
use provost_event::{Block, Effort, Purpose, RunId, SessionId};
use provost_harness::{Message, Part, Role, ToolChoice};
use provost_llm::{Provider, ProviderModel, ProviderOptions, Providers, Reasoning};
use serde_json::{Value, json};

use crate::gemini_support::png;
use crate::matrix::whole;
use crate::server::{ReceivedRequest, Reply, Server};
use crate::speaker::{
    Anthropic, Called, Gemini, OpenaiChat, OpenaiResponses, SPEAKERS, Speaker, Spoken, Thought,
};
use crate::support::{self, Conversation, result, tool};

/// The file for request bodies, one JSON object per line.
const BODIES: &str = "PROVOST_WIRE_BODIES";
/// The file with recorded answers, and the one for the parsed results.
const RECORDINGS: &str = "PROVOST_WIRE_RECORDINGS";
const READINGS: &str = "PROVOST_WIRE_READINGS";
const TURNS: usize = 14;

/// A model under test, with its built-in provider.
struct Target {
    speaker: &'static dyn Speaker,
    provider: &'static str,
    model: &'static str,
    reasoning: Option<Reasoning>,
}

const TARGETS: [Target; 11] = [
    Target {
        speaker: &Anthropic,
        provider: "anthropic",
        model: "claude-opus-5-5",
        reasoning: Some(Reasoning::Effort),
    },
    Target {
        speaker: &Anthropic,
        provider: "anthropic",
        model: "claude-haiku-4-5",
        reasoning: Some(Reasoning::Budget),
    },
    Target {
        speaker: &Anthropic,
        provider: "anthropic",
        model: "claude-3-5-haiku",
        reasoning: Some(Reasoning::None),
    },
    Target {
        speaker: &OpenaiResponses,
        provider: "openai",
        model: "gpt-5.4",
        reasoning: Some(Reasoning::Effort),
    },
    Target {
        speaker: &OpenaiResponses,
        provider: "openai",
        model: "gpt-4.1",
        reasoning: Some(Reasoning::None),
    },
    Target {
        speaker: &OpenaiChat,
        provider: "openai-chat",
        model: "gpt-5",
        reasoning: Some(Reasoning::Effort),
    },
    Target {
        speaker: &OpenaiChat,
        provider: "openai-chat",
        model: "gpt-5.6",
        reasoning: Some(Reasoning::Effort),
    },
    Target {
        speaker: &OpenaiChat,
        provider: "openai-chat",
        model: "gpt-4.1",
        reasoning: Some(Reasoning::None),
    },
    Target {
        speaker: &Gemini,
        provider: "gemini",
        model: "gemini-3.1-pro",
        reasoning: Some(Reasoning::Effort),
    },
    Target {
        speaker: &Gemini,
        provider: "gemini",
        model: "gemini-2.5-flash",
        reasoning: Some(Reasoning::Budget),
    },
    Target { speaker: &Gemini, provider: "gemini", model: "gemma-4", reasoning: Some(Reasoning::None) },
];

impl Target {
    fn model(&self, base_url: &str) -> ProviderModel {
        let built_in = Providers::built_in().get(self.provider).unwrap().clone();
        ProviderModel::new(ProviderOptions {
            provider: Provider { base_url: base_url.to_owned(), ..built_in },
            model: self.model.to_owned(),
            reasoning: self.reasoning,
            ..support::options(self.speaker.wire(), base_url)
        })
        .unwrap()
    }

    /// The request for `conversation`, and the answer, which is `spoken`.
    async fn asked(&self, conversation: &Conversation, spoken: &Spoken) -> (ReceivedRequest, Answer) {
        let server = Server::start([whole(self.speaker, &self.speaker.events(spoken))]).await;
        let answer = conversation.ask(&self.model(&server.url())).await.unwrap();
        (server.seen().asked.remove(0), answer)
    }
}

/// The answer of a model that calls this many tools, in its turn `n`.
fn calling(n: usize, calls: usize) -> Spoken {
    let call = |place: usize| Called {
        id: format!("call_{n}_{place}"),
        name: if place.is_multiple_of(2) { "search" } else { "shell" }.to_owned(),
        pieces: vec![format!("{{\"turn\":{n},"), "\"pattern\":\"fn add\\n\"}".to_owned()],
    };
    let seal = format!("c2Vh{n:02}+/");
    let thought = Thought { pieces: vec!["Hm… ".to_owned(), "\"so\"\n".to_owned()], seal };
    Spoken {
        thought: Some(thought),
        calls: (0..calls).map(call).collect(),
        ..Spoken::text(&["I look at ", "it."])
    }
}

/// All kinds of requests for one model, each with its name.
async fn kinds(target: &Target) -> Vec<(String, ReceivedRequest)> {
    let first = Conversation::new("go");
    let mut kinds = vec![("first turn".to_owned(), target.asked(&first, &calling(0, 1)).await.0)];
    let mut add = |kind: &str, asked: ReceivedRequest| kinds.push((kind.to_owned(), asked));
    let ends = Spoken::text(&["Done."]);
    let (long, asked) = many_turns(target).await;
    add("14 turns", asked);
    add("parallel tools", target.asked(&called(target, 3, |_| false).await, &ends).await.0);
    add("tool errors", target.asked(&called(target, 2, |place| place == 0).await, &ends).await.0);
    add("images both ways", target.asked(&with_images(target).await, &ends).await.0);
    for (kind, conversation) in asides(long) {
        add(kind, target.asked(&conversation, &ends).await.0);
    }
    for (kind, choice) in
        [("tool choice required", ToolChoice::Required), ("tool choice none", ToolChoice::None)]
    {
        let conversation = Conversation { tool_choice: choice, ..Conversation::new("go") };
        add(kind, target.asked(&conversation, &ends).await.0);
        let conversation = Conversation { effort: Some(Effort::Low), ..conversation };
        add(&format!("{kind}, with an effort"), target.asked(&conversation, &ends).await.0);
    }
    for effort in [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High] {
        for cap in [1_024, 64_000] {
            let conversation =
                Conversation { effort: Some(effort), output_tokens_max: cap, ..Conversation::new("go") };
            add(&format!("effort {effort:?}, {cap} tokens"), target.asked(&conversation, &ends).await.0);
        }
    }
    for before in &TARGETS {
        let conversation = called(before, 2, |_| false).await;
        add(
            &format!("after {}/{}", before.provider, before.model),
            target.asked(&conversation, &ends).await.0,
        );
    }
    kinds
}

/// A conversation with its last request.
async fn many_turns(target: &Target) -> (Conversation, ReceivedRequest) {
    let mut conversation = Conversation::new("go");
    for n in 1..TURNS {
        let (_, answer) = target.asked(&conversation, &calling(n, n % 3)).await;
        conversation.answered(&answer, if n % 5 == 0 { "" } else { "It says: \"ü\" 🦀\n\t\u{1}" });
    }
    let (asked, _) = target.asked(&conversation, &calling(TURNS, 1)).await;
    (conversation, asked)
}

/// A conversation in which `target` has called this many tools at once, some of which failed.
async fn called(target: &Target, calls: usize, fails: impl Fn(usize) -> bool) -> Conversation {
    let mut conversation = Conversation::new("go");
    let (_, answer) = target.asked(&conversation, &calling(1, calls)).await;
    conversation.answered(&answer, "It says so.");
    let message = conversation.messages.pop().unwrap();
    let parts = message.parts.iter().enumerate().map(|(place, part)| match part {
        Part::ToolResult { call, tool, .. } if fails(place) => result(call, tool, "no such file", true),
        part => part.clone(),
    });
    conversation.push(Role::User, parts.collect());
    conversation
}

async fn with_images(target: &Target) -> Conversation {
    let mut conversation = Conversation::new("go");
    let words = Part::Block(Block::Text("Look:".to_owned()));
    conversation.push(Role::User, vec![words, Part::Image(png())]);
    let (_, answer) = target.asked(&conversation, &calling(1, 2)).await;
    conversation.answered(&answer, "A picture.");
    let message = conversation.messages.pop().unwrap();
    let parts = message.parts.iter().map(|part| match part.clone() {
        Part::ToolResult { call, tool, output, is_error, .. } => {
            Part::ToolResult { call, tool, output, images: vec![png(), png()], is_error }
        }
        part => part,
    });
    conversation.push(Role::User, parts.collect());
    conversation
}

/// Calls besides the turns of `long`: about it, and those of other agents.
fn asides(long: Conversation) -> [(&'static str, Conversation); 4] {
    let question = |text: &str, purpose| {
        let mut messages = long.messages.clone();
        messages.push(Message::new(Role::User, vec![Part::Block(Block::Text(text.to_owned()))]).into());
        Conversation {
            purpose,
            tool_choice: ToolChoice::None,
            messages,
            tools: long.tools.clone(),
            ..Conversation::new("go")
        }
    };
    let sub_agent = Conversation {
        session: SessionId { run: RunId::from_entropy(7), agent: 3 },
        system: "You search.".to_owned(),
        tools: vec![tool("read_file"), tool("spawn_agent"), tool("apply_patch")].into(),
        effort: Some(Effort::Low),
        ..Conversation::new("find it")
    };
    let judge = Conversation { effort: Some(Effort::Low), ..Conversation::to_judge("is it done?", 0) };
    [
        ("compaction", question("Sum up.", Purpose::Summary)),
        ("final summary", question("You have reached a limit.", Purpose::FinalSummary)),
        ("sub-agent", sub_agent),
        ("judge", judge),
    ]
}

/// Writes the bodies to the file named in `PROVOST_WIRE_BODIES`, if it is set.
#[tokio::test]
async fn every_kind_of_request_is_made_for_every_wire() {
    let mut lines = Vec::new();
    for target in &TARGETS {
        let kinds = kinds(target).await;
        assert_eq!(kinds.len(), 21 + TARGETS.len(), "{}", target.model);
        for (kind, asked) in kinds {
            let line = asked.head.lines().next().unwrap();
            let wire = target.speaker.wire();
            let body = asked.json();
            lines
                .push(json!({"wire": wire, "model": target.model, "kind": kind, "line": line, "body": body}));
        }
    }
    if let Some(path) = std::env::var_os(BODIES) {
        write(path.into(), &lines);
    }
}

/// Parses each provider's answer in the file of `PROVOST_WIRE_RECORDINGS`, and writes the results to that of
/// `PROVOST_WIRE_READINGS`.
#[tokio::test]
#[ignore = "reads recordings that `cargo xtask wire-check --recordings` prepares"]
async fn recorded_answers_are_read() {
    let from = std::env::var_os(RECORDINGS).unwrap();
    let to = std::env::var_os(READINGS).unwrap();
    let mut readings = Vec::new();
    for line in fs::read_to_string(from).unwrap().lines() {
        let recording: Value = serde_json::from_str(line).unwrap();
        readings.push(json!({"name": recording["name"], "read": reading(&recording).await}));
    }
    write(to.into(), &readings);
}

/// The parsed result of a recorded answer.
async fn reading(recording: &Value) -> Value {
    let text = |field: &str| recording[field].as_str().unwrap();
    let speaker = SPEAKERS.into_iter().find(|speaker| speaker.wire().name() == text("wire")).unwrap();
    let status = recording["status"].as_u64().unwrap();
    let body = text("body");
    let kind = text("content_type");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Recorded\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let server = Server::start([Reply::Cut(answer.into_bytes())]).await;
    let model = ProviderModel::new(support::options(speaker.wire(), server.url())).unwrap();
    match Conversation::new("go").ask(&model).await {
        Ok(answer) => said(&answer),
        Err(failure) => json!({"failure": failure.class, "message": failure.message}),
    }
}

fn said(answer: &Answer) -> Value {
    let texts = answer.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let calls = answer.content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => {
            let input = serde_json::from_str(call.input.text()).unwrap_or_else(|_| json!(call.input.text()));
            Some(json!({"name": call.name, "input": input}))
        }
        _ => None,
    });
    json!({
        "text": texts.collect::<String>(),
        "calls": calls.collect::<Vec<Value>>(),
        "usage": {
            "prompt": answer.usage.prompt_tokens(),
            "cached": answer.usage.cache_read_tokens,
            "output": answer.usage.output_tokens,
            "certainty": answer.usage.certainty,
        },
        "stop": answer.stop,
    })
}

fn write(path: PathBuf, lines: &[Value]) {
    let mut file = fs::File::create(path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}
