//! The tables of states in the crate's documentation: scenarios and random walks are recorded, and what was seen is
//! compared with the tables.

mod probes;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use expect_test::{ExpectFile, expect_file};
use proptest::prelude::ProptestConfig;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use provost_engine::{Actor, Decision, Event, Now};
use provost_event::Entry;
use serde::Serialize;

use crate::{format, goal_laws, laws, tree_laws, workspace};

/// The phases of a session in the order of the document, each with its meaning.
const SESSION_PHASES: &[(&str, &str)] = &[
    ("new", "It has not been started."),
    ("making_worktree", "Its worktree is being made."),
    ("ready", "A model call is next; budget for it was requested."),
    ("between", "A stepped session waits for the event that allows the next turn."),
    ("preparing", "Hooks are called before the next model call."),
    ("compacting", "Hooks are called on whether the conversation may be shortened."),
    ("thinking", "A model call is in flight."),
    ("waiting", "A failed model call waits for its retry."),
    ("acting", "The tool calls of the last answer pass the gate and are run."),
    ("checking_stop", "The agent asks to stop, or its goal is verified: stop hooks are called."),
    ("verifying", "The goal is verified; budget for a judge was requested."),
    ("judging", "A judge is called."),
    ("judge_waits", "A judge without a verdict is called again after a wait."),
    ("stopping", "It was told to stop, and waits for what is in flight to end."),
    ("closing", "Before it stops: hooks are called, its terminal is closed, or its worktree is inspected."),
    ("suspended", "Its segment has ended, and it may be resumed."),
    ("ended", "Its segment has ended, and only a new request begins another."),
];

const RUN_PHASES: &[(&str, &str)] = &[
    ("new", "It has not been started."),
    ("working", "Its agents work, or wait for slots, restarts or providers."),
    ("stopping", "It was told to stop, or its time is over: no agent begins, and those at work stop."),
    ("suspended", "Its segment has ended, and it may be resumed."),
    ("ended", "Its segment has ended, and only a new request begins another."),
];

/// Decisions of each phase in which all further events are tried.
const PROBED_MAX: u32 = 200;
/// Every how many decisions of a phase that is done.
const PROBED_EVERY: u32 = 5;

/// What an event has led to in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Consequences {
    /// Indices in [`Entry::KINDS`].
    entries: BTreeSet<usize>,
    effects: BTreeSet<String>,
    messages: BTreeSet<String>,
    phases: BTreeSet<&'static str>,
}

type Table = BTreeMap<&'static str, BTreeMap<String, Consequences>>;

