//! `provost policy test`: what other settings would have decided for the tool calls of past runs. Nothing is run.

mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_config::{Request, Scope, Settings, home_folder, load};
use provost_engine::{Permissions, own_call};
use provost_event::{
    ActorKey, AgentPolicy, Block, ConversationEntry, Entry, LifecycleEntry, Permission, PermissionPolicy,
    RunId, SessionId, ToolCall, ToolSpec, ToolSubject,
};
use provost_harness::{Backend, RunPosition, RunQuery, read_run};
use provost_runtime::available_tools;
use provost_sandbox::{FileRules, Places};
use reach::{HookReach, RuleReach, UnusedRule};
use serde::Serialize;

use super::{current_dir, find, place, print};
use crate::cli::{PolicyCommand, PolicyTestArgs};
use crate::exit::{Exit, Refusal};
use crate::render::{one_line, plural, safe};
use crate::wiring::variables;

/// Entries of a run that are read at once.
const PAGE: usize = 1_000;
/// Calls that are listed of each kind.
const LISTED_MAX: usize = 20;
const CALL_WIDTH: usize = 100;

pub(super) async fn policy(command: PolicyCommand) -> anyhow::Result<Exit> {
    let PolicyCommand::Test(args) = command;
    let (folder, variables) = (current_dir()?, variables());
    let file = Some(args.file.as_path());
    let request = Request { file, ..Request::new(Scope::Project, &folder, &variables, available_tools()) };
    let settled = load(&request)?.0.settled()?;
    let places = place()?;
    let backend = places.open_to_read().await?;
    let runs = wanted(&*backend, &args).await?;
    let mut test = Backtest::new(&settled.settings, places.places(variables));
    for run in runs {
        test.run(&*backend, run).await.with_context(|| format!("can't read run {run}"))?;
    }
    let report = test.report();
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print(&safe(&in_words(&report)))?;
    }
    Ok(if report.is_stricter() { Exit::Failed } else { Exit::Done })
}

/// The runs that are named, or the newest ones.
async fn wanted(backend: &dyn Backend, args: &PolicyTestArgs) -> anyhow::Result<Vec<RunId>> {
    let mut all = Vec::new();
    for word in &args.runs {
        match word.strip_prefix("last:") {
            Some(count) => {
                let count = count.parse::<usize>().ok().filter(|count| *count > 0);
                let count =
                    count.ok_or_else(|| Refusal::new(format!("`{word}` names no runs"), "e.g. last:200"))?;
                for run in backend.list(RunQuery::newest(count)).await? {
                    all.push(run.run);
                }
            }
            None => all.push(find(backend, word).await?),
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|run| seen.insert(*run));
    Ok(all)
}

/// What an agent was bound by when it made a call.
struct Bound {
    policy: AgentPolicy,
    before: Permissions,
    after: Permissions,
    rules: Option<FileRules>,
}

struct Backtest<'a> {
    settings: &'a Settings,
    permissions: PermissionPolicy,
    places: Places,
    report: Report,
    rules: RuleReach,
    hooks: HookReach,
    /// The tools of all agents.
    tools: Vec<ToolSpec>,
}

/// What came of a test.
#[derive(Debug, Default, Serialize)]
struct Report {
    runs: u64,
    calls: u64,
    /// Calls that were allowed or asked about, and would be denied.
    denied: Vec<Changed>,
    /// Calls that were allowed, and would be asked about.
    asked: Vec<Changed>,
    /// Calls that were denied or asked about, and would be allowed.
    allowed: Vec<Changed>,
    /// Calls about which a hook would be asked that wasn't. What it would answer isn't known.
    hooked: Vec<Changed>,
    /// Calls about which a hook was asked that wouldn't be.
    unhooked: Vec<Changed>,
    /// Patterns that decided no call.
    unused: Vec<UnusedRule>,
    /// Hooks about calls that met none.
    unmet_hooks: Vec<String>,
}

/// A call that would be decided otherwise.
#[derive(Debug, Serialize)]
struct Changed {
    run: RunId,
    agent: u32,
    call: String,
    why: String,
}

impl Changed {
    fn of(actor: ActorKey, call: &ToolCall, why: String) -> Self {
        let SessionId { run, agent } = session_of(actor);
        let text = serde_json::to_string(&call.input).unwrap_or_default();
        Self { run, agent, call: one_line(&format!("{} {text}", call.name), CALL_WIDTH), why }
    }
}

const fn session_of(actor: ActorKey) -> SessionId {
    match actor {
        ActorKey::Session(session) => session,
        ActorKey::Run(run) => SessionId::root(run),
    }
}

impl Report {
    const fn is_stricter(&self) -> bool {
        !self.denied.is_empty() || !self.asked.is_empty()
    }
}

impl<'a> Backtest<'a> {
    fn new(settings: &'a Settings, places: Places) -> Self {
        let permissions = settings.permissions.policy();
        Self {
            settings,
            places,
            report: Report::default(),
            rules: RuleReach::new(permissions.clone()),
            permissions,
            hooks: HookReach::new(settings.all_hooks().into_iter().map(|placed| placed.policy)),
            tools: Vec::new(),
        }
    }

