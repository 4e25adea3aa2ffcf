//! An external agent in the whole harness: its driver gets prompts, is asked for answers, and is told to end it.
//! Real store, real stop hooks, real judges' wire format; only the program is simulated.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::EmbeddedBackend;
use provost_engine::Answer;
use provost_event::{
    AgentPolicy, ApprovalAnswer, ApprovalScope, Block, Budget, CallId, Channel, Entry, ErrorClass, Exit,
    ExternalPolicy, GateEntry, Json, ModelFailure, ModelPolicy, Outcome, Permission, PermissionPolicy, RunId,
    RunPolicy, SessionId, StopHookPolicy, StopReason, TerminalEvent, TerminalNoted, ToolCall, Usage,
    WindowSize,
};
use provost_harness::{
    AgentHarness, Exchange, ExternalAgents, Harness, HarnessDeps, Log as _, Models, Prompt, SystemClock,
    ToolOutput, ToolRegistry, consent_tools,
};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const RUN: RunId = RunId::from_entropy(808);
const ROOT: SessionId = SessionId::root(RUN);
const DEADLINE: Duration = Duration::from_secs(20);

/// The program's behaviour in an exchange, after the pending messages.
#[derive(Clone)]
enum Act {
    Says(&'static str),
    /// Asks for consent to a command.
    Asks(&'static str),
    /// Waits for a message, and repeats it.
    Listens,
    /// Works until it is cancelled.
    Hangs,
    /// Is cancelled while its prompt is being typed.
    HangsFirst,
    /// Was restarted without its state.
    StartsOver,
    Fails(ErrorClass),
    Panics,
}

/// Simulates a program, and records the calls to it, a line each.
#[derive(Clone)]
struct Play {
    acts: Arc<Mutex<VecDeque<Act>>>,
    seen: watch::Sender<Vec<String>>,
}

impl Play {
    fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self { acts: Arc::new(Mutex::new(acts.into_iter().collect())), seen: watch::Sender::default() }
    }

    fn saw(&self, line: impl Into<String>) {
        self.seen.send_modify(|seen| seen.push(line.into()));
    }

    async fn has_seen(&self, line: &str) {
        let mut seen = self.seen.subscribe();
        let found = seen.wait_for(|seen| seen.iter().any(|one| one.contains(line)));
        timeout(DEADLINE, found).await.expect("in time").expect("it plays");
    }

    async fn tell(&self, exchange: &mut Exchange<'_>, prompt: &Prompt) {
        self.saw(format!("told: {}", prompt.for_agent()));
        let submitted = TerminalEvent::Submitted { text: prompt.text.clone(), through: prompt.through };
        exchange.log.note(TerminalNoted::certain(submitted)).await.expect("noted");
        exchange.words.told(prompt);
    }
}

fn answer(content: Block, stop: StopReason) -> Answer {
    let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
    Answer { cost: None, content: vec![content], usage, model: "the program".to_owned(), stop }
}

#[async_trait]
impl ExternalAgents for Play {
    async fn exchange(
        &self,
        mut exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let begun = if exchange.words.has_begun() { ", begun before" } else { "" };
        self.saw(format!("exchange{begun}"));
        if let Some(why) = exchange.words.refusal() {
            self.saw(format!("refused: {why}"));
        }
        let command = vec!["played".to_owned()];
        let started = TerminalEvent::Started { command, pid: 1, channel: Channel::Terminal, recording: None };
        exchange.log.note(TerminalNoted::certain(started)).await.expect("noted");
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Says("I am done."));
        if matches!(act, Act::StartsOver) {
            exchange.words.start_over();
        }
        if let Some(prompt) = exchange.words.prompt().filter(|_| !matches!(act, Act::HangsFirst)) {
            self.tell(&mut exchange, &prompt).await;
        }
        match act {
            Act::StartsOver => Ok(answer(Block::Text("I have begun anew.".to_owned()), StopReason::EndTurn)),
            Act::Says(text) => Ok(answer(Block::Text(text.to_owned()), StopReason::EndTurn)),
            Act::Asks(command) => {
                let input = Json::of(&serde_json::json!({ "command": command })).unwrap();
                let id = CallId::from(command);
                let call = ToolCall { id, name: "shell".to_owned(), input, malformed: None };
                Ok(answer(Block::ToolCall(call), StopReason::ToolUse))
            }
            Act::Listens => {
                exchange.words.wait().await.expect("a message");
                let prompt = exchange.words.prompt().expect("words");
                self.tell(&mut exchange, &prompt).await;
                Ok(answer(Block::Text(format!("I heard: {}", prompt.text)), StopReason::EndTurn))
            }
            Act::Hangs | Act::HangsFirst => {
                self.saw("hangs");
                cancel.cancelled().await;
                Err(ModelFailure::new(ErrorClass::Aborted, "it was told to stop"))
            }
            Act::Fails(class) => Err(ModelFailure::new(class, "played exited with status 3")),
            Act::Panics => panic!("the driver is broken"),
        }
    }

