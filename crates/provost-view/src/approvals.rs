//! Calls that need approval: the open questions of runs, and which answer was first.

use futures::{StreamExt as _, stream};
use provost_engine::{Actor, AgentState, PendingApproval, RunState};
use provost_event::{
    ActorKey, ApprovalRequested, ApprovalResolved, CallQuestion, EffectId, Entry, GateEntry, Json,
    NamedScript, Outcome, OutsideSandbox, PauseReason, Record, RunId, Seq, SessionId, TerminalEntry,
    TerminalEvent, Timestamp,
};
use provost_harness::{Backend, BackendError, RunQuery, RunStatus, RunStatusFilter, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::status::READ_MAX;
use crate::{AgentNames, RUNS_AT_ONCE, ViewVersion, Wait, status_word, terminal_wait};

/// Entries between a program's request and the question to the user: hooks and permissions come between.
const NOTED_BEFORE: u64 = 100;
/// Entries at the end of an agent's log among which its last answer is looked for.
const LAST_ENTRIES: u64 = 500;

/// A tool call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalQuestion {
    /// The name of the question: what `provost approve` and `provost deny` take.
    id: EffectId,
    /// Whose call it is.
    pub session: SessionId,
    /// The number of that agent in its run; 0 is the root.
    agent: u32,
    /// The name of that agent; empty for the root.
    pub name: String,
    /// The program that asks, if the agent is external; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// How the program can be answered, in its screen's words and keys; absent where that isn't known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The entry of the agent's log that asks.
    pub asked: Seq,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Json,
    /// Why it is asked.
    pub why: String,
    /// The narrowest pattern that covers it.
    pub pattern: String,
    /// The scripts that the answer is bound to: with any, it counts for this call only. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name: the answer counts for this call only then, too. Absent if
    /// false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
    /// Present if the call is to run outside of the agent's sandbox: the answer counts for this call only. Absent if it
    /// isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideSandbox>,
    /// Present if the call has begun and its tool asks this: the answer is for the tool, and counts for this call only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ToolQuestion>,
    /// Since when it waits.
    #[serde(rename = "asked_at_ms")]
    pub since: Timestamp,
    /// Until when.
    #[serde(rename = "due_ms")]
    pub due: Timestamp,
    /// How much of that time has certainly passed, in milliseconds, by the logs; no time passes for it while no process
    /// holds the run.
    pub passed_ms: u64,
}

/// What a tool asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolQuestion {
    /// The question.
    pub message: String,
    /// The JSON Schema of the answer, an object.
    pub schema: Json,
}

impl ToolQuestion {
    /// The question of a call, without what is for the tool alone.
    fn of(question: &CallQuestion) -> Self {
        Self { message: question.message.clone(), schema: question.schema.clone() }
    }

    /// The fields that an answer must have and that agreeing alone doesn't give: all that are required but those with a
    /// default and those that are true or false.
    #[must_use]
    pub fn needed(&self) -> Vec<String> {
        let schema = self.schema.read::<serde_json::Value>().unwrap_or_default();
        let required = schema.get("required").and_then(serde_json::Value::as_array);
        let names = required.into_iter().flatten().filter_map(serde_json::Value::as_str);
        let is_needed = |name: &&str| {
            let field = schema.get("properties").and_then(|fields| fields.get(*name));
            let kind = field.and_then(|field| field.get("type")?.as_str());
            field.is_none_or(|field| field.get("default").is_none()) && kind != Some("boolean")
        };
        names.filter(is_needed).map(str::to_owned).collect()
    }
}

/// An open question of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Approval {
    /// The version of the view.
    pub v: ViewVersion,
    /// The run.
    pub run: RunId,
    /// Its status, in the word that the list of runs has.
    pub run_status: String,
    /// Its goal.
    pub goal: String,
    /// The question.
    #[serde(flatten)]
    pub question: ApprovalQuestion,
}

