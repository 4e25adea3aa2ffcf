//! Pictures on their way to a model: with the goal, and from a tool.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore, export_run, import_incomplete};
use provost_engine::Answer;
use provost_event::{
    Access, AgentPolicy, Block, CallId, ImageKind, Json, ModelFailure, ModelPolicy, Outcome, RunId,
    RunPolicy, Seq, SessionId, StepMode, ToolSpec, ToolSubject,
};
use provost_harness::{
    AgentHarness, Blobs, DeltaSink, Goal, HarnessDeps, IMAGE_BYTES_MAX, ImageData, ImageError, Log as _,
    Model, ModelRequest, Models, Part, Role, SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry,
    TurnState,
};
use provost_llm::ScriptedModel;
use tokio_util::sync::CancellationToken;

use super::embedding::open_when_free;

const RUN: RunId = RunId::from_entropy(11);
const SCRIPT: &str = "answers: [{tools: [{look: {}}]}, {text: done}]";

fn png() -> ImageData {
    ImageData::new(*b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89")
        .expect("a PNG")
}

fn gif() -> ImageData {
    ImageData::new(*b"GIF89a\x01\0\x01\0\0\0\0;").expect("a GIF")
}

/// Answers from the script, and records its requests.
struct Watching {
    script: ScriptedModel,
    asked: Arc<Mutex<Vec<Request>>>,
}

type Request = Vec<(Role, Vec<Part>)>;

#[async_trait]
impl Model for Watching {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let said = |parts: &[Part]| parts.iter().filter(|part| !part.is_reminder()).cloned().collect();
        let messages = request.messages.iter().map(|message| (message.role, said(&message.parts)));
        self.asked.lock().expect("asked").push(messages.collect());
        self.script.answer(request, deltas, cancel).await
    }
}

/// A tool that shows a picture.
struct Look(ToolSpec);

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, _: &ToolContext) -> ToolOutput {
        ToolOutput { images: vec![gif()], ..ToolOutput::ok("what there is") }
    }
}

fn tools() -> ToolRegistry {
    ToolRegistry::new().with(Look(ToolSpec {
        name: "look".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 10_000,
        output_bytes_max: 100,
    }))
}

struct Scene {
    script: &'static str,
    sees: bool,
    store: MemoryStore,
    asked: Arc<Mutex<Vec<Request>>>,
    workspace: tempfile::TempDir,
}

impl Scene {
    fn new(script: &'static str, sees: bool) -> Self {
        let workspace = tempfile::tempdir().expect("a folder");
        Self { script, sees, store: MemoryStore::new(), asked: Arc::default(), workspace }
    }

    fn backend(&self) -> Arc<EmbeddedBackend> {
        Arc::new(EmbeddedBackend::new(self.store.clone(), Arc::new(SystemClock)).expect("a backend"))
    }

    /// A harness in a separate process, as far as the store can tell.
    fn harness(&self) -> AgentHarness {
        let script = ScriptedModel::parse(self.script, "script").expect("a script");
        let model = Watching { script, asked: self.asked.clone() };
        AgentHarness::new(HarnessDeps {
            ..HarnessDeps::new(self.backend(), Models::new().with("script:test", Arc::new(model)), tools())
        })
    }

    fn policy(&self, step_mode: StepMode) -> RunPolicy {
        RunPolicy {
            spawn: provost_event::SpawnBudget::default(),
            ..RunPolicy::new(AgentPolicy {
                system_prompt: "be good".into(),
                tools: tools().specs(),
                step_mode,
                ..AgentPolicy::new(
                    ModelPolicy { images: self.sees, ..ModelPolicy::new("script:test", 1_000) },
                    self.workspace.path().to_owned(),
                )
            })
        }
    }

    /// Runs from a goal with a picture to its end; returns the model's last request.
    async fn run(&self) -> Request {
        let goal = Goal { text: "the goal".into(), images: vec![png()] };
        let mut run = self.harness().start(RUN, goal, self.policy(StepMode::Free)).await.expect("it starts");
        let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
        assert_eq!(outcome, Outcome::UNVERIFIED);
        self.last_asked()
    }

    /// Runs up to the end of the first turn, as a process that then ends.
    async fn run_a_turn(&self) {
        let goal = Goal { text: "the goal".into(), images: vec![png()] };
        let mut run =
            self.harness().start(RUN, goal, self.policy(StepMode::Stepped)).await.expect("it starts");
        let turn = run.run_turn(&CancellationToken::new()).await.expect("a turn");
        assert_eq!(turn, TurnState::Continue);
    }

    /// Continues where another process stopped, to the end.
    async fn go_on(&self) -> Request {
        let mut run = open_when_free(&self.harness(), RUN).await;
        let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
        assert_eq!(outcome, Outcome::UNVERIFIED);
        self.last_asked()
    }

    fn last_asked(&self) -> Request {
        self.asked.lock().expect("asked").last().cloned().expect("it was asked")
    }
}