    async fn answer(&self, _: SessionId, call: &CallId, _: &CancellationToken) -> ToolOutput {
        self.saw(format!("answered: {call}"));
        ToolOutput::ok("yes")
    }

    async fn close(&self, _: SessionId, _: &CancellationToken) -> Option<Exit> {
        self.saw("closed");
        Some(Exit::Code(0))
    }
}

struct Stage {
    folder: TempDir,
    play: Play,
}

impl Stage {
    fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder, play: Play::new(acts) }
    }

    fn policy(&self, change: impl FnOnce(&mut AgentPolicy)) -> RunPolicy {
        let external = ExternalPolicy {
            program: "played".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            passes: Vec::new(),
            profile: "generic".to_owned(),
            channel: Channel::Terminal,
            size: WindowSize::default(),
            submits_goal: true,
            attended: false,
            unrecorded: false,
            idle_ms: None,
            metering: Default::default(),
        };
        let mut agent = AgentPolicy {
            external: Some(Box::new(external)),
            tools: consent_tools(),
            permissions: PermissionPolicy { default: Permission::Ask, ..PermissionPolicy::default() },
            ..AgentPolicy::new(ModelPolicy::new("external/played", 1), self.folder.path().join("work"))
        };
        change(&mut agent);
        RunPolicy::new(agent)
    }

    fn backend(&self) -> Arc<EmbeddedBackend> {
        let store = SqliteStore::open(self.folder.path().join("provost.db")).unwrap();
        Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap())
    }

    fn harness(&self, backend: &Arc<EmbeddedBackend>) -> AgentHarness {
        AgentHarness::new(HarnessDeps {
            external: Arc::new(self.play.clone()),
            ..HarnessDeps::new(backend.clone(), Models::new(), ToolRegistry::new())
        })
    }

    async fn start(&self, backend: &Arc<EmbeddedBackend>, policy: RunPolicy) -> Harness {
        self.harness(backend).start(RUN, "make it", policy).await.unwrap()
    }

    fn seen(&self) -> Vec<String> {
        self.play.seen.borrow().clone()
    }
}

async fn finish(mut run: Harness) -> Outcome {
    timeout(DEADLINE, run.run(&CancellationToken::new())).await.expect("in time").unwrap()
}

async fn kinds(backend: &Arc<EmbeddedBackend>) -> Vec<&'static str> {
    let mut records = Vec::new();
    let mut after = provost_event::Seq::START;
    loop {
        let page = backend.read(ROOT.into(), after, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.seq;
        records.extend(page.iter().map(|record| record.entry.kind()));
    }
    records
}

#[tokio::test]
async fn a_program_is_told_the_goal_and_ended_before_its_session() {
    let stage = Stage::new([Act::Says("It is made.")]);
    let backend = stage.backend();
    let outcome = finish(stage.start(&backend, stage.policy(|_| {})).await).await;
    assert_eq!(outcome, Outcome::UNVERIFIED);
    assert_eq!(stage.seen(), ["exchange", "told: make it", "closed"]);
    let kinds = kinds(&backend).await;
    let place = |kind: &str| kinds.iter().rposition(|one| *one == kind);
    assert!(place("terminal_ending") < place("terminal_noted") && place("terminal_noted") < place("ended"));
}

