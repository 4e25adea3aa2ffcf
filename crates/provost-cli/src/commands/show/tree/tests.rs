//! How trees look.

use expect_test::{Expect, expect};
use provost_event::{Budget, PauseReason, Priority, RunId, SessionId, Timestamp, Verdict};

use provost_event::{MicroDollars, Outcome};

use provost_view::{WorkflowStep, WorkflowStepState};

use super::*;

fn node(number: u32, parent: Option<u32>, name: &str, state: RunAgentState) -> RunAgent {
    RunAgent {
        agent: number,
        outcome_text: None,
        session: SessionId { run: RunId::from_entropy(1), agent: number },
        parent,
        depth: 0,
        name: name.to_owned(),
        goal: "find out what is slow and why it is".to_owned(),
        model: String::new(),
        goal_state: None,
        priority: (!matches!(state, RunAgentState::Done { .. })).then_some(Priority::Normal),
        state,
        turns: 3,
        turns_max: Some(40),
        tokens: 12_400,
        cost: Some(MicroDollars(20_000)),
        budget: Budget::default(),
        worked_ms: 80_000,
        restarts: 0,
        spawned_at: Timestamp(0),
        asks: Vec::new(),
    }
}

const DONE: RunAgentState = RunAgentState::Done { outcome: Outcome::UNVERIFIED };

fn drawing(width: Option<usize>) -> Drawing {
    Drawing { branches: Branches::LINES, extent: Extent::SummedUp, width }
}

#[track_caller]
fn check(nodes: &[RunAgent], drawing: Drawing, expected: Expect) {
    draws(&crew(nodes.to_vec()), drawing, expected);
}

fn crew(agents: Vec<RunAgent>) -> RunTree {
    RunTree { agents, steps: Vec::new() }
}

