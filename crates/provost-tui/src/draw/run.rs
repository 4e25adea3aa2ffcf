//! One run: what it may use, its agents, goal and stop hooks, and what an agent does.

use provost_event::{GoalFinding, HookDecision, MicroDollars, RunId};
use provost_view::{AgentGoal, ChangedFile, GroupedRun, RunAgent, StateMark};
use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::live::{Live, Making, Outputs};
use super::numbers::{money, money_if_known, span, tokens, took};
use super::parts::{asker, bar, call, folder, head, mark_span, state_words};
use super::text::{Breaks, cut, lines_of, one_line, padded, spelled_out, to_right, width, wrapped};
use super::{Place, Tone, put_last, write};
use crate::app::{App, Tab};
use crate::reading::RunPicture;

pub(super) const KEYS: &[(&str, &str)] = &[
    ("a", "approve"),
    ("s", "say"),
    ("p", "pause"),
    ("x", "cancel"),
    ("f", "fork"),
    ("h l", "agent"),
    ("j k", "scroll"),
    ("o", "unfold"),
    ("t", "terminal"),
    ("Esc", "back"),
    ("i", "inbox"),
];

/// Columns of the tree beside the live log.
const SIDE: usize = 62;
/// Agents of the tree beside the list.
const AGENTS_BESIDE: usize = 14;

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, run: RunId) {
    head(frame, app);
    let middle = Place::middle(app);
    let Some(found) = app.found(run).cloned() else {
        write(frame, middle, &[Line::from(app.look.span("this run is gone", Tone::Dim))], 0);
        return;
    };
    let mut top = title(app, &found, middle.columns);
    let picture = app.picture().is_some();
    if let Some(picture) = app.picture() {
        top.extend(facts(app, picture, middle.columns));
    }
    if let Some(question) = found.asks.first() {
        let text = format!("{}{}", asker(question), call(question));
        let text = cut(&text, middle.columns.saturating_sub(14));
        top.push(Line::from(vec![
            mark_span(app.look, StateMark::NeedsYou),
            Span::raw(" "),
            app.look.span(text, Tone::NeedsYou),
            app.look.span("  a answers", Tone::Dim),
        ]));
    }
    top.push(tabs(app));
    write(frame, middle, &top, 0);
    if !picture {
        return;
    }
    let mut part = middle.below(top.len());
    if app.is_wide() && app.tab == Tab::Live {
        let side = Place { columns: SIDE, ..part };
        let lines = app.picture().map(|picture| aside(app, picture, SIDE, usize::MAX)).unwrap_or_default();
        write(frame, side, &lines, 0);
        part = part.right_of(u16::try_from(SIDE + 2).unwrap_or_default());
    }
    draw_part(frame, app, part);
}

fn draw_part(frame: &mut Frame<'_>, app: &mut App, place: Place) {
    let Some(picture) = app.picture() else { return };
    let Live { lines, entries } = match app.tab {
        Tab::Live => {
            let outputs = if app.unfolded { Outputs::Unfolded } else { Outputs::Folded };
            Making { look: app.look, columns: place.columns, outputs }.live(&picture.timeline)
        }
        Tab::Agents => plain(agents(app, picture, place.columns)),
        Tab::Goal => plain(goal_part(app, picture, place.columns)),
        Tab::Cost => plain(cost(app, picture, place.columns)),
        Tab::Changes => plain(changes(app, picture, place.columns)),
    };
    let most = lines.len().saturating_sub(place.rows);
    let first = app.scroll.map_or(most, |first| first.min(most));
    write(frame, place, &lines, first);
    if app.tab == Tab::Live && first < most {
        let below = most - first;
        let text = format!(" {below} more lines below; End follows ");
        put_last(frame, place, &Line::from(app.look.span(padded(&text, place.columns), Tone::Warning)));
    }
    (app.part_lines, app.part_rows) = (lines.len(), place.rows);
    app.entries = entries;
}

fn plain(lines: Vec<Line<'static>>) -> Live {
    Live { lines, entries: Vec::new() }
}

/// A run beside the list.
pub(super) fn beside(frame: &mut Frame<'_>, app: &App, place: Place) {
    let (Some(found), Some(picture)) = (app.selected.and_then(|run| app.found(run)), app.picture()) else {
        return;
    };
    let mut lines = title(app, found, place.columns);
    lines.push(Line::default());
    lines.extend(facts(app, picture, place.columns));
    lines.push(Line::default());
    lines.extend(aside(app, picture, place.columns, AGENTS_BESIDE));
    let outputs = Outputs::Folded;
    let live = Making { look: app.look, columns: place.columns, outputs }.live(&picture.timeline).lines;
    lines.push(Line::default());
    lines.push(Line::from(app.look.span("LIVE", Tone::Dim)));
    let room = place.rows.saturating_sub(lines.len());
    lines.extend(live.iter().skip(live.len().saturating_sub(room)).cloned());
    write(frame, place, &lines, 0);
}

