//! What took effect in a run, for people.

mod judges;
mod mcp;

use std::collections::BTreeMap;

use provost_event::{ApprovalScope, Permission, SessionId};
use provost_view::explain::{
    AgentExplanation, ApprovalCounts, Durations, HookExplanation, ItemGroup, LimitUnit, LimitUse,
    ObserverExplanation, PatternUse, PermissionsExplanation, RunExplanation, StopHookExplanation, Tally,
};

use self::judges::judges;
use self::mcp::servers;
use super::block::{Block, name};
use super::terminal::noted_events;
use crate::commands::ps::GOAL_WIDTH;
use crate::commands::show::date_and_time;
use crate::names::Names;
use crate::render::change_lines;
use crate::render::{Cells, amount, call_in_words, duration, gateway_table, one_line, plural};

const NAME: Cells = Cells::CutAtEnd;
const NUMBER: Cells = Cells::Numbers;
/// What further lines of the head begin with.
const UNDER: &str = "        ";
/// The narrowest that the head is set.
const HEAD_MIN: usize = 20;

/// A run, and what is shown of it.
pub(super) struct RunPage<'a> {
    pub(super) explained: &'a RunExplanation,
    /// The status in words.
    pub(super) status: &'a str,
    pub(super) names: &'a Names,
}

pub(super) fn page(seen: &RunPage<'_>, width: Option<usize>) -> String {
    let explained = seen.explained;
    let mut out = head(seen, width);
    out.push_str(&limits("limits of the run", &explained.limits).text(width));
    for agent in &explained.agents {
        let whose = match (explained.agents.as_slice(), explained.agents_left_out) {
            ([_], 0) => String::new(),
            _ => format!(" of {}", seen.names.in_words(SessionId { run: explained.run, agent: agent.agent })),
        };
        for text in agent_texts(agent, &whose, width) {
            out.push_str(&text);
        }
    }
    if explained.agents_left_out > 0 {
        let (run, count) = (explained.run, explained.agents_left_out);
        let them = plural(count as u64, "more agent");
        out.push_str(&format!("\n{them} not told of here: provost explain {run}.NUMBER tells of one\n"));
    }
    if !explained.mcp.is_empty() {
        out.push_str(&servers(&explained.mcp, seen.names, explained.run));
    }
    if !explained.observers.is_empty() {
        out.push_str(&observers(&explained.observers).text(width));
    }
    out.push('\n');
    out.push_str(&summary(explained));
    out
}

/// The lines above the groups, each continued under its value.
fn head(seen: &RunPage<'_>, width: Option<usize>) -> String {
    let explained = seen.explained;
    let agents = explained.agents.iter();
    let entries = agents.map(|agent| format!(", {} of agent {}", amount(agent.entry.0), agent.agent));
    let as_of = format!(
        "entry {} of the run{} · {}",
        amount(explained.entry.0),
        entries.collect::<String>(),
        date_and_time(explained.at_ms)
    );
    let rows = [
        ("run", explained.run.to_string()),
        ("status", seen.status.to_owned()),
        ("goal", one_line(&explained.goal, GOAL_WIDTH)),
        ("as of", as_of),
    ];
    let changes = explained.changes.iter().flat_map(change_lines).enumerate();
    let changes = changes.map(|(place, line)| (if place == 0 { "changed" } else { "" }, line));
    let options = textwrap::Options::new(width.unwrap_or(usize::MAX).max(HEAD_MIN)).subsequent_indent(UNDER);
    let line = |(name, value)| textwrap::fill(&format!("{name:<7} {value}"), &options) + "\n";
    rows.into_iter().chain(changes).map(line).collect()
}