#[track_caller]
fn draws(crew: &RunTree, drawing: Drawing, expected: Expect) {
    console::set_colors_enabled(false);
    let lines = lines(crew, drawing);
    if let Some(width) = drawing.width {
        assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{lines:#?}");
    }
    expected.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

fn team() -> Vec<RunAgent> {
    let mut limited = node(1, Some(0), "lead", RunAgentState::Working);
    limited.budget = Budget {
        tokens: Some(50_000),
        money: Some(MicroDollars(500_000)),
        wall_time_ms: Some(600_000),
        turns: None,
    };
    let asked = PauseReason::Asked { by: "ann".to_owned(), awaited: None };
    vec![
        node(0, None, "root", RunAgentState::Working),
        limited,
        node(2, Some(1), "one", RunAgentState::Preempted { yields_to: Some(5) }),
        node(3, Some(1), "two", RunAgentState::Suspended { outcome: Outcome::Paused { why: asked } }),
        node(4, Some(3), "deep", RunAgentState::Asks),
        node(5, Some(0), "urgent", RunAgentState::Yields { yields_to: None }),
        node(6, Some(0), "later", RunAgentState::Queued),
        node(
            7,
            Some(0),
            "gone",
            RunAgentState::Done { outcome: Outcome::Cancelled { by: "bob".to_owned() } },
        ),
        node(
            8,
            Some(0),
            "fine",
            RunAgentState::Done {
                outcome: Outcome::Completed {
                    verdict: Some(Verdict::Pass),
                    verification: provost_event::Verification::None,
                },
            },
        ),
    ]
}

#[test]
fn a_tree_shows_who_works_for_whom_and_how_each_stands() {
    check(
        &team(),
        drawing(None),
        expect![[r#"
            AGENT         STATE                     PRIORITY  TURNS       TOKENS           COST          TIME  GOAL
            0 root        working                   normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 1 lead      working                   normal     3/40  12.4k/50.0k  $0.0200/$0.50  1m20s/10m00s  find out what is slow and why it is
            │ ├ 2 one     preempted for 5           normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            │ └ 3 two     suspended: paused by ann  normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            │   └ 4 deep  needs approval            normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 5 urgent    yields                    normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 6 later     queued                    normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 7 gone      cancelled by bob                     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            └ 8 fine      done, verdict PASS                   3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
        "#]],
    );
}

#[test]
fn on_a_narrow_terminal_goals_are_cut_and_then_columns_give_way() {
    check(
        &team(),
        drawing(Some(100)),
        expect![[r#"
            AGENT         STATE                     PRIORITY  TURNS       TOKENS           COST          TIME
            0 root        working                   normal     3/40        12.4k        $0.0200         1m20s
            ├ 1 lead      working                   normal     3/40  12.4k/50.0k  $0.0200/$0.50  1m20s/10m00s
            │ ├ 2 one     preempted for 5           normal     3/40        12.4k        $0.0200         1m20s
            │ └ 3 two     suspended: paused by ann  normal     3/40        12.4k        $0.0200         1m20s
            │   └ 4 deep  needs approval            normal     3/40        12.4k        $0.0200         1m20s
            ├ 5 urgent    yields                    normal     3/40        12.4k        $0.0200         1m20s
            ├ 6 later     queued                    normal     3/40        12.4k        $0.0200         1m20s
            ├ 7 gone      cancelled by bob                     3/40        12.4k        $0.0200         1m20s
            └ 8 fine      done, verdict PASS                   3/40        12.4k        $0.0200         1m20s
        "#]],
    );
    check(
        &team(),
        drawing(Some(60)),
        expect![[r#"
            AGENT         STATE                     TURNS       TOKENS
            0 root        working                    3/40        12.4k
            ├ 1 lead      working                    3/40  12.4k/50.0k
            │ ├ 2 one     preempted for 5            3/40        12.4k
            │ └ 3 two     suspended: paused by ann   3/40        12.4k
            │   └ 4 deep  needs approval             3/40        12.4k
            ├ 5 urgent    yields                     3/40        12.4k
            ├ 6 later     queued                     3/40        12.4k
            ├ 7 gone      cancelled by bob           3/40        12.4k
            └ 8 fine      done, verdict PASS         3/40        12.4k
        "#]],
    );
    check(
        &team(),
        drawing(Some(30)),
        expect![[r#"
            AGENT         STATE
            0 root        working
            ├ 1 lead      working
            │ ├ 2 one     preempted for 5
            │ └ 3 two     suspended: paus…
            │   └ 4 deep  needs approval
            ├ 5 urgent    yields
            ├ 6 later     queued
            ├ 7 gone      cancelled by bob
            └ 8 fine      done, verdict P…
        "#]],
    );
}

#[test]
fn a_terminal_that_knows_only_ascii_gets_that() {
    check(
        &team()[..4],
        Drawing { branches: Branches::ASCII, ..drawing(Some(60)) },
        expect![[r#"
            AGENT      STATE           TURNS       TOKENS           COST
            0 root     working          3/40        12.4k        $0.0200
            `-1 lead   working          3/40  12.4k/50.0k  $0.0200/$0.50
              |-2 one  preempted for~   3/40        12.4k        $0.0200
              `-3 two  suspended: pa~   3/40        12.4k        $0.0200
        "#]],
    );
}

fn wide() -> Vec<RunAgent> {
    let mut nodes = vec![node(0, None, "root", RunAgentState::Working)];
    nodes.extend((1..=40).map(|number| node(number, Some(0), "done", DONE)));
    let failed = RunAgentState::Done { outcome: Outcome::Cancelled { by: "bob".to_owned() } };
    nodes.extend((41..=43).map(|number| node(number, Some(0), "failed", failed.clone())));
    nodes.extend((44..=60).map(|number| node(number, Some(0), "later", RunAgentState::Queued)));
    nodes.push(node(61, Some(0), "last", RunAgentState::Working));
    // Its own is still at work, as it may be for a moment.
    nodes.push(node(62, Some(0), "over", DONE));
    nodes.push(node(63, Some(62), "below", RunAgentState::Working));
    nodes
}

#[test]
fn many_that_are_done_or_wait_in_the_line_are_summed_up() {
    check(
        &wide(),
        drawing(Some(80)),
        expect![[r#"
            AGENT               STATE                      TURNS  TOKENS     COST    TIME
            0 root              working                     3/40   12.4k  $0.0200   1m20s
            ├ 44 later          queued                      3/40   12.4k  $0.0200   1m20s
            ├ 45 later          queued                      3/40   12.4k  $0.0200   1m20s
            ├ 46 later          queued                      3/40   12.4k  $0.0200   1m20s
            ├ 47 later          queued                      3/40   12.4k  $0.0200   1m20s
            ├ 61 last           working                     3/40   12.4k  $0.0200   1m20s
            ├ 62 over           done                        3/40   12.4k  $0.0200   1m20s
            │ └ 63 below        working                     3/40   12.4k  $0.0200   1m20s
            ├ … 13 more queued
            └ … 43 ended        3 cancelled, 40 completed    129  533.2k    $0.86  57m20s
        "#]],
    );
    let all = lines(&crew(wide()), Drawing { extent: Extent::Whole, ..drawing(None) });
    assert_eq!(all.len(), 1 + wide().len(), "everybody has a line, below the heads");
}

#[test]
fn a_deep_tree_keeps_its_numbers_in_sight() {
    let parent = |number: u32| number.checked_sub(1);
    let nodes = (0..20).map(|number| node(number, parent(number), "x", RunAgentState::Working));
    let drawn = lines(&crew(nodes.collect()), drawing(Some(60)));
    expect![[r#"
        …                        └ 17 x  working   3/40   12.4k
        …                        └ 18 x  working   3/40   12.4k
        …                        └ 19 x  working   3/40   12.4k"#]]
    .assert_eq(&drawn[18..].join("\n"));
    let deepest = (0..50_000).map(|number| node(number, parent(number), "x", RunAgentState::Working));
    assert_eq!(lines(&crew(deepest.collect()), drawing(Some(60))).len(), 50_001);
}

#[test]
fn the_head_counts_agents_and_says_who_yields_to_whom() {
    let head = head(&team(), Some(4), 4, drawing(None)).join("\n");
    expect![[r#"
        4 of 4 slots · 2 working, 1 needs approval, 1 yielding, 1 preempted, 1 queued, 1 suspended, 1 done, 1 cancelled
        2 has yielded for 5"#]]
    .assert_eq(&head);
}

fn step(name: &str, state: WorkflowStepState, agents: &[u32]) -> WorkflowStep {
    WorkflowStep {
        name: name.to_owned(),
        goal: format!("have {name} done"),
        needs: Vec::new(),
        state,
        agent: agents.last().copied(),
        agents: agents.to_vec(),
        attempt: u32::try_from(agents.len()).unwrap().max(1),
        attempts_max: 3,
        priority: Some(Priority::Normal),
        turns: 6,
        turns_max: Some(40),
        tokens: 24_800,
        cost: Some(MicroDollars(40_000)),
        budget: Budget::default(),
        worked_ms: 160_000,
    }
}

fn flow() -> RunTree {
    let failed =
        Outcome::Completed { verdict: Some(Verdict::Fail), verification: provost_event::Verification::None };
    let steps = vec![
        step("plan", WorkflowStepState::Done, &[1]),
        step("build", WorkflowStepState::AtWork { worker: RunAgentState::Working }, &[2, 4]),
        step("asks", WorkflowStepState::AtWork { worker: RunAgentState::Asks }, &[3]),
        step("line", WorkflowStepState::AtWork { worker: RunAgentState::Queued }, &[5]),
        WorkflowStep { attempt: 2, ..step("again", WorkflowStepState::Again { wait_ms: Some(2_100) }, &[6]) },
        WorkflowStep { attempt: 2, ..step("later", WorkflowStepState::Again { wait_ms: None }, &[7]) },
        step("ready", WorkflowStepState::Ready, &[]),
        step(
            "ship",
            WorkflowStepState::Waits { waits_for: vec!["build".to_owned(), "asks".to_owned()] },
            &[],
        ),
        step("bad", WorkflowStepState::Failed { outcome: failed.clone() }, &[8]),
        step("stuck", WorkflowStepState::Asks { outcome: failed.clone() }, &[9]),
        step("off", WorkflowStepState::Skipped { because_of: Some("bad".to_owned()) }, &[]),
        step("never", WorkflowStepState::NeverBegun, &[]),
    ];
    let mut agents = (1..=9).map(|number| node(number, None, "x", DONE)).collect::<Vec<_>>();
    agents[1] = node(2, None, "build", RunAgentState::Done { outcome: failed });
    agents.push(node(10, Some(2), "before", DONE));
    agents.push(node(11, Some(4), "helper", RunAgentState::Working));
    agents.extend((12..=16).map(|number| node(number, Some(4), "helper", DONE)));
    RunTree { agents, steps }
}

#[test]
fn a_flow_has_a_line_for_each_step_and_below_it_who_works_for_its_agent() {
    draws(
        &flow(),
        drawing(Some(100)),
        expect![[r#"
        STEP        AGENT  STATE                                PRIORITY  TURNS  TOKENS     COST   TIME
        plan            1  done                                 normal     6/40   24.8k  $0.0400  2m40s
        build           4  at work, attempt 2 of 3              normal     6/40   24.8k  $0.0400  2m40s
        ├ helper       11  working                              normal     3/40   12.4k  $0.0200  1m20s
        └ … 5 done         5 completed                                       15   62.0k    $0.10  6m40s
        asks            3  needs approval                       normal     6/40   24.8k  $0.0400  2m40s
        line            5  queued                               normal     6/40   24.8k  $0.0400  2m40s
        again           6  tried again in 3 s (attempt 2 of 3)  normal     6/40   24.8k  $0.0400  2m40s
        later           7  tried again (attempt 2 of 3)         normal     6/40   24.8k  $0.0400  2m40s
        ready              ready                                normal
        ship               waits for build, asks                normal
        bad             8  failed: verdict FAIL                 normal     6/40   24.8k  $0.0400  2m40s
        stuck           9  failed, asks: verdict FAIL           normal     6/40   24.8k  $0.0400  2m40s
        off                skipped because of bad               normal
        never              never begun                          normal
    "#]],
    );
    draws(
        &flow(),
        drawing(Some(70)),
        expect![[r#"
        STEP        AGENT  STATE                        TURNS  TOKENS     COST
        plan            1  done                          6/40   24.8k  $0.0400
        build           4  at work, attempt 2 of 3       6/40   24.8k  $0.0400
        ├ helper       11  working                       3/40   12.4k  $0.0200
        └ … 5 done         5 completed                     15   62.0k    $0.10
        asks            3  needs approval                6/40   24.8k  $0.0400
        line            5  queued                        6/40   24.8k  $0.0400
        again           6  tried again in 3 s (attemp…   6/40   24.8k  $0.0400
        later           7  tried again (attempt 2 of …   6/40   24.8k  $0.0400
        ready              ready
        ship               waits for build, asks
        bad             8  failed: verdict FAIL          6/40   24.8k  $0.0400
        stuck           9  failed, asks: verdict FAIL    6/40   24.8k  $0.0400
        off                skipped because of bad
        never              never begun
    "#]],
    );
}

#[test]
fn the_whole_of_a_flow_has_the_attempts_that_have_failed() {
    let all = lines(&flow(), Drawing { extent: Extent::Whole, ..drawing(Some(70)) });
    expect![[r#"
        build           4  at work, attempt 2 of 3       6/40   24.8k  $0.0400
        ├ build         2  verdict FAIL                  3/40   12.4k  $0.0200
        │ └ before     10  done                          3/40   12.4k  $0.0200
        ├ helper       11  working                       3/40   12.4k  $0.0200
        ├ helper       12  done                          3/40   12.4k  $0.0200"#]]
    .assert_eq(&all[2..7].join("\n"));
}
