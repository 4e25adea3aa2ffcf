//! Calls that need approval: the open questions of runs, which of them is meant, and which answer was first.

use anyhow::Context as _;
use provost_engine::{Actor, AgentState, PendingApproval, RunState};
use provost_event::{
    ActorKey, ApprovalRequested, ApprovalResolved, EffectId, Entry, GateEntry, Json, NamedScript, Record,
    RunId, Seq, SessionId, TerminalEntry, TerminalEvent, Timestamp,
};
use provost_harness::{Backend, RunQuery, RunStatus, RunStatusFilter, RunSummary, read_actor};

use crate::names::Names;
use crate::render::Wait;

/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Entries between a program's request and the question to the user: hooks and permissions come between.
const NOTED_BEFORE: u64 = 100;
/// Entries at the end of an agent's log among which its last answer is looked for.
const LAST_ENTRIES: u64 = 500;

/// A tool call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Whose call.
    pub(crate) session: SessionId,
    /// The agent's name, in a few words; absent for the root.
    pub(crate) who: Option<String>,
    /// The program that asks, if the agent is external.
    pub(crate) program: Option<String>,
    /// How the program can be answered, in its screen's words and keys; empty where that isn't known.
    pub(crate) options: String,
    /// The entry that asks.
    pub(crate) asked: Seq,
    /// The tool.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) input: Json,
    /// Why it is asked.
    pub(crate) why: String,
    /// The narrowest pattern that covers it.
    pub(crate) pattern: String,
    /// The scripts that the answer is bound to; with any, it counts for this call only.
    pub(crate) scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name: it counts for this call only then, too.
    pub(crate) unnamed: bool,
    /// Since when it waits.
    pub(crate) since: Timestamp,
    /// Until when.
    pub(crate) due: Timestamp,
    /// How much of that time has certainly passed, by the logs.
    pub(crate) passed_ms: u64,
}

impl Question {
    /// The question that a record asks, if it does.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let (ActorKey::Session(session), Entry::Gate(GateEntry::ApprovalRequested(entry))) =
            (record.actor, &record.entry)
        else {
            return None;
        };
        let ApprovalRequested { call: _, tool, input, why, pattern, due, scripts, unnamed } = entry.clone();
        let who = Names::default().prefix(record.actor);
        let (program, options, asked, since) = (None, String::new(), record.seq, record.at);
        Some(Self {
            session,
            who,
            program,
            options,
            asked,
            tool,
            input,
            why,
            pattern,
            scripts,
            unnamed,
            since,
            due,
            passed_ms: 0,
        })
    }

    /// The same, with what its agent is called.
    pub(crate) fn by(self, names: &Names) -> Self {
        Self { who: names.prefix(self.session.into()), ..self }
    }

    /// The same, asked again from `at`, with the whole time for an answer.
    pub(crate) fn anew(self, at: Timestamp) -> Self {
        Self { since: at, due: at.plus_ms(self.due.since_ms(self.since)), passed_ms: 0, ..self }
    }

    /// How long an answer is awaited.
    pub(crate) const fn wait(&self) -> Wait {
        Wait { since: self.since, due: self.due, passed_ms: self.passed_ms }
    }

    /// Why it can't be approved for longer than this call, where it can't.
    pub(crate) fn why_once(&self) -> Option<String> {
        let scripts: Vec<&str> = self.scripts.iter().map(|script| script.path.as_str()).collect();
        let are = if scripts.len() == 1 { "a script, which" } else { "scripts, which" };
        if scripts.is_empty() {
            let why = "it may run files that it doesn't name, and others next time: only this call can be agreed to";
            return self.unnamed.then(|| why.to_owned());
        }
        Some(format!(
            "it runs {}, {are} may hold something else next time: only this call can be agreed to",
            scripts.join(", ")
        ))
    }

    /// Its name among all.
    pub(crate) fn id(&self) -> EffectId {
        EffectId { actor: self.session.into(), seq: self.asked }
    }

    /// Its name for people: the root agent's go without its number.
    pub(crate) fn name(&self) -> String {
        name_of(self.id())
    }
}

