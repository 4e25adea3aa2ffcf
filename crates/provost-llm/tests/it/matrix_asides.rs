//! Calls outside of the conversation leave room for the model's thinking, for all wire formats.

use std::sync::Arc;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{AgentPolicy, Limits, ModelPolicy, RunId, RunPolicy};
use provost_harness::{AgentHarness, HarnessDeps, Models, ToolRegistry, final_text};
use provost_llm::{ProviderModel, ProviderOptions, Reasoning};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::{ReceivedRequest, Reply, Server};
use crate::speaker::*;
use crate::support::{in_time, still_clock};

for_every_provider!(a_model_that_thinks_at_length_still_says_its_final_summary);

const RUN: RunId = RunId::from_entropy(31);
/// The model's thinking tokens before its answer.
const THINKS_TOKENS: u64 = 3_000;
const SAYS: &str = "It stands so.";

fn cap(asked: &ReceivedRequest) -> u64 {
    let body = asked.json();
    let fields =
        ["/max_tokens", "/max_output_tokens", "/max_completion_tokens", "/generationConfig/maxOutputTokens"];
    fields.iter().find_map(|field| body.pointer(field)?.as_u64()).unwrap()
}

/// A model whose thoughts count towards the output cap: it calls a tool each turn, and thinks before it
/// summarises.
fn answers(speaker: &'static dyn Speaker) -> Reply {
    Reply::By(Arc::new(move |asked: &ReceivedRequest| {
        let thought = || Some(Thought { pieces: vec!["Hm.".to_owned()], seal: "c2VhbA==".to_owned() });
        let is_last = String::from_utf8_lossy(&asked.body).contains("You have reached a limit");
        let spoken = if !is_last {
            let call =
                Called { id: "call_1".to_owned(), name: "look".to_owned(), pieces: vec!["{}".to_owned()] };
            Spoken { calls: vec![call], ..Spoken::text(&["I look."]) }
        } else if cap(asked) > THINKS_TOKENS {
            Spoken { thought: thought(), ..Spoken::text(&[SAYS]) }
        } else {
            Spoken { thought: thought(), end: End::Cap, ..Spoken::default() }
        };
        streamed(speaker, [stream(&speaker.events(&spoken)).as_bytes()])
    }))
}

fn policy(reasons: bool) -> RunPolicy {
    let agent = AgentPolicy {
        system_prompt: "You are careful.".to_owned(),
        limits: Limits { turns_max: 2, ..Limits::default() },
        ..AgentPolicy::new(
            ModelPolicy { reasons, ..ModelPolicy::new("a/model", 16_000) },
            std::env::temp_dir(),
        )
    };
    RunPolicy::new(agent)
}

/// The request for the final summary.
async fn last_request(speaker: &'static dyn Speaker, reasons: bool) -> (ReceivedRequest, String) {
    let server = Server::start([answers(speaker)]).await;
    let options = options(speaker, &server.url());
    let options = ProviderOptions { reasoning: Some(Reasoning::Effort), ..options };
    let model = ProviderModel::new(options).unwrap();
    let (_, clock) = still_clock();
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::clone(&clock)).unwrap());
    let models = Models::new().with("a/model", Arc::new(model));
    let deps = HarnessDeps { clock, ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new()) };
    let mut run = AgentHarness::new(deps).start(RUN, "look", policy(reasons)).await.unwrap();
    in_time(run.run(&CancellationToken::new())).await.unwrap();
    let said = final_text(&*backend, RUN).await.unwrap();
    (server.seen().asked.pop().unwrap(), said)
}

async fn a_model_that_thinks_at_length_still_says_its_final_summary(speaker: &'static dyn Speaker) {
    let (asked, said) = last_request(speaker, true).await;
    assert_eq!((cap(&asked), said.as_str()), (1_024 + 4_096, SAYS), "{}", speaker.wire());
    let body = asked.json();
    let fields = [
        "/output_config/effort",
        "/reasoning/effort",
        "/reasoning_effort",
        "/generationConfig/thinkingConfig/thinkingLevel",
    ];
    let effort = fields.iter().find_map(|field| body.pointer(field)).and_then(Value::as_str);
    assert!(matches!(effort, Some("low" | "minimal" | "none" | "LOW" | "MINIMAL")), "{effort:?}");
    let (_, said) = last_request(speaker, false).await;
    assert_ne!(said, SAYS, "the model as it is played here needs the room");
}