fn title(app: &App, run: &GroupedRun, columns: usize) -> Vec<Line<'static>> {
    let item = &run.item;
    let (words, ms) = state_words(app, run);
    let state = format!("{words} {} · ", span(ms));
    let goal = cut(&one_line(&item.goal), columns.saturating_sub(2 + width(&state)));
    let (_, tone) = super::look::mark(StateMark::of_run(run));
    let mut lines = vec![Line::from(vec![
        mark_span(app.look, StateMark::of_run(run)),
        Span::raw(" "),
        app.look.span(state, tone),
        app.look.span(goal, Tone::Strong),
    ])];
    let folder = folder(app, &item.workspace, columns / 2);
    let about = format!("{} · {folder} · {}", item.run, one_line(&item.model));
    lines.push(Line::from(app.look.span(cut(&about, columns), Tone::Dim)));
    if let Some(outcome) = &run.outcome_text {
        let text = lines_of(outcome).join(" ");
        lines.extend(wrapped(&text, columns, Breaks::AtBlanks).into_iter().take(2).map(Line::from));
    }
    lines
}

fn facts(app: &App, picture: &RunPicture, columns: usize) -> Vec<Line<'static>> {
    let details = &picture.details;
    let (item, budget) = (&details.item, &details.budget);
    let is_wide = columns >= 70;
    let fact = |name: &str, used: String, of: Option<String>, share: Option<(u64, u64)>| {
        let of = of.map_or_else(|| "no limit".to_owned(), |of| format!("of {of}"));
        let mut spans = vec![app.look.span(format!("{name:<7}"), Tone::Dim), Span::raw(used)];
        spans.push(app.look.span(format!(" {of} "), Tone::Dim));
        if let Some((used, max)) = share.filter(|(_, max)| is_wide && *max > 0) {
            spans.extend(bar(app.look, used, max, 10));
        }
        spans
    };
    let slots = u64::from(details.slots.budget.max_agents);
    let facts = [
        fact(
            "money",
            money(item.cost_micro_usd),
            budget.money.map(money),
            budget.money.map(|MicroDollars(max)| (item.cost_micro_usd.0, max)),
        ),
        fact(
            "tokens",
            tokens(item.tokens),
            budget.tokens.map(tokens),
            budget.tokens.map(|max| (item.tokens, max)),
        ),
        fact(
            "time",
            span(details.active_ms),
            budget.wall_time_ms.map(span),
            budget.wall_time_ms.map(|max| (details.active_ms, max)),
        ),
        fact("agents", details.slots.held.to_string(), Some(format!("{slots} slots")), None),
    ];
    let mut lines = Vec::new();
    let half = columns / 2;
    let mut facts = facts.into_iter();
    while let (Some(mut left), Some(right)) = (facts.next(), facts.next()) {
        let used = left.iter().map(|span| width(&span.content)).sum::<usize>();
        left.push(Span::raw(" ".repeat(half.saturating_sub(used))));
        left.extend(right);
        lines.push(Line::from(left));
    }
    lines
}

fn tabs(app: &App) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, tab) in Tab::ALL.into_iter().enumerate() {
        let tone = if tab == app.tab { Tone::Strong } else { Tone::Dim };
        let text = format!("{} {}", number + 1, tab.title());
        let text = if tab == app.tab { format!("[{text}] ") } else { format!(" {text}  ") };
        spans.push(app.look.span(text, tone));
    }
    spans.push(app.look.span(format!(" agent {}", app.agent), Tone::Dim));
    Line::from(spans)
}

/// Tree, goal and stop hooks.
fn aside(app: &App, picture: &RunPicture, columns: usize, agents_max: usize) -> Vec<Line<'static>> {
    let mut lines = agents(app, picture, columns);
    let left_out = lines.len().saturating_sub(agents_max.saturating_add(1));
    if left_out > 0 {
        lines.truncate(agents_max.saturating_add(1));
        lines.push(Line::from(app.look.span(format!("and {left_out} more"), Tone::Dim)));
    }
    let goal = goal_part(app, picture, columns);
    if !goal.is_empty() {
        lines.push(Line::default());
        lines.extend(goal);
    }
    lines
}