    async fn run(&mut self, backend: &dyn Backend, run: RunId) -> anyhow::Result<()> {
        self.report.runs = self.report.runs.saturating_add(1);
        let mut agents: BTreeMap<ActorKey, Bound> = BTreeMap::new();
        let mut after = RunPosition::START;
        loop {
            let page = read_run(backend, run, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.position;
            for placed in &page {
                let actor = placed.record.actor;
                match &placed.record.entry {
                    Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                        agents.insert(actor, self.bound(started.policy.clone()));
                    }
                    Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                        agents.insert(actor, self.bound(changed.policy.clone()));
                    }
                    Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                        let Some(bound) = agents.get(&actor) else { continue };
                        let calls = message.content.iter().filter_map(|block| match block {
                            Block::ToolCall(call) => Some(as_judged(&bound.policy, call)),
                            _ => None,
                        });
                        calls.for_each(|call| self.call(actor, bound, &call));
                    }
                    _ => {}
                }
            }
        }
    }

    fn bound(&mut self, policy: AgentPolicy) -> Bound {
        for tool in &policy.tools {
            if self.tools.iter().all(|known| known.name != tool.name) {
                self.tools.push(tool.clone());
            }
        }
        let sandbox = self.settings.sandbox_policy(&policy.workspace, home_folder().as_deref());
        let is_confined = !sandbox.is_off() && policy.workspace.is_dir();
        Bound {
            before: Permissions::of_agent(&policy, &policy.workspace),
            after: Permissions::of_policy(&self.permissions, &policy.workspace, &policy.tools),
            rules: is_confined.then(|| FileRules::new(&sandbox, &policy.workspace, &self.places)),
            policy,
        }
    }

    fn call(&mut self, actor: ActorKey, bound: &Bound, call: &ToolCall) {
        self.report.calls = self.report.calls.saturating_add(1);
        let before = bound.before.judge(&call.name, &call.input).permission;
        let ruling = bound.after.judge(&call.name, &call.input);
        self.rules.count(call, &bound.policy, ruling.rule.as_deref());
        self.hooks_of(actor, bound, call);
        let refused = bound.rules.as_ref().and_then(|rules| refused_path(&bound.policy, rules, call));
        let (after, why) = match refused {
            Some(why) => (Permission::Deny, format!("sandbox: {why}")),
            None => (ruling.permission, ruling.rule.unwrap_or(ruling.why)),
        };
        let list = match after {
            _ if after == before => return,
            Permission::Deny => &mut self.report.denied,
            Permission::Ask if before == Permission::Allow => &mut self.report.asked,
            Permission::Ask | Permission::Allow => &mut self.report.allowed,
        };
        list.push(Changed::of(actor, call, why));
    }

    fn hooks_of(&mut self, actor: ActorKey, bound: &Bound, call: &ToolCall) {
        let changed = self.hooks.changed((session_of(actor), &bound.policy), call);
        let lists = [(&mut self.report.hooked, changed.asked), (&mut self.report.unhooked, changed.left_out)];
        for (list, hooks) in lists {
            if !hooks.is_empty() {
                list.push(Changed::of(actor, call, format!("hook {}", hooks.join(", "))));
            }
        }
    }

    fn report(mut self) -> Report {
        let workspace = current_dir().unwrap_or_default();
        self.report.unused = self.rules.unused(&self.tools, &workspace);
        self.report.unmet_hooks = self.hooks.unmet();
        self.report
    }
}

/// The call as permissions see it: as one of the agent's own tools, whatever form the model gave it in. What an external
/// program asks for stays as it is.
fn as_judged(policy: &AgentPolicy, call: &ToolCall) -> ToolCall {
    if policy.external.is_some() {
        return call.clone();
    }
    let own = own_call(call, &policy.tools);
    ToolCall { name: own.tool, input: own.input, ..call.clone() }
}

/// Why the sandbox's rules refuse the path of a call; `None` if they don't, or it has none.
fn refused_path(policy: &AgentPolicy, rules: &FileRules, call: &ToolCall) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Paths(BTreeMap<String, serde_json::Value>);
    let spec = policy.tools.iter().find(|tool| tool.name == call.name)?;
    let ToolSubject::Path { field, writes, .. } = &spec.subject else { return None };
    let Paths(fields) = call.input.read().ok()?;
    let path = real(&policy.workspace.join(fields.get(field)?.as_str()?));
    let unwritable = || writes.then(|| rules.write_denied(&path)).flatten();
    rules.read_denied(&path).or_else(unwritable)
}

/// The path without symlinks, as far as it is there.
fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

fn in_words(report: &Report) -> String {
    let mut text = format!("{} of {}\n", plural(report.calls, "call"), plural(report.runs, "run"));
    let lists = [
        ("newly denied", &report.denied),
        ("newly asked", &report.asked),
        ("newly allowed", &report.allowed),
        ("newly checked by a hook", &report.hooked),
        ("no longer checked by a hook", &report.unhooked),
    ];
    for (label, all) in lists {
        text.push_str(&format!("{label}: {}\n", all.len()));
        for one in all.iter().take(LISTED_MAX) {
            text.push_str(&format!("  {}.{}  {}\n      {}\n", one.run, one.agent, one.call, one.why));
        }
        if all.len() > LISTED_MAX {
            text.push_str(&format!("  … {} more, with --json\n", all.len() - LISTED_MAX));
        }
    }
    for rule in &report.unused {
        text.push_str(&format!("{}\n", rule.in_words()));
    }
    for hook in &report.unmet_hooks {
        text.push_str(&format!("is asked about none of them: hook {hook}\n"));
    }
    text
}