fn agent_texts(agent: &AgentExplanation, whose: &str, width: Option<usize>) -> Vec<String> {
    let of_agent = if whose.is_empty() { " of the agent" } else { whose };
    let mut texts = vec![limits(&format!("limits{of_agent}"), &agent.limits).text(width)];
    texts.extend(agent.goal.iter().map(|goal| judges(&format!("judges of the goal{whose}"), goal, width)));
    let (mut lists, mut absent) = (Vec::new(), Vec::new());
    match agent.stop_hooks.as_slice() {
        [] => absent.push("stop hooks"),
        hooks => lists.push(stop_hooks(&format!("stop hooks{whose}"), hooks)),
    }
    match agent.hooks.as_slice() {
        [] => absent.push("hooks"),
        all => lists.push(hooks(&format!("hooks{whose}"), all)),
    }
    texts.extend(lists.iter().map(|list| list.text(width)));
    if agent.unknown_hooks_answers > 0 {
        let answers = agent.unknown_hooks_answers;
        let are = if answers == 1 { "is" } else { "are" };
        let answers = amount(answers);
        texts.push(format!("   hooks couldn't be asked: {answers} of their answers {are} Provost's\n"));
    }
    texts.push(permissions(&agent.permissions, whose, width));
    texts.push(approvals(&agent.approvals, whose));
    let title = format!("noted at the terminal{whose}");
    texts.extend(agent.terminal.iter().map(|terminal| noted_events(terminal, &title, width)));
    let title = format!("passed the model gateway{whose}");
    texts.extend(agent.gateway.iter().map(|used| gateway_table(used, &title, width)));
    if !absent.is_empty() {
        texts.push(format!("\nnot configured{whose}: {}\n", absent.join(", ")));
    }
    texts
}

fn limits(title: &str, limits: &[LimitUse]) -> Block {
    let mut block = Block::new(
        title,
        &[
            ("LIMIT", NAME),
            ("SET TO", Cells::LeftOutLast),
            ("REACHED", Cells::LeftOut),
            ("CONSULTED", NUMBER),
            ("DECIDED", Cells::LeftOutLast),
        ],
    );
    for limit in limits {
        let show = |value: u64| in_unit(value, limit.unit);
        let is_set = limit.set_to.is_some();
        let count = |count: u64| if is_set { amount(count) } else { String::new() };
        let cells = vec![
            limit.name.replace('_', " "),
            limit.set_to.map_or_else(|| "not set".to_owned(), show),
            show(limit.most),
            count(limit.consulted),
            count(limit.decided),
        ];
        let at_first = limit.set_to_at_first.map(|first| format!("{} at first", show(first)));
        let reserved = limit.reserved.filter(|_| limit.consulted > 0).map(|reserved| {
            let most = format!("at most {} set aside", show(reserved.reserved_most));
            let counts = [("lowered", reserved.lowered), ("refused", reserved.refused)];
            [most].into_iter().chain(in_words(&counts)).collect::<Vec<_>>().join(", ")
        });
        let notes = [at_first, reserved].into_iter().flatten().collect();
        block.row(&limit.standing, cells, notes);
    }
    block
}

fn stop_hooks(title: &str, hooks: &[StopHookExplanation]) -> Block {
    let mut block = Block::new(
        title,
        &[("STOP HOOK", NAME), ("CONSULTED", NUMBER), ("TIME", Cells::LeftOut), ("LONGEST", Cells::LeftOut)],
    );
    for hook in hooks {
        let verdicts = hook.verdicts;
        let said = in_words(&[
            ("allowed", verdicts.allowed),
            ("blocked", verdicts.blocked),
            ("halted", verdicts.halted),
            ("gave no answer", verdicts.errors),
            ("broken", verdicts.broken),
            ("timed out", verdicts.timed_out),
        ]);
        let mut cells = vec![name(&hook.name), amount(hook.consulted)];
        cells.extend(took(verdicts.times, hook.consulted));
        block.row(&hook.standing, cells, vec![said.join(", ")]);
    }
    block
}

fn hooks(title: &str, hooks: &[HookExplanation]) -> Block {
    let mut block = Block::new(
        title,
        &[
            ("HOOK", NAME),
            ("POINT", NAME),
            ("CONSULTED", NUMBER),
            ("SKIPPED", Cells::LeftOut),
            ("TIME", Cells::LeftOut),
            ("LONGEST", Cells::LeftOut),
        ],
    );
    for hook in hooks {
        let counts = hook.counts;
        let mut cells = vec![
            name(&hook.name),
            hook.point.name().to_owned(),
            amount(counts.consulted),
            amount(counts.skipped()),
        ];
        cells.extend(took(counts.times, counts.consulted));
        block.row(&hook.standing, cells, hook_notes(hook));
    }
    block
}