/// The name for people of the question that was asked by this entry.
pub(crate) fn name_of(id: EffectId) -> String {
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
pub(crate) async fn open_in(backend: &dyn Backend, run: RunId) -> anyhow::Result<Vec<Question>> {
    let Actor::Run(state) = read_actor(backend, run.into()).await? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for session in may_ask(&state) {
        let actor = read_actor(backend, session.into()).await?;
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
    let names = Names::of(&state);
    Ok(all.into_iter().map(|question| question.by(&names)).collect())
}

/// How a program can be answered: what was noted of its question shortly before the user was asked.
async fn options(backend: &dyn Backend, question: &Question) -> anyhow::Result<String> {
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
    let Some(ask) = ask.into_iter().next() else { return Ok(String::new()) };
    Ok(ask.options.iter().map(|option| option.label.as_str()).collect::<Vec<_>>().join(" · "))
}

/// The agents of a run that may have asked something and wait for it: those whose work isn't over.
fn may_ask(state: &RunState) -> Vec<SessionId> {
    let may = |standing: &AgentState| !matches!(standing, AgentState::Queued | AgentState::Finished(_));
    state.agents().filter(|agent| may(&agent.standing)).map(|agent| agent.session).collect()
}

/// The open questions of a session that stands like `actor`.
pub(crate) fn open_of(session: SessionId, actor: &Actor) -> Vec<Question> {
    let Actor::Session(state) = actor else { return Vec::new() };
    let external = state.policy().and_then(|policy| policy.external.as_ref());
    let program = external.map(|external| external.program.clone());
    let question = |open: &PendingApproval| Question {
        program: program.clone(),
        options: String::new(),
        session,
        who: Names::default().prefix(session.into()),
        asked: open.asked,
        tool: open.tool.clone(),
        input: open.input.clone(),
        why: open.why.clone(),
        pattern: open.pattern.clone(),
        scripts: open.scripts.clone(),
        unnamed: open.unnamed,
        since: open.since,
        due: open.due,
        passed_ms: 0,
    };
    state.approvals().map(question).collect()
}

/// The entry `seq` of a session's log.
///
/// # Errors
/// When it can't be read.
pub(crate) async fn record(
    backend: &dyn Backend,
    session: SessionId,
    seq: Seq,
) -> anyhow::Result<Option<std::sync::Arc<Record>>> {
    let before = Seq(seq.0.saturating_sub(1));
    Ok(backend.read(session.into(), before, 1).await?.first().filter(|record| record.seq == seq).cloned())
}

/// The open questions of all runs.
pub(crate) struct Everywhere {
    /// The runs with open questions, the newest first, each with its questions.
    pub(crate) waiting: Vec<(RunSummary, Vec<Question>)>,
    /// Why the questions of some runs are unknown.
    pub(crate) untold: Vec<anyhow::Error>,
}

/// The open questions of all runs.
///
/// # Errors
/// When the runs can't be listed. A run whose logs can't be read doesn't hide the others' questions.
pub(crate) async fn everywhere(backend: &dyn Backend) -> anyhow::Result<Everywhere> {
    let mut all = Everywhere { waiting: Vec::new(), untold: Vec::new() };
    for run in backend.list(RunQuery::with_status(RunStatusFilter::NotEnded)).await? {
        match of_summary(backend, &run).await {
            Ok(open) if open.is_empty() => {}
            Ok(open) => all.waiting.push((run, open)),
            Err(error) => all.untold.push(error),
        }
    }
    Ok(all)
}

/// The open questions of a run in a list. One that has ended asks nothing, and its logs aren't read.
///
/// # Errors
/// When its logs can't be read.
pub(crate) async fn of_summary(backend: &dyn Backend, run: &RunSummary) -> anyhow::Result<Vec<Question>> {
    match &run.status {
        RunStatus::Stopped(outcome) if outcome.is_final() => Ok(Vec::new()),
        RunStatus::Stopped(_) | RunStatus::Running | RunStatus::Interrupted => {
            let open = open_in(backend, run.run).await;
            open.with_context(|| format!("can't tell what run {} waits for", run.run))
        }
    }
}

/// The answer to a question, and when it was given; `None` while there is none.
///
/// # Errors
/// When the log can't be read.
pub(crate) async fn answer_to(
    backend: &dyn Backend,
    question: &Question,
) -> anyhow::Result<Option<(ApprovalResolved, Timestamp)>> {
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
pub(crate) async fn last_answer(
    backend: &dyn Backend,
    run: RunId,
) -> anyhow::Result<Option<(EffectId, ApprovalResolved, Timestamp)>> {
    let mut newest = None;
    for actor in backend.actors(run).await? {
        if matches!(actor, ActorKey::Run(_)) {
            continue;
        }
        let head = read_actor(backend, actor).await?.head();
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

/// The user at this terminal, by the name for the log; `default` where the system doesn't know it.
pub(crate) fn user_name(default: &str) -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| default.to_owned())
}