/// Both parts are read from the object's own text: arguments of calls are kept as their text, which can't be read
/// through a flattened member.
impl<'de> Deserialize<'de> for Approval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            v: ViewVersion,
            run: RunId,
            run_status: String,
            goal: String,
        }
        let whole = Json::deserialize(deserializer)?;
        let Head { v, run, run_status, goal } = whole.read().map_err(de::Error::custom)?;
        let question = whole.read().map_err(de::Error::custom)?;
        Ok(Self { v, run, run_status, goal, question })
    }
}

impl Approval {
    /// A question of `run`, which has this status.
    #[must_use]
    pub fn new(run: &RunSummary, question: ApprovalQuestion, run_status: &str) -> Self {
        Self {
            v: ViewVersion,
            run: run.run,
            run_status: run_status.to_owned(),
            goal: run.goal.clone(),
            question,
        }
    }
}

impl ApprovalQuestion {
    /// The question that a record asks, if it does; without the agent's name.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let (ActorKey::Session(session), Entry::Gate(GateEntry::ApprovalRequested(entry))) =
            (record.actor, &record.entry)
        else {
            return None;
        };
        let ApprovalRequested {
            call: _,
            tool,
            input,
            why,
            pattern,
            due,
            scripts,
            unnamed,
            outside,
            question,
        } = entry.clone();
        Some(Self {
            id: EffectId { actor: session.into(), seq: record.seq },
            session,
            agent: session.agent,
            name: String::new(),
            program: None,
            options: Vec::new(),
            asked: record.seq,
            tool,
            input,
            why,
            pattern,
            scripts,
            unnamed,
            outside,
            question: question.as_deref().map(ToolQuestion::of),
            since: record.at,
            due,
            passed_ms: 0,
        })
    }

    fn open(session: SessionId, open: &PendingApproval, program: Option<String>) -> Self {
        Self {
            id: EffectId { actor: session.into(), seq: open.asked },
            session,
            agent: session.agent,
            name: String::new(),
            program,
            options: Vec::new(),
            asked: open.asked,
            tool: open.tool.clone(),
            input: open.input.clone(),
            why: open.why.clone(),
            pattern: open.pattern.clone(),
            scripts: open.scripts.clone(),
            unnamed: open.unnamed,
            outside: open.outside.clone(),
            question: open.question.as_deref().map(ToolQuestion::of),
            since: open.since,
            due: open.due,
            passed_ms: 0,
        }
    }

    /// The same, with the name of its agent.
    #[must_use]
    pub fn by(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The same, asked again from `at`, with the whole time for an answer.
    #[must_use]
    pub fn anew(self, at: Timestamp) -> Self {
        Self { since: at, due: at.plus_ms(self.due.since_ms(self.since)), passed_ms: 0, ..self }
    }

    /// How long an answer is awaited.
    #[must_use]
    pub const fn wait(&self) -> Wait {
        Wait { since: self.since, due: self.due, passed_ms: self.passed_ms }
    }

    /// Whether it can be approved for this call only: what it runs may be something else next time.
    #[must_use]
    pub const fn is_for_once(&self) -> bool {
        self.unnamed || !self.scripts.is_empty() || self.outside.is_some() || self.question.is_some()
    }

    /// Its name among all.
    #[must_use]
    pub const fn id(&self) -> EffectId {
        self.id
    }

    /// Its name for people: that of a root agent's question goes without the agent's number.
    #[must_use]
    pub fn short_id(&self) -> String {
        short_id(self.id)
    }
}

/// The name of a question for people: that of a root agent's question goes without the agent's number.
#[must_use]
pub fn short_id(id: EffectId) -> String {
    let EffectId { actor, seq } = id;
    match actor {
        ActorKey::Session(SessionId { run, agent: 0 }) => format!("{run}#{seq}"),
        actor => format!("{actor}#{seq}"),
    }
}

/// The open questions of `run`, by agent and in the order in which they were asked.
///
/// # Errors
/// When its logs can't be read.
pub async fn open_in(backend: &dyn Backend, run: RunId) -> Result<Vec<ApprovalQuestion>, BackendError> {
    match backend.state(run.into()).await? {
        Actor::Run(state) => open_with(backend, &state).await,
        Actor::Session(_) => Ok(Vec::new()),
    }
}

