//! `provost approve` and `provost deny`: the answer to a question, from any terminal.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use provost_config::Kept;
use provost_config::{Request, Scope, load};
use provost_engine::Permissions;
use provost_event::{
    ActorKey, ApprovalAnswer, ApprovalResolved, ApprovalScope, Permission, PermissionPolicy, RunId, Seq,
    SessionId, Timestamp,
};
use provost_harness::{Backend, Clock as _, RunStatus, SystemClock};

use super::act::{resuming, status};
use super::find::find;
use super::{current_dir, print, shown};
use crate::answering::{Given, give};
use crate::cli::{ApproveArgs, DenyArgs};
use crate::exit::{Exit, Refusal};
use crate::output::{tell, tell_raw};
use crate::questions::user_name;
use crate::questions::{asker, why_once};
use crate::render::{age, answer_in_words, call_in_words, one_line, safe};
use crate::server::takes_up;
use crate::wiring::{state_dir, variables};
use provost_runtime::{StateDir, available_tools, known_tools};
use provost_view::{
    ApprovalQuestion, awaits_answer, last_answer, open_approvals, open_in, question_at, run_state, short_id,
};

/// Questions shown when it isn't clear which is meant.
const SHOWN_MAX: usize = 10;
const CALL_WIDTH: usize = 60;

pub(super) async fn approve(args: ApproveArgs) -> anyhow::Result<Exit> {
    let scope = match (args.for_run, args.always) {
        (false, false) => ApprovalScope::Once,
        (true, _) => ApprovalScope::Run,
        (false, true) => ApprovalScope::Always,
    };
    if args.pattern.is_some() && scope == ApprovalScope::Once {
        let what = "--pattern says which calls are allowed from now on, and nothing says for how long";
        return Err(Refusal::new(what, "give --for-run or --always too").into());
    }
    let approvals = ApprovalControl::open().await?;
    let question = approvals.question(args.question.as_deref()).await?;
    if let Some(answer) = answer_for_tool(args.answer.as_deref(), &question)? {
        return approvals.answer(&question, answer, "provost approve").await;
    }
    if scope != ApprovalScope::Once
        && let Some(why) = why_once(&question)
    {
        let hint = "leave --for-run and --always out, or allow it by name in your own settings";
        return Err(Refusal::new(&why, hint).into());
    }
    let pattern = match (scope, args.pattern) {
        (ApprovalScope::Once, _) => None,
        (_, Some(pattern)) => Some(approvals.covering(pattern, &question).await?),
        (_, None) => Some(question.pattern.clone()),
    };
    approvals.answer(&question, ApprovalAnswer::Allow { scope, pattern }, "provost approve").await
}

/// The answer to what a tool asks; `None` if it is to be agreed to, or if no tool asks.
fn answer_for_tool(
    given: Option<&str>,
    question: &ApprovalQuestion,
) -> anyhow::Result<Option<ApprovalAnswer>> {
    let first = question.question.as_ref().and_then(|asked| asked.fields().into_iter().next());
    let example = match first {
        Some(field) => format!("e.g. --answer '{{{}: …}}'", serde_json::Value::from(field.name)),
        None => "leave --answer out".to_owned(),
    };
    let Some(given) = given else {
        return Ok(question.agreed().map_err(|what| Refusal::new(what, example))?);
    };
    if question.question.is_none() {
        let what = "--answer is for what a tool asks, and this is a call";
        return Err(Refusal::new(what, "leave it out").into());
    }
    let fields = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(given);
    let fields = fields
        .map_err(|error| Refusal::new(format!("--answer isn't a JSON object: {error}"), example.as_str()))?;
    let answer = question.filled(fields);
    Ok(Some(answer.map_err(|why| Refusal::new(format!("--answer: {why}"), example))?))
}

pub(super) async fn deny(args: DenyArgs) -> anyhow::Result<Exit> {
    let approvals = ApprovalControl::open().await?;
    let question = approvals.question(args.question.as_deref()).await?;
    let reason = args.reason.join(" ").trim().to_owned();
    approvals.answer(&question, ApprovalAnswer::Deny { reason }, "provost deny").await
}