fn text(text: &str) -> Part {
    Part::Block(Block::Text(text.into()))
}

fn result(output: &str, images: Vec<ImageData>) -> Part {
    let call = CallId::from("call_1_1");
    Part::ToolResult { call, tool: "look".into(), output: output.into(), images, is_error: false }
}

/// The user's messages and the tools' results, without the model's answers.
fn told(request: &Request) -> Vec<Part> {
    let users = request.iter().filter(|(role, _)| *role == Role::User);
    users.flat_map(|(_, parts)| parts.clone()).collect()
}

#[tokio::test]
async fn a_model_that_sees_is_shown_the_goals_pictures_and_the_tools() {
    let request = Scene::new(SCRIPT, true).run().await;
    assert_eq!(told(&request), [text("the goal"), Part::Image(png()), result("what there is", vec![gif()])]);
}

#[tokio::test]
async fn a_model_that_cannot_see_is_told_what_there_would_be_to_see() {
    let request = Scene::new(SCRIPT, false).run().await;
    let stands_for_png = text("[image/png of 33 bytes, which can't be shown to you]");
    let with_gif = "what there is\n[image/gif of 14 bytes, which can't be shown to you]";
    assert_eq!(told(&request), [text("the goal"), stands_for_png, result(with_gif, vec![])]);
}

#[tokio::test]
async fn the_log_names_pictures_and_the_blobs_hold_them() {
    let scene = Scene::new(SCRIPT, true);
    scene.run().await;
    let backend = scene.backend();
    let records = backend.read(SessionId::root(RUN).into(), Seq::START, 1_000).await.expect("a log");
    let mut kept = Vec::new();
    for image in records.iter().flat_map(|record| record.entry.images()) {
        let bytes = backend.get_blob(&image.blob).await.expect("readable").expect("there");
        assert_eq!(u64::try_from(bytes.len()).expect("a size"), image.bytes);
        kept.push((image.kind, bytes));
    }
    let expected = [(ImageKind::Png, png().bytes().to_vec()), (ImageKind::Gif, gif().bytes().to_vec())];
    assert_eq!(kept, expected);
}

#[tokio::test]
async fn after_a_restart_the_request_is_the_same() {
    for sees in [true, false] {
        let uninterrupted = Scene::new(SCRIPT, sees).run().await;
        let scene = Scene::new(SCRIPT, sees);
        scene.run_a_turn().await;
        assert_eq!(scene.go_on().await, uninterrupted);
    }
}

/// The run comes from an export from which the pictures were removed.
#[tokio::test]
async fn for_pictures_that_are_gone_there_are_lines_of_text() {
    let (scene, elsewhere) = (Scene::new(SCRIPT, true), Scene::new(SCRIPT, true));
    scene.run_a_turn().await;
    let mut exported = Vec::new();
    export_run(&*scene.backend(), RUN, &mut exported).await.expect("it is exported");
    let lines = String::from_utf8(exported).expect("text");
    let (blobs, records) = lines.lines().partition::<Vec<_>, _>(|line| line.contains(r#""type":"blob""#));
    assert_eq!(blobs.len(), 2, "{lines}");
    import_incomplete(&elsewhere.backend(), &mut records.join("\n").as_bytes())
        .await
        .expect("it is imported");
    let without = Scene::new(SCRIPT, false).run().await;
    assert_eq!(elsewhere.go_on().await, without);
}

#[tokio::test]
async fn a_compaction_leaves_pictures_out_and_says_so() {
    let script = "answers: [{tools: [{look: {}}]}, {fault: context_too_long}, {text: done}]";
    let request = Scene::new(script, true).run().await;
    let told = told(&request);
    let [Part::Block(Block::Text(summary)), Part::ToolResult { output, images, .. }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert!(summary.contains("Pictures left out with it: 1."), "{summary}");
    assert!(output.contains("left out: 13 bytes and a picture, entry 5"), "{output}");
    assert!(images.is_empty());
}

#[tokio::test]
async fn a_picture_may_have_as_many_bytes_as_models_take_and_not_one_more() {
    let mut bytes = gif().bytes().to_vec();
    bytes.resize(IMAGE_BYTES_MAX, 0);
    let most = ImageData::new(bytes.clone()).expect("it fits");
    bytes.push(0);
    assert_eq!(ImageData::new(bytes), Err(ImageError::TooLarge { bytes: 3_750_001 }));
    assert_eq!(ImageData::new(*b"BM, a bitmap"), Err(ImageError::Unknown));
    assert_eq!(ImageData::new(*b""), Err(ImageError::Unknown));

    let scene = Scene::new("answers: [{text: done}]", true);
    let goal = Goal { text: "the goal".into(), images: vec![most.clone()] };
    let mut run = scene.harness().start(RUN, goal, scene.policy(StepMode::Free)).await.expect("it starts");
    run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(told(&scene.last_asked()), [text("the goal"), Part::Image(most)]);
}
