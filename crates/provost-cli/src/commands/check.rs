//! `provost check`: the resulting settings, and what is wrong with them.

mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use provost_config::{
    Agent, Folders, Given, Loading, Placed, Problem, Problems, Project, Request, Scope, Settled, Source,
    keys, load, named_keys, runs, schema,
};
use provost_config::{TrustState, trust_in};
use provost_event::{Budget, HookPolicy, Isolation, counted};
use provost_harness::ProjectRules;

use super::{current_dir, print, shown};
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::render::{duration, one_line, plural, safe};
use crate::wiring::{state_dir, variables};
use provost_runtime::observers;
use provost_runtime::{
    Choosing, Places, UNPRICED_REMEDY, Variables, available_tools, doubts, misplaced, note_once,
    programs_problems, rules_of, unaffordable, unpriced_beside_priced, unpriced_in_words, wanted,
};

const VALUE_WIDTH: usize = 60;
const MODEL: &str = "agent.model";

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.schema {
        print(&format!("{:#}\n", schema()))?;
        return Ok(Exit::Done);
    }
    let (folder, variables) = (current_dir()?, variables());
    let file = args.config.as_deref();
    let request = Request { file, ..Request::new(Scope::Project, &folder, &variables, available_tools()) };
    let (loading, folders) = load(&request)?;
    let mut found = Found::of(loading);
    found.check_models(&folder, &variables);
    found.check_trust(&folders)?;
    found.check_trace(&folder, &variables);
    found.check_rules(Places { workspace: &folder, folders: &folders });
    print(&if args.json {
        format!("{}\n", serde_json::to_string(&found.view())?)
    } else {
        safe(&found.page(args.all))
    })?;
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Usage })
}

fn shown_value(given: &Given) -> String {
    let value = one_line(&given.shown, VALUE_WIDTH);
    format!("{}  ({})", if value.is_empty() { "\"\"" } else { &value }, given.source)
}

fn hook_in_words(hook: &Placed) -> String {
    let HookPolicy { name, point, matcher, condition, program, .. } = &hook.policy;
    let matcher = matcher.as_ref().map(|matcher| format!(" {matcher}")).unwrap_or_default();
    let condition = condition.as_ref().map(|text| format!(" if {text}")).unwrap_or_default();
    let runs = program.as_ref().map(runs).unwrap_or_default();
    let runs = one_line(&runs, VALUE_WIDTH);
    format!("hook {name}  {}{matcher}{condition}  {runs}  ({})", point.name(), hook.place)
}

/// Its own settings; the others are those of the run's agent.
fn agent_in_words(agent: &Agent, is_offered: bool) -> String {
    let mut parts = vec![agent.priority.to_string()];
    if let Some(external) = agent.external() {
        parts.push(one_line(&format!("runs {}", external.command().join(" ")), VALUE_WIDTH));
        parts.extend(external.profile.as_ref().map(|profile| format!("profile {profile}")));
        if !external.passes.is_empty() {
            parts.push(format!("gets {}", external.passes.join(", ")));
        }
    }
    parts.extend(agent.model.clone());
    parts.extend(agent.tools.as_ref().map(|tools| match tools.as_slice() {
        [] => "no tools".to_owned(),
        tools => tools.join(", "),
    }));
    if agent.isolation == Isolation::Worktree {
        parts.push("in a worktree".to_owned());
    }
    parts.extend(agent.max_turns.map(|turns| plural(turns.into(), "turn")));
    let Budget { tokens, money, wall_time_ms, turns: _ } = agent.budget;
    parts.extend(tokens.map(|tokens| plural(tokens, "token")));
    parts.extend(money.map(|money| money.to_string()));
    parts.extend(wall_time_ms.map(duration));
    let condition = agent.condition.as_ref();
    parts.extend(condition.map(|condition| format!("done when {}", one_line(condition, VALUE_WIDTH))));
    parts.extend(agent.judge.as_ref().map(|judge| format!("judged by {judge}")));
    let waited = agent.ask_timeout_ms.map(duration);
    parts.extend(waited.map(|time| format!("waited for {time}")));
    if !is_offered {
        parts.push("not offered: [spawn] allows no sub-agents".to_owned());
    }
    let description = one_line(&agent.description, VALUE_WIDTH);
    format!("agent {}  {}  {description}  ({})", agent.name, parts.join(" · "), agent.source)
}