/// The runs, and where the user's own settings are.
struct ApprovalControl {
    place: StateDir,
    backend: Arc<dyn Backend>,
    user_file: PathBuf,
}

impl ApprovalControl {
    async fn open() -> anyhow::Result<Self> {
        let (folder, variables) = (current_dir()?, variables());
        let (scope, folder) = (Scope::User, folder.as_path());
        let request = Request::new(scope, folder, &variables, available_tools());
        let (loading, folders) = load(&request)?;
        let place = state_dir(&loading.settled()?.settings, &folders);
        let backend = place.open().await?;
        Ok(Self { place, backend, user_file: folders.user_file })
    }

    /// The question that is meant: the only one there is, the only one of a run, or the one with this name,
    /// whether it is open or not.
    async fn question(&self, word: Option<&str>) -> anyhow::Result<ApprovalQuestion> {
        let Some(word) = word else {
            let all = open_approvals(&*self.backend).await?.runs;
            let all = all.into_iter().flat_map(|run| run.questions).collect();
            return Ok(only(all, "nothing waits for approval", "wait for approval")?);
        };
        let Some((before, number)) = word.split_once('#') else {
            let run = find(&*self.backend, word).await?;
            let open = open_in(&*self.backend, run).await?;
            let mut none = format!("nothing of run {run} waits for approval");
            if open.is_empty()
                && let Some((id, first, at)) = last_answer(&*self.backend, run).await?
            {
                none = format!("{none}; {}", has_answer(&short_id(id), &first, at));
            }
            return Ok(only(open, &none, &format!("of run {run} wait for approval"))?);
        };
        let unclear = || {
            Refusal::new(
                format!("`{word}` names no question"),
                "`provost approvals` lists them, as RUN#NUMBER",
            )
        };
        let seq = Seq(number.parse().map_err(|_| unclear())?);
        let (run, agent) = match before.split_once('.') {
            Some((run, agent)) => (run, Some(agent.parse().map_err(|_| unclear())?)),
            None => (before, None),
        };
        self.named(find(&*self.backend, run).await?, agent, seq).await
    }

    /// The question that entry `seq` asked, of the agent with this number or of whichever asked one there.
    async fn named(&self, run: RunId, agent: Option<u32>, seq: Seq) -> anyhow::Result<ApprovalQuestion> {
        let mut found = Vec::new();
        for actor in self.backend.actors(run).await? {
            let ActorKey::Session(session) = actor else { continue };
            if agent.is_some_and(|agent| session != SessionId { run, agent }) {
                continue;
            }
            found.extend(question_at(&*self.backend, session, seq).await?);
        }
        if found.is_empty() {
            let open = open_in(&*self.backend, run).await?;
            let what = format!("entry {seq} of run {run} asks nothing");
            return Err(Refusal::new(with_list(what, &open), "`provost approvals` lists what waits").into());
        }
        Ok(only(found, "", &format!("are number {seq} of run {run}"))?)
    }

    /// The pattern must cover the call in question; otherwise the user would approve something else than what is
    /// shown.
    async fn covering(&self, pattern: String, question: &ApprovalQuestion) -> anyhow::Result<String> {
        let run = question.session.run;
        let state =
            run_state(&*self.backend, run).await?.with_context(|| format!("there is no run {run}"))?;
        let agent = state.policy().map(|policy| &policy.agent);
        let workspace = agent.map(|agent| agent.workspace.clone()).unwrap_or_default();
        // The tools of the agents below are among these.
        let of_run = agent.map(|agent| agent.tools.as_slice()).unwrap_or_default();
        let tools = [of_run, known_tools()].concat();
        let alone = PermissionPolicy {
            approved: vec![pattern.clone()],
            default: Permission::Ask,
            ..PermissionPolicy::default()
        };
        let hint = format!("the narrowest that covers it is `{}`", question.pattern);
        let alone = Permissions::new(&alone, &workspace, &tools)
            .map_err(|error| Refusal::new(format!("--pattern: {error}"), hint.clone()))?;
        if alone.judge(&question.tool, &question.input).permission == Permission::Allow {
            return Ok(pattern);
        }
        let call = call_in_words(&question.tool, &question.input);
        let what = format!("--pattern `{pattern}` doesn't cover the call that waits: {call}");
        Err(Refusal::new(what, hint).into())
    }

