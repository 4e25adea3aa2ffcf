//! Thinking that its provider only accepts after the request that it was an answer to: a server with the checks of
//! the provider's documentation ("Preserved thinking"), and whole conversations with it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    Access, AgentPolicy, Block, Json, Limits, ModelPolicy, Outcome, RunId, RunPolicy, StepMode, ToolSpec,
};
use provost_harness::{
    AgentHarness, BackendError, HarnessDeps, HarnessError, Message, Models, Part, Role, Tool, ToolContext,
    ToolOutput, ToolRegistry, TurnState,
};
use provost_llm::{ProviderModel, ProviderOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::anthropic_support::*;
use crate::server::{ReceivedRequest, Reply, Server, plain, streamed};
use crate::support::{Conversation, result, still_clock, tool};

/// The provider's check, and its results.
#[derive(Default)]
struct Checker {
    answers: AtomicU32,
    summaries: AtomicU32,
    /// The errors of refused requests.
    refused: Mutex<Vec<String>>,
    /// The number of thinking blocks in each accepted request.
    accepted: Mutex<Vec<usize>>,
    /// Refuses all thinking, like a provider that has lost its keys.
    refuses_all: bool,
}

/// The request before a block, without cache marks.
fn prefix(body: &Value, message: usize, block: usize) -> String {
    let strip = |value: &Value| {
        let mut value = value.clone();
        for item in value.as_array_mut().into_iter().flatten() {
            item.as_object_mut().unwrap().remove("cache_control");
        }
        value
    };
    let messages = body["messages"].as_array().unwrap();
    // A message that isn't written yet is empty.
    let within = messages.get(message).map_or(&[][..], |at| &at["content"].as_array().unwrap()[..block]);
    let before = json!([strip(&body["system"]), strip(&body["tools"]), messages[..message], within]);
    let hash = before.to_string().bytes().fold(14_695_981_039_346_656_037_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    });
    format!("seal-{hash:016x}")
}

impl Checker {
    /// The first invalid block, if there is one.
    fn check(&self, body: &Value) -> Result<usize, String> {
        let mut thoughts = 0;
        for (place, message) in body["messages"].as_array().unwrap().iter().enumerate() {
            for (at, block) in message["content"].as_array().unwrap().iter().enumerate() {
                if block["type"] != "thinking" {
                    continue;
                }
                thoughts += 1;
                let is_bound = block["signature"] == prefix(body, place, at);
                if !is_bound || self.refuses_all {
                    return Err(format!(
                        "messages.{place}.content.{at}: Invalid `signature` in `thinking` block. The block is \
                         bound to a different conversation."
                    ));
                }
            }
        }
        Ok(thoughts)
    }

    fn answer(&self, asked: &ReceivedRequest, turns: u32) -> Vec<u8> {
        let body = asked.json();
        match self.check(&body) {
            Ok(thoughts) => self.accepted.lock().unwrap().push(thoughts),
            Err(why) => {
                self.refused.lock().unwrap().push(why.clone());
                return plain(400, "", &refusal("invalid_request_error", &why));
            }
        }
        let messages = body["messages"].as_array().unwrap();
        let seal = json!({"type": "signature_delta", "signature": prefix(&body, messages.len(), 0)});
        let thought = json!({"type": "thinking_delta", "thinking": "Let me see."});
        let thinking =
            block(0, json!({"type": "thinking", "thinking": "", "signature": ""}), &[thought, seal]);
        if body["tool_choice"]["type"] == "none" {
            self.summaries.fetch_add(1, Ordering::Relaxed);
            let text = text_block(1, &["The goal is known; much was looked at; nothing else is open."]);
            return streamed([stream(&[thinking, text], "end_turn").as_bytes()]);
        }
        let n = self.answers.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = if n >= turns {
            stream(&[thinking, text_block(1, &["All done."])], "end_turn")
        } else {
            // Trimming can't shorten it, so that there are summaries too.
            let text = text_block(1, &[&"I look at the next one of them. ".repeat(12)]);
            let call = tool_block(2, &format!("call_{n}"), "search", &[&format!("{{\"pattern\":\"p{n}\"}}")]);
            stream(&[thinking, text, call], "tool_use")
        };
        streamed([answer.as_bytes()])
    }
}

async fn serve(checker: &Arc<Checker>, turns: u32) -> Server {
    let checker = Arc::clone(checker);
    Server::start([Reply::By(Arc::new(move |asked| checker.answer(asked, turns)))]).await
}

fn bound_model(server: &Server) -> ProviderModel {
    ProviderModel::new(ProviderOptions { model: "claude-fable-5-1".to_owned(), ..options(server) }).unwrap()
}

/// A tool with long outputs, each different.
struct Talks(ToolSpec);

#[async_trait]
impl Tool for Talks {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        ToolOutput::ok(format!("{}: {}", input.text(), "lorem ipsum dolor sit amet ".repeat(60)))
    }
}