async fn open_with(backend: &dyn Backend, state: &RunState) -> Result<Vec<ApprovalQuestion>, BackendError> {
    let mut all = Vec::new();
    for session in askers(state) {
        let actor = backend.state(session.into()).await?;
        for mut question in open_of(session, &actor) {
            if question.program.is_some() {
                question.options = options(backend, &question).await?;
            }
            // One that is asked on after a suspension has all its time again.
            let asked = record(backend, session, question.asked).await?;
            if let Some(asked) = asked.filter(|asked| asked.at == question.since) {
                question.passed_ms = actor.elapsed().max(state.elapsed()).since_ms(asked.elapsed);
            }
            all.push(question);
        }
    }
    if all.is_empty() {
        return Ok(all);
    }
    let names = AgentNames::of(state);
    let named = all.into_iter().map(|question| {
        let name = names.name(question.session).to_owned();
        question.by(&name)
    });
    Ok(named.collect())
}

/// How a program can be answered: what was noted of its question shortly before the user was asked.
async fn options(backend: &dyn Backend, question: &ApprovalQuestion) -> Result<Vec<String>, BackendError> {
    let after = Seq(question.asked.0.saturating_sub(NOTED_BEFORE));
    let records = backend.read(question.session.into(), after, READ_MAX).await?;
    let before = records.iter().rev().filter(|record| record.seq < question.asked);
    let ask = before.filter_map(|record| match &record.entry {
        Entry::Terminal(TerminalEntry::Noted(noted)) => match &noted.event {
            TerminalEvent::ApprovalRequest(ask) => Some(ask),
            _ => None,
        },
        _ => None,
    });
    let Some(ask) = ask.into_iter().next() else { return Ok(Vec::new()) };
    Ok(ask.options.iter().map(|option| option.label.clone()).collect())
}

/// The agents of a run that may have asked something and wait for it: those whose work isn't over.
fn askers(state: &RunState) -> Vec<SessionId> {
    let may = |standing: &AgentState| !matches!(standing, AgentState::Queued | AgentState::Finished(_));
    state.agents().filter(|agent| may(&agent.standing)).map(|agent| agent.session).collect()
}

/// The open questions of a session that stands like `actor`.
#[must_use]
pub fn open_of(session: SessionId, actor: &Actor) -> Vec<ApprovalQuestion> {
    let Actor::Session(state) = actor else { return Vec::new() };
    let external = state.policy().and_then(|policy| policy.external.as_ref());
    let program = external.map(|external| external.program.clone());
    let question = |open: &PendingApproval| ApprovalQuestion::open(session, open, program.clone());
    state.approvals().map(question).collect()
}

/// The question that entry `seq` of a session's log asked, open or not, without the agent's name; `None` if it asked
/// none.
///
/// # Errors
/// When the entry can't be read.
pub async fn question_at(
    backend: &dyn Backend,
    session: SessionId,
    seq: Seq,
) -> Result<Option<ApprovalQuestion>, BackendError> {
    Ok(record(backend, session, seq).await?.and_then(|record| ApprovalQuestion::of(&record)))
}

/// The entry `seq` of a session's log.
async fn record(
    backend: &dyn Backend,
    session: SessionId,
    seq: Seq,
) -> Result<Option<std::sync::Arc<Record>>, BackendError> {
    let before = Seq(seq.0.saturating_sub(1));
    Ok(backend.read(session.into(), before, 1).await?.first().filter(|record| record.seq == seq).cloned())
}

/// A run with open questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunApprovals {
    /// The run.
    pub run: RunSummary,
    /// Its questions, by agent and in the order in which they were asked; at least one.
    pub questions: Vec<ApprovalQuestion>,
}

impl RunApprovals {
    /// Each question as a view of its own, with the run's present status.
    pub async fn views(&self, backend: &dyn Backend) -> Vec<Approval> {
        let status = status_word(&self.run, &self.questions, terminal_wait(backend, &self.run).await);
        let questions = self.questions.iter().cloned();
        questions.map(|question| Approval::new(&self.run, question, &status)).collect()
    }
}

