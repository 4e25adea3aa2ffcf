//! A backend reduced to what decisions need: two actors, their logs and the open effects. It checks the laws of
//! the log after every event.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use provost_engine::{
    Actor, Answer, CallModel, Effect, Event, HookCall, JudgeReport, Message, PendingApproval, RunEvent,
    RunState, SessionEvent, SessionState, SessionStatus, StopCheck, StopCheckResult, ToolResult, ToolRun,
};
use provost_event::{
    Access, ActorKey, AgentPolicy, ApprovalAnswer, Block, CallId, ConversationEntry, Effort, Entry,
    ErrorClass, GateEntry, GoalEntry, GoalFinding, HookContract, HookDecision, HookPoint, HookPolicy,
    HookReport, HookSetup, HookTrigger, Image, Json, JudgeAnswer, LifecycleEntry, Limits, MicroDollars,
    ModelEntry, ModelFailure, ModelPolicy, OnFailure, Outcome, Price, Purpose, Record, RunId, RunPolicy, Seq,
    SessionId, Snapshot, StopHookPolicy, StopHookVerdict, StopReason, TerminalEntry, Timestamp, ToolCall,
    ToolEntry, ToolIdentity, ToolSpec, ToolStatus, ToolSubject, Usage,
};

use crate::goal_laws::GoalLaws;
use crate::log_laws::LogLaws;
use crate::states;
use crate::time::{BEGIN, Clocks};

/// The layout of snapshots that this engine reads.
pub(crate) const LAYOUT: u32 = 22;

pub(crate) const RUN: RunId = RunId::from_entropy(1);
pub(crate) const ROOT: SessionId = SessionId::root(RUN);

/// Tools whose calls have a subject, as they are called and used everywhere.
pub(crate) fn identities() -> Vec<ToolIdentity> {
    let of = |name: &str, aliases: &[&str], subject| ToolIdentity {
        name: name.to_owned(),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        subject,
    };
    let folder =
        || ToolSubject::Path { field: "path".to_owned(), walks: true, writes: false, anywhere: false };
    let typed = ToolSubject::Typed {
        fields: ["command", "text"].map(str::to_owned).to_vec(),
        keys: Some("keys".to_owned()),
        submit: Some("submit".to_owned()),
    };
    vec![
        of("shell", &["Bash"], ToolSubject::command("command")),
        of("terminal", &[], typed),
        of("read_file", &["Read"], ToolSubject::read_path("path")),
        of("write_file", &["Write"], ToolSubject::written_path("path")),
        of("edit_file", &["Edit", "MultiEdit"], ToolSubject::written_path("path")),
        of("edit", &[], ToolSubject::written_path("path")),
        of("search", &["Grep"], folder()),
        of("list_dir", &["Glob", "LS"], folder()),
        of("fetch", &["WebFetch"], ToolSubject::Url { field: "url".to_owned() }),
        of("update_plan", &["TodoWrite"], ToolSubject::Opaque),
        of("spawn_agent", &["Agent", "Task"], ToolSubject::Opaque),
    ]
}

/// The identity of a tool by its name.
pub(crate) fn identity(name: &str) -> ToolIdentity {
    identities().into_iter().find(|known| known.name == name).unwrap_or_else(|| ToolIdentity::unknown(name))
}

/// All of these tools.
pub(crate) fn known_tools() -> Vec<ToolSpec> {
    identities().iter().map(|known| tool(&known.name, Access::Anything, false)).collect()
}

pub(crate) fn tool(name: &str, access: Access, idempotent: bool) -> ToolSpec {
    let ToolIdentity { name, aliases, subject } = identity(name);
    ToolSpec {
        name,
        description: String::new(),
        input_schema: Json::empty_object(),
        access,
        subject,
        aliases,
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent,
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    }
}