fn policy(tools: &ToolRegistry) -> RunPolicy {
    let model = ModelPolicy { window_tokens: Some(9_000), ..ModelPolicy::new("a/model", 1_000) };
    let agent = AgentPolicy {
        system_prompt: "You are careful.".to_owned(),
        tools: tools.specs(),
        limits: Limits { turns_max: 300, stuck_turns: 0, ..Limits::default() },
        step_mode: StepMode::Stepped,
        ..AgentPolicy::new(model, std::env::temp_dir())
    };
    RunPolicy::new(agent)
}

/// Sixty turns in a small window, reloaded from the log every seven turns. Returns the outcome.
async fn sixty_turns(server: &Server) -> Outcome {
    let (_, clock) = still_clock();
    let store = MemoryStore::new();
    let tools = ToolRegistry::new().with(Talks(ToolSpec { access: Access::Reads, ..tool("search") }));
    let run = RunId::from_entropy(60);
    let mut is_new = true;
    loop {
        let backend = Arc::new(EmbeddedBackend::new(store.clone(), Arc::clone(&clock)).unwrap());
        let model = Arc::new(bound_model(server));
        let harness = AgentHarness::new(HarnessDeps {
            clock: Arc::clone(&clock),
            ..HarnessDeps::new(backend, Models::new().with("a/model", model), tools.clone())
        });
        let mut working = if std::mem::take(&mut is_new) {
            harness.start(run, "Look at everything.", policy(&tools)).await.unwrap()
        } else {
            // Dropping the last one gives up the run in the background.
            loop {
                match harness.open(run).await {
                    Err(HarnessError::Backend(BackendError::Held { .. })) => tokio::task::yield_now().await,
                    opened => break opened.unwrap(),
                }
            }
        };
        for _ in 0..7 {
            if let TurnState::Done(outcome) = working.run_turn(&CancellationToken::new()).await.unwrap() {
                return outcome;
            }
        }
    }
}

#[tokio::test]
async fn a_long_conversation_never_sends_thinking_behind_what_it_wasnt_an_answer_to() {
    let checker = Arc::new(Checker::default());
    let server = serve(&checker, 60).await;
    let outcome = sixty_turns(&server).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(*checker.refused.lock().unwrap(), Vec::<String>::new());
    // The conversation was shortened, and still most of the later thinking was sent back.
    assert!(checker.summaries.load(Ordering::Relaxed) > 0);
    let accepted = checker.accepted.lock().unwrap();
    assert!(accepted.windows(2).any(|pair| pair[1] < pair[0]), "{accepted:?}");
    assert!(accepted.iter().filter(|thoughts| **thoughts > 0).count() > 40, "{accepted:?}");
}

#[tokio::test]
async fn a_request_that_is_refused_for_its_thinking_is_made_once_without_it() {
    let checker = Arc::new(Checker { refuses_all: true, ..Checker::default() });
    let server = serve(&checker, 20).await;
    let outcome = sixty_turns(&server).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert!(!checker.refused.lock().unwrap().is_empty());
    assert!(checker.accepted.lock().unwrap().iter().all(|thoughts| *thoughts == 0));
}

/// A conversation of `turns` answers with the server, each with thinking and a call.
async fn talk(conversation: &mut Conversation, model: &ProviderModel, turns: u32) {
    for _ in 0..turns {
        let answer = conversation.ask(model).await.unwrap();
        let call = answer.content.iter().find_map(|block| match block {
            Block::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        });
        conversation.push(Role::Assistant, answer.content.into_iter().map(Part::Block).collect());
        conversation.push(Role::User, vec![result(&call.unwrap(), "search", "found", false)]);
        conversation.answers_before += 1;
    }
}

#[tokio::test]
async fn after_a_change_of_tools_or_system_text_old_thinking_stays_out_and_new_thinking_goes_back() {
    let checker = Arc::new(Checker::default());
    let server = serve(&checker, 100).await;
    let model = bound_model(&server);
    let mut conversation = Conversation::new("go");
    talk(&mut conversation, &model, 3).await;
    conversation.tools = vec![tool("search"), tool("shell"), tool("more")].into();
    talk(&mut conversation, &model, 2).await;
    conversation.system.push_str(" And quick.");
    talk(&mut conversation, &model, 2).await;
    assert_eq!(*checker.refused.lock().unwrap(), Vec::<String>::new());
    assert_eq!(*checker.accepted.lock().unwrap(), [0, 1, 2, 0, 1, 0, 1]);
}

#[tokio::test]
async fn once_refused_thinking_isnt_tried_again_and_what_came_after_it_goes_back() {
    let checker = Arc::new(Checker::default());
    let server = serve(&checker, 100).await;
    let model = bound_model(&server);
    let mut conversation = Conversation::new("go");
    talk(&mut conversation, &model, 2).await;
    // Seals that the provider no longer knows, after an unchanged beginning.
    for message in &mut conversation.messages {
        let parts = message.parts.iter().cloned().map(|mut part| {
            if let Part::Block(Block::Thinking { signature, .. }) = &mut part {
                *signature = Some("seal-of-yesterday".to_owned());
            }
            part
        });
        *message = Arc::new(Message::new(message.role, parts.collect()));
    }
    talk(&mut conversation, &model, 3).await;
    assert_eq!(checker.refused.lock().unwrap().len(), 1);
    assert_eq!(*checker.accepted.lock().unwrap(), [0, 1, 0, 1, 2]);
}