#[tokio::test]
async fn a_stop_hook_that_blocks_has_its_reasons_told_to_the_program() {
    let stage = Stage::new([Act::Says("It is made."), Act::Says("Now it is.")]);
    let backend = stage.backend();
    let command = "test -e asked || { touch asked; echo 'the tests fail'; exit 2; }";
    let hook = StopHookPolicy {
        name: "tests".into(),
        command: Some(command.into()),
        timeout_ms: 10_000,
        on_error: provost_event::OnHookError::Ignore,
    };
    let policy = stage.policy(|agent| agent.stop_hooks.push(hook));
    let outcome = finish(stage.start(&backend, policy).await).await;
    assert_eq!(outcome, Outcome::VERIFIED);
    let seen = stage.seen();
    let [first, goal, second, reasons, closed] = seen.as_slice() else { panic!("{seen:#?}") };
    assert_eq!([first.as_str(), goal], ["exchange", "told: make it"]);
    assert_eq!([second.as_str(), closed], ["exchange, begun before", "closed"]);
    assert!(reasons.contains("the tests fail") && !reasons.contains("make it"), "{reasons}");
}

#[tokio::test]
async fn approval_is_asked_of_a_person_and_given_by_the_driver() {
    for (says_yes, wanted) in [(true, "answered: make test"), (false, "refused: ")] {
        let stage = Stage::new([Act::Asks("make test"), Act::Says("Done.")]);
        let backend = stage.backend();
        let run = stage.start(&backend, stage.policy(|_| {})).await;
        let handle = tokio::spawn(finish(run));
        let asked = asked(&backend).await;
        let answer = if says_yes {
            ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }
        } else {
            ApprovalAnswer::Deny { reason: "not today".to_owned() }
        };
        let event = provost_engine::SessionEvent::Resolve { asked, answer, by: "a person".into() };
        backend.post(ROOT.into(), event.into(), None).await.unwrap();
        assert_eq!(handle.await.unwrap(), Outcome::UNVERIFIED);
        let seen = stage.seen();
        assert!(seen.iter().any(|line| line.starts_with(wanted)), "{seen:#?}");
        assert_eq!(seen.iter().any(|line| line.starts_with("answered")), says_yes, "{seen:#?}");
        assert!(says_yes || seen.iter().any(|line| line.contains("not today")), "{seen:#?}");
    }
}

/// The entry of the approval request, once it exists.
async fn asked(backend: &Arc<EmbeddedBackend>) -> provost_event::Seq {
    use futures::StreamExt as _;
    let mut records = backend.subscribe(ROOT.into(), provost_event::Seq::START);
    let asked = async {
        while let Some(record) = records.next().await {
            let record = record.unwrap();
            if let Entry::Gate(GateEntry::ApprovalRequested(_)) = record.entry {
                return record.seq;
            }
        }
        panic!("no question is open")
    };
    timeout(DEADLINE, asked).await.expect("in time")
}

#[tokio::test]
async fn a_command_that_the_permissions_deny_is_refused_without_a_question() {
    let stage = Stage::new([Act::Asks("rm -rf /"), Act::Says("Then not.")]);
    let backend = stage.backend();
    let policy = stage.policy(|agent| agent.permissions.deny = vec!["shell(rm *)".to_owned()]);
    let outcome = finish(stage.start(&backend, policy).await).await;
    assert_eq!(outcome, Outcome::UNVERIFIED);
    let seen = stage.seen();
    assert!(seen.iter().any(|line| line.starts_with("refused: Not allowed by the permissions")), "{seen:#?}");
    assert!(!kinds(&backend).await.contains(&"approval_requested"));
}

#[tokio::test]
async fn a_message_during_a_wait_is_delivered_at_once_and_once() {
    let stage = Stage::new([Act::Listens]);
    let backend = stage.backend();
    let run = stage.start(&backend, stage.policy(|_| {})).await;
    let control = run.control("a person");
    let said = control.say(0, "be quick");
    let handle = tokio::spawn(finish(run));
    stage.play.has_seen("told: make it").await;
    said.await.unwrap();
    assert_eq!(handle.await.unwrap(), Outcome::UNVERIFIED);
    assert_eq!(stage.seen(), ["exchange", "told: make it", "told: be quick", "closed"]);
}