fn agents(app: &App, picture: &RunPicture, columns: usize) -> Vec<Line<'static>> {
    let agents = &picture.details.tree.agents;
    let title = format!("AGENTS {}", agents.len());
    let mut lines = vec![Line::from(app.look.span(title, Tone::Dim))];
    let tops = agents.iter().filter(|agent| agent.parent.is_none()).collect::<Vec<_>>();
    for agent in tops {
        branch(app, agents, (agent, String::new(), String::new()), columns, &mut lines);
    }
    lines
}

/// An agent and those below it; what stands before its line, and before the lines below.
fn branch(
    app: &App,
    agents: &[RunAgent],
    (agent, before, below): (&RunAgent, String, String),
    columns: usize,
    lines: &mut Vec<Line<'static>>,
) {
    let look = app.look;
    let is_here = matches!(app.screen, crate::app::Screen::Run(_)) && agent.agent == app.agent;
    let name = format!("{} {}", agent.agent, one_line(&agent.name));
    let state = match &agent.outcome_text {
        Some(outcome) => one_line(outcome),
        None => format!("{}, turn {}", agent.state.word(), agent.turns),
    };
    let spent = to_right(&money_if_known(agent.cost), 8);
    let room = columns.saturating_sub(width(&before) + 3 + width(&spent) + 1);
    let text = format!("{} {state}", padded(&name, 16.min(room / 2)));
    lines.push(Line::from(vec![
        if is_here { look.span("▌", Tone::Strong) } else { Span::raw(" ") },
        look.span(before, Tone::Dim),
        mark_span(look, StateMark::of_agent(agent)),
        Span::raw(" "),
        look.span(padded(&text, room), if is_here { Tone::Strong } else { Tone::Plain }),
        look.span(format!(" {spent}"), Tone::Dim),
    ]));
    let children = agents.iter().filter(|other| other.parent == Some(agent.agent)).collect::<Vec<_>>();
    for (number, child) in children.iter().enumerate() {
        let is_last = number + 1 == children.len();
        let line = format!("{below}{}", if is_last { "└ " } else { "├ " });
        let under = format!("{below}{}", if is_last { "  " } else { "│ " });
        branch(app, agents, (child, line, under), columns, lines);
    }
}

fn goal_part(app: &App, picture: &RunPicture, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for goal in &picture.details.goals {
        lines.extend(of_goal(app, goal, columns));
    }
    let reports = picture.details.facts.as_ref().map(|facts| facts.stop_hooks.as_slice()).unwrap_or_default();
    if !reports.is_empty() {
        lines.push(Line::from(app.look.span("STOP HOOKS when last asked", Tone::Dim)));
    }
    for report in reports {
        let (state, words) = decided(&report.decision);
        let text = format!("{} {words}", one_line(&report.hook));
        lines.push(Line::from(vec![
            mark_span(app.look, state),
            Span::raw(" "),
            Span::raw(cut(&text, columns.saturating_sub(10))),
            app.look.span(format!(" {}", took(report.duration_us / 1_000)), Tone::Dim),
        ]));
    }
    if lines.is_empty() && app.tab == Tab::Goal {
        lines.push(Line::from(app.look.span("neither a goal nor stop hooks", Tone::Dim)));
    }
    lines
}

fn of_goal(app: &App, goal: &AgentGoal, columns: usize) -> Vec<Line<'static>> {
    let title = format!("GOAL of agent {}, round {} of {}", goal.agent, goal.rounds, goal.rounds_max);
    let mut lines = vec![Line::from(app.look.span(title, Tone::Dim))];
    let condition = lines_of(&goal.condition).join(" ");
    lines.extend(wrapped(&condition, columns, Breaks::AtBlanks).into_iter().map(Line::from));
    for (number, verification) in goal.verifications.iter().enumerate().rev() {
        let (state, words) = verdict(verification.finding.as_ref());
        let reason = verification.finding.as_ref().map(reasons).unwrap_or_default();
        let text = format!("{} {words}  {}", number + 1, lines_of(reason).join(" "));
        let pieces = wrapped(text.trim_end(), columns.saturating_sub(2), Breaks::AtBlanks);
        for (at, piece) in pieces.into_iter().enumerate() {
            let mark = if at == 0 { mark_span(app.look, state) } else { Span::raw(" ") };
            lines.push(Line::from(vec![mark, Span::raw(" "), Span::raw(piece)]));
        }
    }
    lines
}