#[derive(Debug, Default)]
struct Recorder {
    runs: Table,
    sessions: Table,
    visits: BTreeMap<(bool, &'static str), u32>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Decides on an event; what follows is recorded if this thread records.
pub(crate) fn decide(actor: &mut Actor, event: Event, now: Now) -> Decision {
    RECORDER.with_borrow_mut(|recorder| match recorder {
        Some(recorder) => {
            recorder.probe(actor, now);
            recorder.decide(actor, event, now)
        }
        None => actor.decide(event, now),
    })
}

impl Recorder {
    fn decide(&mut self, actor: &mut Actor, event: Event, now: Now) -> Decision {
        let before = phase(actor);
        let name = event_name(&event);
        let decision = actor.decide(event, now);
        let table = match actor {
            Actor::Run(_) => &mut self.runs,
            Actor::Session(_) => &mut self.sessions,
        };
        let seen = table.entry(before).or_default().entry(name).or_default();
        let kinds = decision.entries.iter().map(Entry::kind).filter(|kind| *kind != "snapshot");
        seen.entries.extend(kinds.filter_map(|kind| Entry::KINDS.iter().position(|known| *known == kind)));
        seen.effects.extend(decision.effects.iter().map(|request| variant_name(&request.effect)));
        seen.messages.extend(decision.messages.iter().map(|message| event_name(&message.event)));
        if !decision.is_empty() {
            seen.phases.insert(phase(actor));
        }
        decision
    }

    /// Now and then, what each further event would lead to.
    fn probe(&mut self, actor: &Actor, now: Now) {
        let visits = self.visits.entry((matches!(actor, Actor::Run(_)), phase(actor))).or_default();
        *visits += 1;
        if *visits % PROBED_EVERY != 1 || *visits > PROBED_MAX * PROBED_EVERY {
            return;
        }
        for event in probes::events(actor) {
            self.decide(&mut actor.clone(), event, now);
        }
    }
}

fn phase(actor: &Actor) -> &'static str {
    match actor {
        Actor::Run(run) => run.phase_name(),
        Actor::Session(session) => session.phase_name(),
    }
}

fn event_name(event: &Event) -> String {
    match event {
        Event::Run(event) => variant_name(event),
        Event::Session(event) => variant_name(event),
    }
}

/// The name of an enum's variant, as it is serialized: the first string of its JSON form.
fn variant_name(value: &impl Serialize) -> String {
    let mut beginning = [0_u8; 64];
    // What doesn't fit isn't needed.
    let _ = serde_json::to_writer(beginning.as_mut_slice(), value);
    let beginning = String::from_utf8_lossy(&beginning);
    beginning.split('"').nth(1).expect("it has a name").to_owned()
}

/// Runs the same cases each time.
pub(crate) fn walks(cases: u32) -> TestRunner {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn record() -> Recorder {
    RECORDER.set(Some(Recorder::default()));
    format::play_all();
    workspace::play_all();
    probes::play_stepped();
    laws::walk(150);
    goal_laws::walk(120);
    tree_laws::walk(60);
    RECORDER.take().expect("this thread records")
}

fn cell(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// The phases afterwards, in the order of the document.
fn next_phases(order: &[(&str, &str)], phase: &str, seen: &Consequences) -> String {
    let others =
        order.iter().map(|(name, _)| *name).filter(|name| *name != phase && seen.phases.contains(name));
    let others = others.map(|name| format!("`{name}`"));
    let stays = seen.phases.contains(phase).then(|| "stays".to_owned());
    stays.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

fn row(order: &[(&str, &str)], phase: &str, events: &[&str], seen: &Consequences) -> String {
    let entries = cell(seen.entries.iter().map(|kind| Entry::KINDS[*kind]));
    let effects = match (seen.effects.is_empty(), seen.messages.is_empty()) {
        (true, true) => "-".to_owned(),
        (false, true) => cell(&seen.effects),
        (true, false) => format!("→ {}", cell(&seen.messages)),
        (false, false) => format!("{} → {}", cell(&seen.effects), cell(&seen.messages)),
    };
    format!("| {} | {entries} | {effects} | {} |\n", cell(events), next_phases(order, phase, seen))
}

/// The tables of all phases; events with the same consequences share a row.
fn tables(order: &[(&str, &str)], table: &Table) -> String {
    let unknown = table.keys().filter(|phase| order.iter().all(|(known, _)| known != *phase));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new(), "phases that the document doesn't name");
    let mut text = String::new();
    for (phase, meaning) in order {
        let events = table.get(phase).unwrap_or_else(|| panic!("no session or run was ever `{phase}`"));
        let mut rows = BTreeMap::<&Consequences, Vec<&str>>::new();
        for (event, seen) in events {
            rows.entry(seen).or_default().push(event);
        }
        let ignored = rows.remove(&Consequences::default()).unwrap_or_default();
        let mut rows = rows.into_iter().map(|(seen, events)| (events, seen)).collect::<Vec<_>>();
        rows.sort();
        let _ = writeln!(text, "## `{phase}`\n\n{meaning}\n");
        text.push_str("| event | entries | effects → messages | afterwards |\n|---|---|---|---|\n");
        rows.iter().for_each(|(events, seen)| text.push_str(&row(order, phase, events, seen)));
        if !ignored.is_empty() {
            let _ = writeln!(text, "| {} | - | - | - |", cell(&ignored));
        }
        text.push('\n');
    }
    format!("{}\n", text.trim_end())
}

/// Compares the tables of a document; the text before the first of them is written by hand.
fn check(document: &str, file: &ExpectFile, order: &[(&str, &str)], table: &Table) {
    let introduction = document.split("\n## ").next().unwrap_or_default().trim_end();
    file.assert_eq(&format!("{introduction}\n\n{}", tables(order, table)));
}

#[test]
fn the_tables_of_states_in_the_documentation_are_what_the_code_does() {
    let seen = record();
    let sessions = expect_file!["../../src/states/session.md"];
    check(include_str!("../../src/states/session.md"), &sessions, SESSION_PHASES, &seen.sessions);
    let runs = expect_file!["../../src/states/run.md"];
    check(include_str!("../../src/states/run.md"), &runs, RUN_PHASES, &seen.runs);
}