fn hook_notes(hook: &HookExplanation) -> Vec<String> {
    let counts = hook.counts;
    let said = in_words(&[
        ("continued", counts.continued),
        ("allowed", counts.allowed),
        ("asked", counts.asked),
        ("denied", counts.denied),
        ("paused", counts.paused),
        ("aborted", counts.aborted),
        ("gave no answer", counts.failed),
        ("replaced calls", counts.replaced),
        ("reminders", counts.reminders),
    ]);
    let skipped = in_words(&[
        ("not meant", counts.not_meant),
        ("a hook before it had decided", counts.decided_before),
        ("interrupted", counts.dropped),
    ]);
    // If it was never asked, the reason says all of that.
    let skipped = if counts.consulted == 0 || skipped.is_empty() {
        String::new()
    } else {
        format!("skipped: {}", skipped.join(", "))
    };
    vec![said.join(", "), skipped]
}

fn permissions(permissions: &PermissionsExplanation, whose: &str, width: Option<usize>) -> String {
    let title = format!("permissions{whose}");
    let open = "everything is allowed without asking";
    if permissions.patterns.is_empty() && permissions.open {
        return format!("\n{title}\n   {open}\n");
    }
    let mut block = Block::new(
        if permissions.open { format!("{title}: {open}") } else { title },
        &[("KIND", Cells::Text), ("PATTERN", NAME), ("CONSULTED", NUMBER), ("DECIDED", Cells::LeftOutLast)],
    );
    for rule in &permissions.patterns {
        let cells = vec![
            rule.kind.word().to_owned(),
            name(&rule.pattern),
            amount(rule.consulted),
            amount(rule.decided),
        ];
        block.row(&rule.standing, cells, vec![rulings(rule)]);
    }
    if let Some(default) = &permissions.default {
        let cells = vec![
            word(default.permission).to_owned(),
            "all other calls".to_owned(),
            amount(default.consulted),
            amount(default.decided),
        ];
        block.row(&default.standing, cells, Vec::new());
    }
    let unclear = permissions.unclear.all();
    let mut text = block.text(width);
    if unclear > 0 {
        text.push_str(&format!(
            "   asked since the call's text doesn't tell what it does: {}\n",
            amount(unclear)
        ));
    }
    for grant in &permissions.grants {
        let extent = if grant.scope == ApprovalScope::Always { "for all runs" } else { "for the run" };
        let (pattern, by, times) = (name(&grant.pattern), name(&grant.by), amount(grant.decided));
        text.push_str(&format!("   agreed to {extent} by {by}: {pattern}; decided since: {times}\n"));
    }
    text
}

/// What a pattern decided, where its kind doesn't say so.
fn rulings(rule: &PatternUse) -> String {
    let rulings = rule.rulings;
    let kinds = [rulings.allowed, rulings.asked, rulings.denied].iter().filter(|count| **count > 0).count();
    let is_plain = match rule.kind.word() {
        "deny" => rulings.denied == rule.decided,
        "ask" => rulings.asked == rule.decided,
        _ => rulings.allowed == rule.decided,
    };
    if kinds == 0 || is_plain {
        return String::new();
    }
    let counts = [("allowed", rulings.allowed), ("asked", rulings.asked), ("denied", rulings.denied)];
    in_words(&counts).join(", ")
}

fn approvals(sums: &ApprovalCounts, whose: &str) -> String {
    if sums.asked == 0 {
        return String::new();
    }
    let lasting =
        in_words(&[("for the run", sums.allowed_for_run), ("for all runs", sums.allowed_always)]).join(", ");
    let allowed = match (sums.allowed(), lasting.as_str()) {
        (0, _) => None,
        (count, "") => Some(format!("allowed {}", amount(count))),
        (count, lasting) => Some(format!("allowed {} ({lasting})", amount(count))),
    };
    let others = in_words(&[
        ("denied", sums.denied),
        ("not answered in time", sums.timed_out),
        ("no longer needed", sums.withdrawn),
        ("still open", sums.open),
        ("suspended without an answer", sums.suspended),
    ]);
    let answers = allowed.into_iter().chain(others).collect::<Vec<_>>();
    let mut text = format!("\napprovals{whose}\n   asked {}: {}\n", amount(sums.asked), answers.join(", "));
    if !sums.by.is_empty() {
        let by = sums.by.iter().map(|(by, count)| format!("{} {}", name(by), amount(*count)));
        let (longest, by) = (span(sums.waited.longest_us), by.collect::<Vec<_>>().join(", "));
        text.push_str(&format!("   answered by {by}; after {longest} at most\n"));
    }
    for call in &sums.outside {
        let what = call_in_words(&call.tool, &call.input);
        text.push_str(&format!("   outside of the sandbox: {what} (#{})\n", call.seq));
    }
    text
}