    async fn answer(
        &self,
        question: &ApprovalQuestion,
        answer: ApprovalAnswer,
        command: &str,
    ) -> anyhow::Result<Exit> {
        let words = answer_in_words(&answer);
        let by = user_name(command);
        let given = give(&*self.backend, question, (answer, by), &self.user_file).await?;
        let (name, call) = (question.short_id(), call_in_words(&question.tool, &question.input));
        match given {
            Given::Counts(kept) => {
                print(&safe(&format!("{name} {words}: {call}\n")))?;
                self.print_kept(kept)?;
                self.print_how_to_go_on(question.session.run).await?;
                Ok(Exit::Done)
            }
            Given::Late(first, at) => {
                tell_raw(&safe(&format!("{}\n", has_answer(&name, &first, at))));
                Ok(Exit::Failed)
            }
            Given::Moot => {
                tell(&format!("{name} needs no answer any more: the call has its result"));
                Ok(Exit::Failed)
            }
        }
    }

    fn print_kept(&self, kept: Option<Kept>) -> anyhow::Result<()> {
        let file = shown(&self.user_file);
        match kept {
            Some(Kept::Added) => print(&format!("added to permissions.approved in {file}\n")),
            Some(Kept::There) => print(&format!("it is in permissions.approved of {file} already\n")),
            None => Ok(()),
        }
    }

    /// The call is not made while no process holds the run. A run that waited for the answer only is taken up by the
    /// server, if one runs.
    async fn print_how_to_go_on(&self, run: RunId) -> anyhow::Result<()> {
        let status = status(&*self.backend, run).await?;
        let taken_up = if awaits_answer(&status) { takes_up(&self.place, run).await } else { None };
        let why = match (&status, taken_up) {
            (RunStatus::Running, _) => return Ok(()),
            (RunStatus::Stopped(outcome), _) if outcome.is_final() => return Ok(()),
            (_, Some(Ok(()))) => return print(&format!("the server goes on with run {run}\n")),
            (_, Some(Err(why))) => format!("the server can't go on with run {run} ({why})"),
            (_, None) => format!("no process holds run {run} now"),
        };
        let next = resuming(&*self.backend, run, &status).await?;
        print(&safe(&format!("{why}; it goes on with: {next}\n")))
    }
}

/// The only one of `found`.
fn only(found: Vec<ApprovalQuestion>, none: &str, several: &str) -> Result<ApprovalQuestion, Refusal> {
    match <[ApprovalQuestion; 1]>::try_from(found) {
        Ok([question]) => Ok(question),
        Err(found) if found.is_empty() => {
            Err(Refusal::new(none, "`provost approvals` lists what waits, `provost ps` the runs"))
        }
        Err(found) => {
            let what = format!("{} questions {several}", found.len());
            Err(Refusal::new(with_list(what, &found), "name one of them"))
        }
    }
}

fn with_list(what: String, open: &[ApprovalQuestion]) -> String {
    let line = |question: &ApprovalQuestion| {
        let call = call_in_words(&question.tool, &question.input);
        let who = asker(question).as_deref().map(|who| format!("{who}: ")).unwrap_or_default();
        format!("\n  {}  {who}{}", question.short_id(), one_line(&call, CALL_WIDTH))
    };
    let lines = open.iter().take(SHOWN_MAX).map(line).collect::<String>();
    let more = open.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let colon = if open.is_empty() { "" } else { ":" };
    format!("{what}{colon}{lines}{more}")
}

fn has_answer(name: &str, first: &ApprovalResolved, at: Timestamp) -> String {
    let (answer, by) = (answer_in_words(&first.answer), &first.by);
    format!("{name} has its answer: {answer} by {by}, {} ago", age(SystemClock.now(), at))
}