fn verdict(finding: Option<&GoalFinding>) -> (StateMark, String) {
    match finding {
        Some(GoalFinding::Achieved { confidence, .. }) => {
            (StateMark::Finished, format!("reached {confidence}"))
        }
        Some(GoalFinding::NotAchieved { confidence: Some(confidence), .. }) => {
            (StateMark::Blocked, format!("not reached {confidence}"))
        }
        Some(GoalFinding::NotAchieved { confidence: None, .. }) => {
            (StateMark::Blocked, "not reached".to_owned())
        }
        Some(GoalFinding::Unverified { .. }) => (StateMark::Blocked, "not verified".to_owned()),
        None => (StateMark::Working, "is verified".to_owned()),
    }
}

fn reasons(finding: &GoalFinding) -> &str {
    match finding {
        GoalFinding::Achieved { reasoning, .. } | GoalFinding::NotAchieved { reasoning, .. } => reasoning,
        GoalFinding::Unverified { why } => why,
    }
}

fn decided(decision: &HookDecision) -> (StateMark, String) {
    match decision {
        HookDecision::Continue | HookDecision::Allow => (StateMark::Finished, "allowed".to_owned()),
        HookDecision::Ask(why) => (StateMark::NeedsYou, format!("asks: {}", one_line(why))),
        HookDecision::Deny(why) => (StateMark::Blocked, format!("objects: {}", one_line(why))),
        HookDecision::Pause(why) => (StateMark::Paused, format!("suspended it: {}", one_line(why))),
        HookDecision::Abort(why) => (StateMark::Failed, format!("aborted it: {}", one_line(why))),
        HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
            let why = decision.failure().unwrap_or_default();
            (StateMark::Failed, format!("no answer: {}", one_line(&why)))
        }
    }
}

fn cost(app: &App, picture: &RunPicture, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(app.look.span("SPENT, WITH THE AGENTS BELOW EACH", Tone::Dim))];
    let agents = picture.details.tree.agents.iter().filter(|agent| agent.tokens > 0);
    for agent in agents {
        let name = format!("{} {}", agent.agent, one_line(&agent.name));
        let room = columns.saturating_sub(52);
        let mut spans = vec![
            Span::raw(padded(&name, 18)),
            app.look.span(padded(&one_line(&agent.model), room.max(8)), Tone::Dim),
            Span::raw(to_right(&tokens(agent.tokens), 9)),
            Span::raw(to_right(&money_if_known(agent.cost), 9)),
            Span::raw(" "),
        ];
        if let (Some(MicroDollars(max)), Some(cost)) = (agent.budget.money, agent.cost) {
            spans.extend(bar(app.look, cost.0, max, 8));
        }
        lines.push(Line::from(spans));
    }
    let item = &picture.details.item;
    let all = format!("all: {} tokens, {}", tokens(item.tokens), money(item.cost_micro_usd));
    lines.push(Line::from(app.look.span(all, Tone::Strong)));
    lines
}

fn changes(app: &App, picture: &RunPicture, columns: usize) -> Vec<Line<'static>> {
    let changes = match &picture.changes {
        None => return vec![Line::from(app.look.span("reading", Tone::Dim))],
        Some(Err(why)) => {
            let text = format!("not known: {}", spelled_out(why));
            return wrapped(&text, columns, Breaks::AtBlanks).into_iter().map(Line::from).collect();
        }
        Some(Ok(changes)) => changes,
    };
    let files = provost_event::counted(changes.files.len() as u64, "file");
    let title = format!("{files} changed, +{} −{}", changes.added, changes.removed);
    let mut lines = vec![Line::from(app.look.span(title, Tone::Dim))];
    for file in &changes.files {
        lines.extend(of_file(app, file, columns));
    }
    lines
}

fn of_file(app: &App, file: &ChangedFile, columns: usize) -> Vec<Line<'static>> {
    let numbers = match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!("+{added} −{removed}"),
        _ => "not compared".to_owned(),
    };
    let path = padded(&spelled_out(&file.path), columns.saturating_sub(width(&numbers) + 1));
    let mut lines = vec![Line::from(vec![
        app.look.span(path, Tone::Strong),
        app.look.span(format!(" {numbers}"), Tone::Dim),
    ])];
    if let Some(patch) = &file.patch {
        lines.extend(lines_of(patch).into_iter().map(|line| {
            let tone = match line.as_bytes().first() {
                Some(b'+') => Tone::Done,
                Some(b'-') => Tone::Failed,
                Some(b'@') => Tone::Dim,
                _ => Tone::Plain,
            };
            Line::from(app.look.span(cut(&line, columns), tone))
        }));
    }
    lines
}