pub(crate) fn policy() -> RunPolicy {
    let price = Price {
        input: MicroDollars(1_000_000),
        output: MicroDollars(1_000_000),
        cache_read: MicroDollars(0),
        cache_write: MicroDollars(0),
        long: None,
    };
    RunPolicy {
        spawn: provost_event::SpawnBudget::default(),
        ..RunPolicy::new(AgentPolicy {
            system_prompt: "be good".to_owned(),
            tools: vec![
                tool("edit", Access::Writes, false),
                tool("read", Access::Reads, true),
                tool("shell", Access::Anything, false),
            ],
            limits: Limits { turns_max: 10, ..Limits::default() },
            stop_hooks: vec![StopHookPolicy {
                name: "tests".to_owned(),
                command: None,
                timeout_ms: 1_000,
                on_error: provost_event::OnHookError::Ignore,
            }],
            ..AgentPolicy::new(
                ModelPolicy {
                    window_tokens: Some(10_000),
                    price: Some(price),
                    ..ModelPolicy::new("script:test", 1_000)
                },
                "/w".into(),
            )
        })
    }
}

pub(crate) fn without_hooks() -> RunPolicy {
    let mut policy = policy();
    policy.agent.stop_hooks.clear();
    policy
}

/// A policy without stop hooks, with one hook at each of these hook points.
pub(crate) fn guarded(points: &[HookPoint]) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.hooks = points.iter().map(|point| guard(*point)).collect();
    policy
}

pub(crate) fn guard(point: HookPoint) -> HookPolicy {
    HookPolicy {
        name: "guard".to_owned(),
        point,
        matcher: None,
        condition: None,
        program: None,
        contract: HookContract::Provost,
        timeout_ms: 1_000,
        on_failure: OnFailure::Deny,
        may_remind: true,
        setup: HookSetup::default(),
    }
}

pub(crate) fn report(point: HookPoint, decision: HookDecision) -> HookReport {
    HookReport {
        hook: "guard".to_owned(),
        point,
        decision,
        reminders: Vec::new(),
        note: None,
        replacement: None,
        duration_us: 1,
    }
}

pub(crate) struct World {
    pub(crate) actors: HashMap<ActorKey, Actor>,
    pub(crate) logs: HashMap<ActorKey, Vec<Record>>,
    /// Open effects, of both actors.
    pub(crate) open: BTreeMap<(ActorKey, Seq), Effect>,
    pub(crate) aborted: HashSet<(ActorKey, Seq)>,
    pub(crate) now: Timestamp,
    pub(crate) clocks: Clocks,
    pub(crate) entropy: u64,
    calls: u32,
    shown: HashMap<ActorKey, usize>,
    folded: HashMap<ActorKey, Actor>,
    restored: HashMap<ActorKey, Actor>,
    laws: LogLaws,
    /// The session's estimate of its last request.
    pub(crate) request_tokens: u64,
    /// The usage that the next answers report; by default a little, whatever the request.
    pub(crate) usage: Usage,
    pub(crate) snapshots: usize,
    /// Messages between the actors wait until they are delivered.
    pub(crate) holds: bool,
    pub(crate) held: VecDeque<Message>,
}

impl World {
    pub(crate) fn start(policy: RunPolicy) -> Self {
        Self::start_with(Vec::new(), policy)
    }

    /// Starts with images that belong to the goal.
    pub(crate) fn start_with(images: Vec<Image>, policy: RunPolicy) -> Self {
        let mut world = Self {
            actors: HashMap::new(),
            logs: HashMap::new(),
            open: BTreeMap::new(),
            aborted: HashSet::new(),
            now: BEGIN,
            clocks: Clocks::default(),
            entropy: 100,
            calls: 0,
            shown: HashMap::new(),
            folded: HashMap::new(),
            restored: HashMap::new(),
            laws: LogLaws::default(),
            request_tokens: 0,
            usage: Usage { input_tokens: 50, output_tokens: 50, ..Usage::default() },
            snapshots: 0,
            holds: false,
            held: VecDeque::new(),
        };
        let goal = "the goal".to_owned();
        world.run_event(RunEvent::Start { goal, images, policy: Box::new(policy), baseline: None });
        world
    }