fn observers(observers: &[ObserverExplanation]) -> Block {
    let mut block = Block::new(
        "observers",
        &[("OBSERVER", NAME), ("SEGMENTS", Cells::LeftOut), ("TOLD", Cells::LeftOutLast), ("LOST", NUMBER)],
    );
    for observer in observers {
        let cells = vec![
            name(&observer.name),
            amount(observer.segments),
            amount(observer.delivered),
            amount(observer.lost),
        ];
        let wrong = in_words(&[
            ("calls failed", observer.failed),
            ("panicked", observer.panicked),
            ("hung", observer.hung),
        ]);
        block.row(&observer.standing, cells, vec![wrong.join(", ")]);
    }
    block
}

fn summary(explained: &RunExplanation) -> String {
    let Tally { configured, never_consulted, unreachable, not_reported } = explained.tally;
    let mut tallies: BTreeMap<ItemGroup, Tally> = BTreeMap::new();
    for (group, uses) in explained.uses() {
        let tally = tallies.entry(group).or_default();
        uses.into_iter().for_each(|used| tally.add(used));
    }
    let never = |(group, tally): (&ItemGroup, &Tally)| {
        (tally.never_consulted > 0).then(|| items_in_words(*group, tally.never_consulted))
    };
    let mut parts = match never_consulted {
        0 => vec![format!("all {} that are configured were consulted", amount(configured - not_reported))],
        count => {
            let groups = tallies.iter().filter_map(never).collect::<Vec<_>>().join(", ");
            let were = if count == 1 { "was" } else { "were" };
            vec![format!("{} of {} {were} never consulted: {groups}", amount(count), amount(configured))]
        }
    };
    if unreachable > 0 {
        parts.push(format!("! {} of them can't be reached", amount(unreachable)));
    }
    if not_reported > 0 {
        parts
            .push(format!("? of {} nothing is reported", items_in_words(ItemGroup::Observers, not_reported)));
    }
    if never_consulted > 0
        && let Some(first) = parts.first_mut()
    {
        first.insert_str(0, "- ");
    }
    parts.join("\n") + "\n"
}

/// Each count that isn't 0, behind what it counts.
fn in_words(counts: &[(&str, u64)]) -> Vec<String> {
    let told = counts.iter().filter(|(_, count)| *count > 0);
    told.map(|(what, count)| format!("{what} {}", amount(*count))).collect()
}

fn in_unit(value: u64, unit: LimitUnit) -> String {
    match unit {
        LimitUnit::Tokens | LimitUnit::Times => amount(value),
        LimitUnit::MicroUsd => provost_event::MicroDollars(value).to_string(),
        LimitUnit::Ms => duration(value),
    }
}

/// The cells of times; empty for what wasn't asked.
fn took(times: Durations, consulted: u64) -> [String; 2] {
    let shown = |us: u64| if consulted == 0 { String::new() } else { span(us) };
    [shown(times.total_us), shown(times.longest_us)]
}

fn span(us: u64) -> String {
    if us > 0 && us < 1_000 { "<1ms".to_owned() } else { duration(us / 1_000) }
}

/// A count of the items of a group.
fn items_in_words(group: ItemGroup, count: u64) -> String {
    let what = match group {
        ItemGroup::Limits => "limit",
        ItemGroup::Judges => "judge",
        ItemGroup::StopHooks => "stop hook",
        ItemGroup::Hooks => "hook",
        ItemGroup::Permissions => "permission",
        ItemGroup::Observers => "observer",
    };
    plural(count, what)
}

/// A permission in a word.
const fn word(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    }
}
