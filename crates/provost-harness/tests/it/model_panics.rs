//! An adapter of an embedding program that panics amid its answer: what the call took is estimated.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::Answer;
use provost_event::{
    AgentPolicy, BudgetEntry, Certainty, DeltaKind, Entry, ModelFailure, ModelPolicy, RunId, RunPolicy, Seq,
};
use provost_harness::{
    AgentHarness, DeltaSink, HarnessDeps, Log as _, Model, ModelRequest, Models, SystemClock, ToolRegistry,
};
use tokio_util::sync::CancellationToken;

struct Panics;

#[async_trait]
impl Model for Panics {
    async fn answer(
        &self,
        _: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        deltas.delta(DeltaKind::Text, "Hello there");
        panic!("no answer today")
    }
}

#[tokio::test]
async fn what_a_panicking_adapter_took_is_estimated_and_never_nothing_for_certain() {
    let folder = tempfile::tempdir().expect("a folder");
    let backend =
        Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).expect("a backend"));
    let models = Models::new().with("script:test", Arc::new(Panics));
    let harness = AgentHarness::new(HarnessDeps::new(backend.clone(), models, ToolRegistry::new()));
    let agent = AgentPolicy::new(ModelPolicy::new("script:test", 1_000), folder.path().to_owned());
    let run = RunId::from_entropy(7);
    let goal = "the goal of the run";
    let mut handle = harness.start(run, goal, RunPolicy::new(agent)).await.expect("it starts");
    let charged = async {
        let mut records = backend.subscribe(run.into(), Seq::START);
        while let Some(record) = records.next().await {
            if let Entry::Budget(BudgetEntry::Charged(charged)) = &record.expect("it can be read").entry {
                return charged.usage;
            }
        }
        panic!("nothing was charged")
    };
    let never = CancellationToken::new();
    let usage = tokio::select! {
        outcome = handle.run(&never) => panic!("{outcome:?}"),
        usage = charged => usage,
    };
    assert_eq!((usage.certainty, usage.output_tokens), (Certainty::Estimated, 4));
    assert!((5..500).contains(&usage.input_tokens), "{usage:?}");
}