    pub(crate) fn run_event(&mut self, event: RunEvent) {
        self.post(RUN.into(), event.into());
    }

    pub(crate) fn session_event(&mut self, event: SessionEvent) {
        self.post(ROOT.into(), event.into());
    }

    pub(crate) fn post_to(&mut self, key: ActorKey, event: Event) {
        self.post(key, event);
    }

    fn post(&mut self, key: ActorKey, event: Event) {
        let mut queue = VecDeque::from([Message { to: key, event }]);
        let mut steps = 0;
        while let Some(Message { to, event }) = queue.pop_front() {
            steps += 1;
            assert!(steps < 100, "messages go round for ever");
            let now = self.clocks.now(self.now, self.entropy);
            if let Event::Run(RunEvent::Reserve(request)) = &event
                && let Some(Actor::Session(session)) = self.actors.get(&request.session.into())
            {
                self.request_tokens = session.window_tokens(request.purpose);
            }
            let actor = self.actors.entry(to).or_insert_with(|| Actor::new(to));
            let step = states::decide(actor, event, now);
            let log = self.logs.entry(to).or_default();
            // The log of a fork begins after the entries that it refers to.
            let before = actor.head().0 - step.entries.len() as u64;
            for (entry, seq) in step.entries.into_iter().zip(before + 1..) {
                let seq = Seq(seq);
                log.push(self.clocks.record(self.now, to, seq, entry));
            }
            for seq in step.closed {
                self.open.remove(&(to, seq));
                self.aborted.remove(&(to, seq));
            }
            for seq in step.aborts {
                self.aborted.insert((to, seq));
            }
            for request in step.effects {
                let doubled =
                    self.open.insert((to, request.seq), self.clocks.begun(self.now, request.effect));
                assert!(doubled.is_none(), "effect {to}#{} opened twice", request.seq);
            }
            // This run has only one agent and none that it could yield to.
            let messages = step.messages.into_iter().filter(|message| !is_preempted_record(message));
            if self.holds { self.held.extend(messages) } else { queue.extend(messages) }
        }
        self.check_laws();
    }