/// The open questions of all runs.
#[derive(Debug, Default)]
pub struct OpenApprovals {
    /// The runs with open questions, the newest first.
    pub runs: Vec<RunApprovals>,
    /// The runs whose questions are unknown, and why.
    pub unread: Vec<(RunId, BackendError)>,
}

/// The open questions of all runs.
///
/// # Errors
/// When the runs can't be listed. A run whose logs can't be read doesn't hide the others' questions.
pub async fn open_approvals(backend: &dyn Backend) -> Result<OpenApprovals, BackendError> {
    let mut all = OpenApprovals::default();
    let runs = backend.list(RunQuery::with_status(RunStatusFilter::NotEnded)).await?;
    let read = stream::iter(runs).map(|run| async move {
        let questions = questions_of(backend, &run).await;
        (run, questions)
    });
    let mut read = read.buffered(RUNS_AT_ONCE);
    while let Some((run, questions)) = read.next().await {
        match questions {
            Ok(open) if open.is_empty() => {}
            Ok(questions) => all.runs.push(RunApprovals { run, questions }),
            Err(error) => all.unread.push((run.run, error)),
        }
    }
    Ok(all)
}

/// The open questions of a run in a list. One that has ended asks nothing, and its logs aren't read.
///
/// # Errors
/// When its logs can't be read.
pub async fn questions_of(
    backend: &dyn Backend,
    run: &RunSummary,
) -> Result<Vec<ApprovalQuestion>, BackendError> {
    if has_ended(run) { Ok(Vec::new()) } else { open_in(backend, run.run).await }
}

/// The same of one that stands like `state`; none where its agents' logs can't be read.
pub(crate) async fn questions_with(
    backend: &dyn Backend,
    (run, state): (&RunSummary, &RunState),
) -> Vec<ApprovalQuestion> {
    if has_ended(run) { Vec::new() } else { open_with(backend, state).await.unwrap_or_default() }
}

fn has_ended(run: &RunSummary) -> bool {
    matches!(&run.status, RunStatus::Stopped(outcome) if outcome.is_final())
}

/// Whether nothing but an answer kept a run from going on: its process is gone, or the wait for the answer has suspended
/// it.
#[must_use]
pub const fn awaits_answer(status: &RunStatus) -> bool {
    match status {
        RunStatus::Interrupted => true,
        RunStatus::Stopped(outcome) => {
            matches!(outcome, Outcome::Paused { why: PauseReason::Approval { .. } })
        }
        RunStatus::Running => false,
    }
}

/// The answer to a question, and when it was given; `None` while there is none.
///
/// # Errors
/// When the log can't be read.
pub async fn answer_to(
    backend: &dyn Backend,
    question: &ApprovalQuestion,
) -> Result<Option<(ApprovalResolved, Timestamp)>, BackendError> {
    let mut after = question.asked;
    loop {
        let records = backend.read(question.session.into(), after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(None) };
        after = last.seq;
        let found = records.iter().find_map(|record| match &record.entry {
            Entry::Gate(GateEntry::ApprovalResolved(entry)) if entry.asked == question.asked => {
                Some((entry.clone(), record.at))
            }
            _ => None,
        });
        if found.is_some() {
            return Ok(found);
        }
    }
}

/// The newest answer among the last entries of a run's agents; `None` if there is none.
///
/// # Errors
/// When a log can't be read.
pub async fn last_answer(
    backend: &dyn Backend,
    run: RunId,
) -> Result<Option<(EffectId, ApprovalResolved, Timestamp)>, BackendError> {
    let mut newest = None;
    for actor in backend.actors(run).await? {
        if matches!(actor, ActorKey::Run(_)) {
            continue;
        }
        let head = backend.state(actor).await?.head();
        let after = Seq(head.0.saturating_sub(LAST_ENTRIES));
        for record in backend.read(actor, after, READ_MAX).await? {
            if let Entry::Gate(GateEntry::ApprovalResolved(entry)) = &record.entry
                && newest.as_ref().is_none_or(|(_, _, at)| *at <= record.at)
            {
                newest = Some((EffectId { actor, seq: entry.asked }, entry.clone(), record.at));
            }
        }
    }
    Ok(newest)
}