struct Found {
    files: Vec<String>,
    given: BTreeMap<String, Given>,
    items: Vec<(String, Given)>,
    stop_hooks: Vec<(String, String, String)>,
    hooks: Vec<Placed>,
    agents: Vec<Agent>,
    /// Whether they are offered.
    delegates: bool,
    skipped: Vec<String>,
    project: Project,
    trust: Option<TrustState>,
    /// What agents are told of files written for them.
    rules: ProjectRules,
    problems: Vec<Problem>,
    warnings: Vec<String>,
    /// What is valid elsewhere and unavailable here.
    notes: Vec<String>,
    /// Only settings without a problem are checked further.
    settled: Option<Settled>,
}

impl Found {
    fn of(loading: Loading) -> Self {
        let stop_hooks = loading.settings.stop_hooks.iter();
        let stop_hooks =
            stop_hooks.map(|hook| (hook.name.clone(), hook.command.clone(), hook.source.to_string()));
        Self {
            files: loading.files.iter().map(|file| shown(file)).collect(),
            given: loading.given.clone(),
            items: loading.items.clone(),
            stop_hooks: stop_hooks.collect(),
            hooks: loading.settings.all_hooks(),
            agents: loading.settings.agents.clone(),
            delegates: loading.settings.delegates(),
            skipped: loading.skipped.clone(),
            project: loading.project.clone(),
            trust: None,
            rules: ProjectRules::default(),
            problems: loading.problems.clone(),
            warnings: Vec::new(),
            notes: loading.notices.clone(),
            settled: loading.settled().ok(),
        }
    }

    /// A missing key is reported once, however many agents need it.
    fn check_models(&mut self, folder: &Path, variables: &Variables) {
        let Some(settled) = &self.settled else { return };
        let agents = settled.settings.offered_agents();
        let (elsewhere, here): (Vec<_>, Vec<_>) = misplaced(agents, folder)
            .into_iter()
            .partition(|problem| settled.counts_everywhere(&problem.source));
        let note = |Problem { source, key, what, .. }: Problem| {
            format!("{source}: {key}: {what}; it fails here if it is asked for")
        };
        self.notes.extend(elsewhere.into_iter().map(note));
        self.problems.extend(here);
        if let Err(Problems(problems)) = programs_problems(settled, agents) {
            self.problems.extend(problems);
        }
        let mut choosing = Choosing::new(settled, variables);
        let mut missing_keys = BTreeSet::new();
        let mut models = Vec::new();
        for wanted in wanted(settled, agents, folder) {
            let short = choosing.short_key(&wanted).filter(|warning| !self.warnings.contains(warning));
            self.warnings.extend(short);
            let retired = choosing.retirement(&wanted).filter(|warning| !self.warnings.contains(warning));
            self.warnings.extend(retired);
            let missing = choosing.missing_keys(&wanted);
            if !missing.is_empty() {
                self.problems.extend(missing.into_iter().filter(|one| missing_keys.insert(one.what.clone())));
                continue;
            }
            match choosing.choose(&wanted) {
                Ok(chosen) => models.push(chosen.policy),
                Err(Problems(wrong)) => {
                    wrong.into_iter().for_each(|problem| note_once(&mut self.problems, problem))
                }
            }
        }
        let models = models.iter().flat_map(|model| std::iter::once(model).chain(&model.fallbacks));
        let is_limited = !settled.settings.budget.is_unlimited() || settled.settings.allow_unpriced;
        if let Some(model) = unpriced_beside_priced(models).filter(|_| !is_limited) {
            self.problems.push(Problem {
                source: settled.source("budget.usd"),
                key: "budget.usd".to_owned(),
                what: unpriced_in_words(&model.name),
                remedy: UNPRICED_REMEDY.to_owned(),
            });
        }
        self.problems.extend(unaffordable(&mut choosing, settled, agents, folder));
        self.notes.extend(doubts(settled, agents, folder));
        self.notes.extend(settled.settings.not_known_yet());
    }