#[tokio::test]
async fn a_pause_stops_the_exchange_and_ends_the_program_and_a_resume_tells_it_nothing_twice() {
    let stage = Stage::new([Act::Hangs, Act::Says("Done.")]);
    let backend = stage.backend();
    let run = stage.start(&backend, stage.policy(|_| {})).await;
    let control = run.control("a person");
    let pause = control.pause(None);
    let handle = tokio::spawn(finish(run));
    stage.play.has_seen("hangs").await;
    pause.await.unwrap();
    assert!(matches!(handle.await.unwrap(), Outcome::Paused { .. }));
    assert_eq!(stage.seen(), ["exchange", "told: make it", "hangs", "closed"]);

    // Another process: its only state is the log.
    let mut run = stage.harness(&backend).open(RUN).await.unwrap();
    run.resume("a person", Budget::default(), None).await.unwrap();
    assert_eq!(finish(run).await, Outcome::UNVERIFIED);
    assert_eq!(stage.seen()[4..], ["exchange, begun before", "closed"]);
}

#[tokio::test]
async fn what_may_have_been_told_before_an_interruption_is_told_with_a_word_about_it() {
    let stage = Stage::new([Act::HangsFirst, Act::Says("Done.")]);
    let backend = stage.backend();
    let run = stage.start(&backend, stage.policy(|_| {})).await;
    let control = run.control("a person");
    let pause = control.pause(None);
    let handle = tokio::spawn(finish(run));
    stage.play.has_seen("hangs").await;
    pause.await.unwrap();
    assert!(matches!(handle.await.unwrap(), Outcome::Paused { .. }));

    let mut run = stage.harness(&backend).open(RUN).await.unwrap();
    run.resume("a person", Budget::default(), None).await.unwrap();
    assert_eq!(finish(run).await, Outcome::UNVERIFIED);
    let seen = stage.seen();
    let told = seen.iter().find(|line| line.starts_with("told")).expect("it is told");
    assert!(told.contains("may have been told this before") && told.ends_with("make it"), "{told}");
}

#[tokio::test]
async fn a_program_that_fails_fails_its_run_in_its_own_words() {
    let stage = Stage::new([Act::Fails(ErrorClass::Program)]);
    let backend = stage.backend();
    let outcome = finish(stage.start(&backend, stage.policy(|_| {})).await).await;
    let message = "played exited with status 3".to_owned();
    assert_eq!(outcome, Outcome::Failed { class: ErrorClass::Program, message });
    assert_eq!(stage.seen().last().map(String::as_str), Some("closed"));
}

#[tokio::test]
async fn a_driver_that_panics_fails_its_run_and_still_ends_the_program() {
    let stage = Stage::new([Act::Panics]);
    let backend = stage.backend();
    let outcome = finish(stage.start(&backend, stage.policy(|_| {})).await).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("panicked"), "{message}");
    assert_eq!(stage.seen().last().map(String::as_str), Some("closed"));
}

#[tokio::test]
async fn what_it_reports_as_spent_is_charged() {
    let stage = Stage::new([Act::Asks("ls"), Act::Says("Done.")]);
    let backend = stage.backend();
    let policy = stage.policy(|agent| agent.permissions = PermissionPolicy::default());
    let outcome = finish(stage.start(&backend, policy).await).await;
    assert_eq!(outcome, Outcome::UNVERIFIED);
    let provost_engine::Actor::Run(run) = backend.state(RUN.into()).await.unwrap() else { panic!("a run") };
    assert_eq!(run.ledger().tokens, 20);
}

#[tokio::test]
async fn a_program_that_remembers_nothing_can_be_told_everything_again() {
    let stage = Stage::new([Act::Hangs, Act::StartsOver, Act::Says("Done.")]);
    let backend = stage.backend();
    let run = stage.start(&backend, stage.policy(|_| {})).await;
    let control = run.control("a person");
    let (pause, said) = (control.pause(None), control.say(0, "be quick"));
    let handle = tokio::spawn(finish(run));
    stage.play.has_seen("hangs").await;
    said.await.unwrap();
    pause.await.unwrap();
    assert!(matches!(handle.await.unwrap(), Outcome::Paused { .. }));

    let mut run = stage.harness(&backend).open(RUN).await.unwrap();
    run.resume("a person", Budget::default(), None).await.unwrap();
    assert_eq!(finish(run).await, Outcome::UNVERIFIED);
    let seen = stage.seen();
    let told = seen.iter().rfind(|line| line.starts_with("told")).expect("it is told");
    assert!(
        told.contains("may have been told this before") && told.ends_with("make it\n\nbe quick"),
        "{told}"
    );
}