    /// The oldest pending message between the actors arrives. Returns whether there was one.
    pub(crate) fn deliver(&mut self) -> bool {
        let Some(Message { to, event }) = self.held.pop_front() else { return false };
        self.post(to, event);
        true
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    pub(crate) fn session_log(&self) -> &[Record] {
        self.logs.get(&ROOT.into()).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn run_log(&self) -> &[Record] {
        self.logs.get(&RUN.into()).map(Vec::as_slice).unwrap_or_default()
    }

    fn first_open(&self, wanted: impl Fn(&Effect) -> bool) -> Option<(ActorKey, Seq)> {
        self.open.iter().find(|(_, effect)| wanted(effect)).map(|(id, _)| *id)
    }

    pub(crate) fn thinking(&self) -> Option<Seq> {
        self.first_open(|effect| matches!(effect, Effect::CallModel(_))).map(|id| id.1)
    }

    fn model_call(&self) -> Option<&CallModel> {
        self.open.values().find_map(|effect| match effect {
            Effect::CallModel(model_call) => Some(model_call),
            _ => None,
        })
    }

    pub(crate) fn calls_model_for(&self, purpose: Purpose) -> bool {
        self.model_call().is_some_and(|model_call| model_call.purpose == purpose)
    }

    /// The thinking effort of the model call in flight.
    pub(crate) fn effort(&self) -> Option<Effort> {
        self.model_call().expect("an agent calls its model").effort
    }

    /// The cap on the awaited answer.
    pub(crate) fn cap(&self) -> u32 {
        self.model_call().expect("an agent calls its model").output_tokens_max
    }

    pub(crate) fn tools(&self) -> Vec<(Seq, String)> {
        let tool = |effect: &Effect| match effect {
            Effect::RunTool(run) => Some(run.tool.clone()),
            _ => None,
        };
        self.open.iter().filter_map(|(id, effect)| Some((id.1, tool(effect)?))).collect()
    }

    /// The calls of tools that run.
    pub(crate) fn tool_runs(&self) -> Vec<ToolRun> {
        let run = |effect: &Effect| match effect {
            Effect::RunTool(run) => Some(run.clone()),
            _ => None,
        };
        self.open.values().filter_map(run).collect()
    }

    pub(crate) fn checking(&self) -> Option<Seq> {
        self.first_open(|effect| matches!(effect, Effect::CheckStop(_))).map(|id| id.1)
    }

    /// The open call of the stop hooks.
    pub(crate) fn stop_check(&self) -> StopCheck {
        let check = self.open.values().find_map(|effect| match effect {
            Effect::CheckStop(check) => Some(check.clone()),
            _ => None,
        });
        check.expect("stop hooks are asked")
    }

    /// The open hook calls.
    pub(crate) fn hook_calls(&self) -> Vec<(Seq, HookCall)> {
        let hook_call = |effect: &Effect| match effect {
            Effect::AskHooks(hook_call) => Some(hook_call.clone()),
            _ => None,
        };
        self.open.iter().filter_map(|(id, effect)| Some((id.1, hook_call(effect)?))).collect()
    }

    /// The hook `guard` answers the first open hook call.
    pub(crate) fn answer_hook(&mut self, decision: HookDecision) {
        let Some((seq, hook_call)) = self.hook_calls().first().cloned() else { panic!("no hook is asked") };
        let point = hook_call.about.points()[0];
        self.session_event(SessionEvent::HooksAnswered {
            seq,
            reports: vec![report(point, decision)],
            scripts: None,
        });
    }

    pub(crate) fn approvals(&self) -> Vec<PendingApproval> {
        match self.actors.get(&ROOT.into()) {
            Some(Actor::Session(state)) => state.approvals().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// The first pending approval is answered.
    pub(crate) fn resolve(&mut self, answer: ApprovalAnswer) {
        let Some(open) = self.approvals().first().cloned() else { panic!("no question is open") };
        self.session_event(SessionEvent::Resolve { asked: open.asked, answer, by: "a person".into() });
    }

    pub(crate) fn timers(&self) -> Vec<(ActorKey, Seq, Timestamp)> {
        let due = |effect: &Effect| match effect {
            Effect::Timer { due, .. } => Some(*due),
            _ => None,
        };
        self.open.iter().filter_map(|(id, effect)| Some((id.0, id.1, due(effect)?))).collect()
    }

    /// Lets the earliest timer fire.
    pub(crate) fn tick(&mut self) {
        let Some((actor, seq, due)) = self.timers().into_iter().min_by_key(|timer| timer.2) else { return };
        self.now = self.now.max(due);
        match actor {
            ActorKey::Run(_) => self.run_event(RunEvent::TimerFired { seq }),
            ActorKey::Session(_) => self.session_event(SessionEvent::TimerFired { seq }),
        }
    }

    pub(crate) fn answer(&mut self, content: Vec<Block>, stop: StopReason) {
        let Some(seq) = self.thinking() else { panic!("no agent calls its model") };
        let answer = Answer { cost: None, content, usage: self.usage, model: "m".to_owned(), stop };
        self.session_event(SessionEvent::Answered { seq, answer });
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.answer(vec![Block::Text(text.to_owned())], StopReason::EndTurn);
    }

    /// `calls` are a tool's name and its arguments each.
    pub(crate) fn call(&mut self, calls: &[(&str, &str)]) {
        let content = calls
            .iter()
            .map(|(name, input)| {
                self.calls += 1;
                Block::ToolCall(ToolCall {
                    id: CallId::from(format!("c{}", self.calls).as_str()),
                    name: (*name).to_owned(),
                    input: Json::parse((*input).to_owned()).expect("JSON"),
                    malformed: None,
                })
            })
            .collect();
        self.answer(content, StopReason::ToolUse);
    }

    pub(crate) fn fail(&mut self, class: ErrorClass, retry_after_ms: Option<u64>) {
        self.fail_with(ModelFailure { retry_after_ms, ..ModelFailure::new(class, "its message") });
    }

    pub(crate) fn fail_with(&mut self, failure: ModelFailure) {
        let Some(seq) = self.thinking() else { panic!("no model is called") };
        self.session_event(SessionEvent::ModelFailed { seq, failure });
    }

    pub(crate) fn finish(&mut self, seq: Seq, status: ToolStatus, output: &str) {
        self.finish_with(seq, status, output, Vec::new());
    }

    /// Finishes with images.
    pub(crate) fn finish_with(&mut self, seq: Seq, status: ToolStatus, output: &str, images: Vec<Image>) {
        let result = ToolResult {
            tools: Vec::new(),
            asks: None,
            plan: None,
            facts: provost_event::CallFacts::default(),
            status,
            output: output.to_owned(),
            images,
            whole: None,
            duration_ms: 5,
            memory: None,
        };
        self.session_event(SessionEvent::ToolDone { seq, result });
    }

    /// Finishes with a state for the tool's next call.
    pub(crate) fn finish_remembering(&mut self, seq: Seq, memory: &str) {
        let result = ToolResult {
            tools: Vec::new(),
            asks: None,
            plan: None,
            facts: provost_event::CallFacts::default(),
            status: ToolStatus::Ok,
            output: "ok".to_owned(),
            images: Vec::new(),
            whole: None,
            duration_ms: 5,
            memory: Some(Json::parse(memory.to_owned()).expect("JSON")),
        };
        self.session_event(SessionEvent::ToolDone { seq, result });
    }

    pub(crate) fn finish_first(&mut self, output: &str) {
        let Some((seq, _)) = self.tools().first().cloned() else { panic!("no tool runs") };
        self.finish(seq, ToolStatus::Ok, output);
    }

    /// The open call of a judge.
    pub(crate) fn judging(&self) -> Option<Seq> {
        self.first_open(|effect| matches!(effect, Effect::Judge(_))).map(|id| id.1)
    }

    /// The called judge gives this answer.
    pub(crate) fn judge(&mut self, answer: JudgeAnswer) {
        let seq = self.judging().expect("a judge is asked");
        let usage = Usage { input_tokens: 200, output_tokens: 20, ..Usage::default() };
        let report =
            JudgeReport { answer, usage, model: "judge".to_owned(), duration_ms: 3, evidence: String::new() };
        self.session_event(SessionEvent::Judged { seq, report });
    }

    pub(crate) fn hook(&mut self, verdict: StopHookVerdict, evidence: &str) {
        let Some(seq) = self.checking() else { panic!("no stop hook is asked") };
        let reports = vec![HookReport::new("tests", HookPoint::Stop, verdict)];
        let result = StopCheckResult { reports, evidence: evidence.to_owned() };
        self.session_event(SessionEvent::StopChecked { seq, result });
    }

    pub(crate) fn session(&self) -> &SessionState {
        match self.actors.get(&ROOT.into()) {
            Some(Actor::Session(state)) => state,
            _ => panic!("there is no session"),
        }
    }

    pub(crate) fn run(&self) -> &RunState {
        match self.actors.get(&RUN.into()) {
            Some(Actor::Run(state)) => state,
            _ => panic!("there is no run"),
        }
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.actors.get(&ROOT.into()) {
            Some(Actor::Session(state)) => match state.standing() {
                SessionStatus::Stopped(outcome) => Some(outcome),
                _ => None,
            },
            _ => None,
        }
    }

    /// The session's entries since the last look, a line each, and the open effects.
    pub(crate) fn news(&mut self) -> String {
        let mut text = String::new();
        let shown = self.shown.entry(ROOT.into()).or_default();
        let log = self.logs.get(&ROOT.into()).map(Vec::as_slice).unwrap_or_default();
        for record in log.iter().skip(*shown) {
            let _ = writeln!(text, "{}", short(&record.entry));
        }
        *shown = log.len();
        for ((actor, seq), effect) in &self.open {
            let aborted = if self.aborted.contains(&(*actor, *seq)) { " (abort)" } else { "" };
            if matches!(actor, ActorKey::Session(_)) {
                let _ = writeln!(text, "  → #{seq} {}{aborted}", effect_word(effect));
            }
        }
        text
    }

    /// Takes a snapshot, as the engine itself does at intervals.
    pub(crate) fn take_snapshot(&mut self, key: ActorKey) {
        let Some(actor) = self.actors.get_mut(&key) else { return };
        let state = match &*actor {
            Actor::Run(state) if !actor.has_ended() => Json::of(state),
            Actor::Session(state) if !actor.has_ended() => Json::of(state),
            _ => return,
        };
        let taken = Snapshot { layout: LAYOUT, state: state.expect("it has a JSON form") };
        let record = self.clocks.record(self.now, key, actor.head().next(), taken.into());
        actor.replay(&record).expect("it follows");
        self.logs.entry(key).or_default().push(record);
        self.check_laws();
    }

    /// The actors as another process finds them: read back from the newest snapshots, if there are any.
    pub(crate) fn read_back(&mut self) {
        self.actors.extend(self.folded.iter().map(|(key, actor)| (*key, actor.clone())));
        self.actors.extend(self.restored.iter().map(|(key, actor)| (*key, actor.clone())));
    }

    /// The laws of the logs; and a fold of the log, whole or from its newest snapshot on, gives the state.
    fn check_laws(&mut self) {
        for (key, log) in &self.logs {
            let folded = self.folded.entry(*key).or_insert_with(|| Actor::new(*key));
            let seen = log.partition_point(|record| record.seq <= folded.head());
            for record in &log[seen..] {
                folded.replay(record).expect("the log replays");
                if let Entry::Lifecycle(LifecycleEntry::Snapshot(_)) = record.entry {
                    let restored = Actor::restore(&log[0], record).expect("a snapshot that can be read");
                    self.restored.insert(*key, restored);
                    self.snapshots += 1;
                } else if let Some(restored) = self.restored.get_mut(key) {
                    restored.replay(record).expect("the log replays from its snapshot on");
                }
                if *key == ROOT.into() {
                    self.laws.see(record, self.request_tokens);
                }
                if let Actor::Session(session) = &*folded
                    && *key == ROOT.into()
                {
                    self.laws.goal.see(record, session.goal());
                }
            }
            let state = self.actors.get(key).expect("an actor");
            assert_eq!(folded, state, "the fold of the log is the state");
            if let Some(restored) = self.restored.get(key) {
                assert_eq!(restored, state, "the fold from the snapshot on is the state");
            }
        }
        self.laws.goal.at_quiet();
        self.check_open();
    }

    pub(crate) fn goal_laws(&self) -> &GoalLaws {
        &self.laws.goal
    }

    /// The open effects are those that the state waits for, and a live session waits for something.
    fn check_open(&self) {
        let Some(Actor::Session(state)) = self.actors.get(&ROOT.into()) else { return };
        let open = self.open.keys().filter(|id| id.0 == ROOT.into()).map(|id| id.1).collect::<HashSet<_>>();
        let waited = state.open_effects().into_iter().collect::<HashSet<_>>();
        if self.held.is_empty() {
            assert_eq!(open, waited, "open effects");
        } else {
            // A fired timer stands for the budget that was then requested.
            assert!(open.is_subset(&waited), "open effects {open:?}, and it waits for {waited:?}");
        }
        let is_prompt = |seq: &Seq| match self.open.get(&(ROOT.into(), *seq)) {
            Some(Effect::AskHooks(hook_call)) => matches!(hook_call.about, HookTrigger::Prompt { .. }),
            _ => false,
        };
        match state.standing() {
            SessionStatus::Live => {
                assert!(!open.is_empty() || !self.held.is_empty(), "alive and waiting for nothing");
            }
            SessionStatus::BetweenTurns { .. } => {
                assert!(open.iter().all(is_prompt), "between turns with open effects");
            }
            SessionStatus::New | SessionStatus::Stopped(_) => {
                assert!(open.is_empty(), "suspended with open effects")
            }
        }
    }
}

fn is_preempted_record(message: &Message) -> bool {
    matches!(&message.event, Event::Run(RunEvent::SessionStopped { outcome, .. }) if outcome.is_preempted())
}

fn effect_word(effect: &Effect) -> String {
    match effect {
        Effect::CallModel(model_call) => {
            let purpose = match model_call.purpose {
                Purpose::Turn => String::new(),
                purpose => format!("{purpose:?}, "),
            };
            format!("call model ({purpose}turn {}, cap {})", model_call.turn, model_call.output_tokens_max)
        }
        Effect::RunTool(run) => format!("run {} {}", run.tool, run.input.text()),
        Effect::Judge(call) => format!("judge {} ({:?}, turn {})", call.judge, call.trigger, call.turn),
        Effect::CheckStop(check) => format!("check stop: {:?}", check.final_text),
        Effect::AskHooks(hook_call) => format!("ask hooks: {}", hook_call.about.points()[0].name()),
        Effect::MakeWorktree(order) => format!("make worktree {}", order.path.display()),
        Effect::CheckWorktree(check) => format!("check worktree: when clean, it {:?}", check.when_clean),
        Effect::CloseTerminal { .. } => "close terminal".to_owned(),
        Effect::Timer { .. } => "timer".to_owned(),
    }
}

/// An entry about a call of an external agent's program.
fn external_call(entry: &Entry) -> Option<String> {
    let text = match entry {
        Entry::Model(ModelEntry::ExternalCalled(e)) => {
            format!("external_model_called {} of {} cap {}", e.call, e.of.request, e.output_tokens_max)
        }
        Entry::Model(ModelEntry::ExternalAnswered(e)) => {
            let tokens = e.usage.total();
            format!(
                "external_model_answered {} {:?}: {tokens} tokens, {:?}",
                e.call, e.end, e.usage.certainty
            )
        }
        Entry::Model(ModelEntry::ExternalQueued(e)) => format!("external_model_queued {}", e.of.request),
        Entry::Model(ModelEntry::ExternalRefused(e)) => {
            let limit = e.exhausted.map(|exhausted| exhausted.dimension);
            format!("external_model_refused {}: {limit:?}", e.of.request)
        }
        _ => return None,
    };
    Some(text)
}

#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn short(entry: &Entry) -> String {
    if let Some(text) = external_call(entry) {
        return text;
    }
    match entry {
        Entry::Model(ModelEntry::Called(e)) => {
            let purpose = match e.purpose {
                Purpose::Turn => String::new(),
                purpose => format!(" for {purpose:?}"),
            };
            format!("model_called turn {} call {} attempt {}{purpose}", e.turn, e.call, e.attempt)
        }
        Entry::Conversation(ConversationEntry::AssistantMessage(e)) => {
            format!("assistant_message {:?} {} blocks", e.stop, e.content.len())
        }
        Entry::Model(ModelEntry::Retried(e)) => format!("retry {:?} in {} ms", e.cause, e.delay_ms),
        Entry::Tool(ToolEntry::Started(e)) => {
            format!("tool_started {}{}", e.call, if e.again { " again" } else { "" })
        }
        Entry::Tool(ToolEntry::Finished(e)) => {
            let output = e.output.chars().take(120).collect::<String>();
            format!("tool_finished {} {:?}: {output}", e.call, e.status)
        }
        Entry::Conversation(ConversationEntry::SystemItem(e)) => format!("system_item {:?}", e.item),
        Entry::Gate(GateEntry::StopChecked(e)) => format!("stop_verdicts {:?}", e.reports[0].stop_verdict()),
        Entry::Goal(GoalEntry::CheckStarted(e)) => {
            format!("goal_check_started {:?} turn {} generation {}", e.trigger, e.turn, e.generation)
        }
        Entry::Goal(GoalEntry::Judged(e)) => {
            let said = match &e.answer {
                JudgeAnswer::Verdict(said) if said.achieved => format!("achieved {}", said.confidence),
                JudgeAnswer::Verdict(said) => format!("not achieved {}", said.confidence),
                JudgeAnswer::Failed(error) => error.to_string(),
            };
            let wait = e.wait_ms.map(|ms| format!(", asked again in {ms} ms")).unwrap_or_default();
            let stale = if e.stale { " (stale)" } else { "" };
            format!("goal_judged {} generation {}: {said}{wait}{stale}", e.judge, e.generation)
        }
        Entry::Goal(GoalEntry::Verdict(e)) => {
            let finding = match &e.finding {
                GoalFinding::Achieved { confidence, .. } => format!("achieved {confidence}"),
                GoalFinding::NotAchieved { reasoning, .. } => format!("not achieved, {reasoning}"),
                GoalFinding::Unverified { why } => format!("unverified, {why}"),
            };
            format!("goal_verdict {:?} turn {} generation {}: {finding}", e.trigger, e.turn, e.generation)
        }
        Entry::Goal(GoalEntry::Cleared(e)) => format!("goal_cleared by {}", e.by),
        Entry::Conversation(ConversationEntry::FinalSummary(e)) => match &e.problem {
            Some(problem) => format!("final_summary_finished: nothing, {problem}"),
            None => format!("final_summary_finished: {}", e.text),
        },
        Entry::Lifecycle(LifecycleEntry::Paused(e)) => format!("paused: {}", e.outcome),
        Entry::Lifecycle(LifecycleEntry::Ended(e)) => format!("ended: {}", e.outcome),
        Entry::Lifecycle(LifecycleEntry::StopRequested(e)) => format!("stop_requested: {}", e.outcome),
        Entry::Conversation(ConversationEntry::Compacted(e)) => {
            let how = format!("{:?}", e.how).to_lowercase();
            let (before, after) = (e.tokens_before, e.tokens_after);
            format!("compacted ({how}) through {} ({before} → {after} tokens)", e.through)
        }
        Entry::Gate(GateEntry::HooksAsked(e)) => format!("hooks_asked {}", e.about.points()[0].name()),
        Entry::Gate(GateEntry::HooksDecided(e)) => {
            let said = e.reports.iter().map(|report| format!("{:?}", report.decision)).collect::<Vec<_>>();
            format!("hooks_decided #{} {}", e.asked, said.join(", "))
        }
        Entry::Gate(GateEntry::PermissionDecided(e)) => {
            format!("permission_decided {} {:?}", e.call, e.permission)
        }
        Entry::Gate(GateEntry::ApprovalRequested(e)) => format!("approval_requested {}: {}", e.call, e.why),
        Entry::Gate(GateEntry::ApprovalResolved(e)) => {
            format!("approval_resolved #{} {:?} by {}", e.asked, e.answer, e.by)
        }
        Entry::Terminal(TerminalEntry::Noted(e)) => format!("terminal_noted {}", e.event),
        other => other.kind().to_owned(),
    }
}