    /// Missing trust is no fault of the settings either.
    fn check_trust(&mut self, folders: &Folders) -> anyhow::Result<()> {
        let Some(settled) = &self.settled else { return Ok(()) };
        self.trust = Some(trust_in(&state_dir(&settled.settings, folders).trust(), &self.project)?);
        Ok(())
    }

    fn check_rules(&mut self, places: Places<'_>) {
        let Some(settled) = &self.settled else { return };
        self.rules = rules_of(places, &settled.settings);
        self.warnings.append(&mut self.rules.notices);
    }

    /// A variable that isn't set here may be set where it counts.
    fn check_trace(&mut self, folder: &Path, variables: &Variables) {
        let Some(settled) = &self.settled else { return };
        let Err(Problems(problems)) = observers(settled, folder, variables) else { return };
        for problem in problems {
            if problem.key == "trace.otlp_headers_env" {
                self.warnings.push(problem.to_string());
            } else {
                self.problems.push(problem);
            }
        }
    }

    /// Everything that is set, and with `all` also what isn't.
    fn page(&self, all: bool) -> String {
        let mut out = String::new();
        // Writing to a String can't fail, here and below.
        for file in &self.files {
            let _ = writeln!(out, "read {file}");
        }
        if self.files.is_empty() {
            out.push_str("no settings file; `provost init` writes one\n");
        }
        out.push('\n');
        let rows = self.rows(all);
        let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
        for (key, value) in &rows {
            let _ = writeln!(out, "{key:<width$}  {value}");
        }
        for (name, command, source) in &self.stop_hooks {
            let _ = writeln!(out, "stop hook {name}  {}  ({source})", one_line(command, VALUE_WIDTH));
        }
        for hook in &self.hooks {
            let _ = writeln!(out, "{}", hook_in_words(hook));
        }
        for agent in &self.agents {
            let _ = writeln!(out, "{}", agent_in_words(agent, self.delegates));
        }
        for file in &self.rules.files {
            let _ = writeln!(out, "project rules  {}  ({})", shown(&file.path), counted(file.bytes, "byte"));
        }
        out.push_str(&self.trust_in_words());
        if !all {
            out.push_str("`provost check --all` also shows what isn't set, with the defaults.\n");
        }
        out.push('\n');
        for problem in &self.problems {
            let _ = writeln!(out, "error: {problem}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        for skipped in &self.skipped {
            let _ = writeln!(out, "skipped: {skipped}");
        }
        if self.problems.is_empty() && self.warnings.is_empty() && !self.lacks_trust() {
            out.push_str("all right\n");
        }
        out
    }

    /// Keys with their values. The model is one also where it isn't set: without it nothing runs.
    fn rows(&self, all: bool) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for (key, unset) in keys() {
            let items = self.items.iter().filter(|(of, _)| *of == key).map(|(_, given)| given);
            let values = self.given.get(&key).into_iter().chain(items);
            let is_shown = |given: &&Given| all || given.source != Source::Default || key == MODEL;
            let before = rows.len();
            rows.extend(values.filter(is_shown).map(|given| (key.clone(), shown_value(given))));
            if all && rows.len() == before {
                rows.push((key, format!("not set: {unset}")));
            }
        }
        rows.extend(named_keys(&self.given).map(|(key, given)| (key.clone(), shown_value(given))));
        rows
    }

    fn lacks_trust(&self) -> bool {
        matches!(self.trust, Some(TrustState::Needed(_)))
    }

    fn trust_in_words(&self) -> String {
        let folder = shown(&self.project.folder);
        match &self.trust {
            None => String::new(),
            Some(TrustState::NotNeeded) => "trust: not needed\n".to_owned(),
            Some(TrustState::Trusted { .. }) => format!("trust: you trust what stands in {folder}\n"),
            Some(TrustState::Needed(needed)) => format!(
                "trust: you haven't agreed to this yet; `provost trust` asks you, `provost run` refuses until then\n{}",
                needed.listed()
            ),
        }
    }
}
