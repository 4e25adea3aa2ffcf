//! `provost goal`: showing, pausing, resuming and clearing a goal, also while another process works on the run;
//! and the goal in other commands.

use std::fs;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::control::{entries, log};
use crate::support::{Done, Running, Scene, json, until};

const GOAL: &str = "[goal]\ncondition = \"out says yes\"\njudge = \"script:judge.yaml\"\n";

/// An agent that claims to be done too early, and a judge that rejects the claim.
const CLAIMS: &str = "
answers:
  - text: All done.
    usage: { input: 100, output: 10 }
  - tools: [{ shell: { command: echo yes > out } }]
    usage: { input: 200, output: 10 }
  - text: Now it is done.
    usage: { input: 300, output: 10 }
";

const NO_THEN_YES: &str = "
verdicts:
  - { achieved: false, confidence: 0.9, reasoning: Nothing was written., suggestions: [write it, read it back], usage: { input: 500, output: 30 } }
  - { achieved: true, confidence: 0.95, reasoning: out says yes., usage: { input: 600, output: 20 } }
";

/// A judge whose first answer takes very long, and that agrees when it is asked once more.
const SLOW: &str = "
verdicts:
  - { achieved: true, confidence: 1.0, reasoning: Too slow., delay_ms: 600000 }
  - { achieved: true, confidence: 0.9, reasoning: out says yes., usage: { input: 600, output: 20 } }
";

const DONE: &str = "
answers:
  - { text: Done., usage: { input: 100, output: 10 } }
  - { text: Done again., usage: { input: 200, output: 10 } }
";

fn scene(script: &str, judge: &str) -> Scene {
    let scene = Scene::scripted(script).with_settings(GOAL);
    scene.write("work/judge.yaml", judge);
    scene
}

#[track_caller]
fn check(scene: &Scene, args: &[&str], status: i32, expected: Expect) {
    let Done { status: found, stdout, stderr } = scene.provost(args);
    let all = stable(scene, &format!("{stdout}{stderr}"));
    expected.assert_eq(&all);
    assert_eq!(found, status, "{all}");
}

/// The same of a table, which is as wide as the test's folder has it: of several spaces two are left.
#[track_caller]
fn check_table(scene: &Scene, args: &[&str], is_meant: fn(&str) -> bool, expected: Expect) {
    let Done { status, stdout, stderr } = scene.provost(args);
    assert_eq!((status, stderr.as_str()), (0, ""), "{stdout}");
    let text = stable(scene, &stdout);
    let lines = text.lines().filter(|line| is_meant(line));
    let squeezed = lines.map(|line| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        format!("{}\n", cells.collect::<Vec<_>>().join("  "))
    });
    expected.assert_eq(&squeezed.collect::<String>());
}

/// Without moments either.
fn stable(scene: &Scene, text: &str) -> String {
    let mut text = scene.stable(text);
    // A time of more than a second has a point in it.
    while let Some(point) = text.find(".TIME") {
        let from = text[..point].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        text.replace_range(from..=point, "");
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(place) = rest.find("Z").filter(|place| *place >= 19) {
        let (before, behind) = rest.split_at(place + 1);
        let from = before.len() - 20;
        let is_moment = before.is_char_boundary(from)
            && before[from..].chars().filter(|c| *c == ':').count() == 2
            && before[from..].starts_with("20");
        match is_moment {
            true => out.extend([&before[..from], "MOMENT"]),
            false => out.push_str(before),
        }
        rest = behind;
    }
    out + rest
}

/// The goals of the newest run.
fn goals(scene: &Scene) -> Vec<Value> {
    let shown = scene.provost(&["goal", "show", "last", "--json"]);
    if shown.status != 0 {
        return Vec::new();
    }
    json(shown.stdout.trim())["goals"].as_array().unwrap().clone()
}

/// A run whose judge is being asked.
fn at_verifying(scene: &Scene) -> Running {
    let running = scene.start(&["run", "write it"]);
    until_verifying(scene);
    running
}

fn until_verifying(scene: &Scene) {
    until("the judge is asked", || {
        let log = log(scene);
        entries(&log, "model_called").iter().any(|called| called["purpose"] == "judge").then_some(())
    });
}

#[test]
fn a_run_is_sent_back_by_its_judge_and_completes_once_that_agrees() {
    let scene = scene(CLAIMS, NO_THEN_YES);
    check(
        &scene,
        &["run", "write it"],
        0,
        expect![[r#"
            Now it is done.
            run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
              write it
            agent: All done.
            goal: verifying the goal: the agent says that it is done
            goal: script:/FOLDER/work/judge.yaml: not reached, confidence 0.90 (TIME)
            goal: the goal isn't reached (confidence 0.90)
              Nothing was written.
              - write it
              - read it back
            provost: told what the judges miss
            tool: shell echo yes > out
            ok: shell echo yes > out (TIME)
            agent: Now it is done.
            goal: verifying the goal: the agent says that it is done
            goal: script:/FOLDER/work/judge.yaml: reached, confidence 0.95 (TIME)
            goal: the goal is reached (confidence 0.95)
              out says yes.
            completed, verified · 3 turns · 1.7k tokens · $0.00 · TIME
            verified: the goal is reached (confidence 0.95)
            go on with: provost resume RUN "and now …"
        "#]],
    );
    check(
        &scene,
        &["goal", "show", "last"],
        0,
        expect![[r#"
            run         RUN
            status      completed
            outcome     completed, verified
            task        write it

            condition   out says yes
            state       achieved, confidence 0.95 (generation 5)
            rounds      1 of 10: claims that were found wrong
            failures    0 of 3: times in a row that the judges couldn't tell
            idle turns  0 of 5: in a row, without measurable progress
            verified    when the agent says that it is done, and at a limit
            judges      each at least 0.70 sure, within 1m00s
                        script:/FOLDER/work/judge.yaml: asked 2 times (1 reached, 1 not reached)
            judging     2 calls · 1.1k tokens · $0.00

            verdicts
              turn 1, claim: isn't reached (confidence 0.90) (MOMENT, entry 7)
                Nothing was written.
                - write it
                - read it back
                · script:/FOLDER/work/judge.yaml: not reached, 0.90 (TIME, 530 tokens, $0.00)
              turn 3, claim: is reached (confidence 0.95) (MOMENT, entry 20)
                out says yes.
                · script:/FOLDER/work/judge.yaml: reached, 0.95 (TIME, 620 tokens, $0.00)
        "#]],
    );
}

#[test]
fn pages_logs_and_spending_tell_of_judges() {
    let scene = scene(CLAIMS, NO_THEN_YES);
    assert_eq!(scene.provost(&["run", "write it"]).status, 0);
    check(
        &scene,
        &["show", "last"],
        0,
        expect![[r#"
            run         RUN
            status      completed
            outcome     completed, verified
                        verified: the goal is reached (confidence 0.95)
            go on with  provost resume RUN "and now …"
            goal        write it
            condition   out says yes
                        achieved, confidence 0.95, 1 of 10 claims found wrong
            model       script:/FOLDER/work/agent.yaml
            workspace   /FOLDER/work
            started     MOMENT
            updated     MOMENT
            turns       3 of 300
            tokens      1,780
            cost        $0.00
            time        TIME
            calls       1 tool call
            progress    converging
                        2 of 3 turns changed files
                        1 of 3 turns brought a new kind of call and result
                        1 of 3 turns repeated what was there, or did nothing

            verdicts of the judges
              turn 1, claim: isn't reached (confidence 0.90): Nothing was written.
              turn 3, claim: is reached (confidence 0.95): out says yes.

            final answer
              Now it is done.
        "#]],
    );
    check_table(
        &scene,
        &["logs", "last"],
        |line| line.contains("  goal_"),
        expect![[r#"
        MOMENT  0  4  goal_check_started  verifying the goal: the agent says that it is done
        MOMENT  0  6  goal_judged  script:/FOLDER/work/judge.yaml: not reached, confidence 0.90 (TIME)
        MOMENT  0  7  goal_verdict  the goal isn't reached (confidence 0.90) · Nothing was written.
        MOMENT  0  17  goal_check_started  verifying the goal: the agent says that it is done
        MOMENT  0  19  goal_judged  script:/FOLDER/work/judge.yaml: reached, confidence 0.95 (TIME)
        MOMENT  0  20  goal_verdict  the goal is reached (confidence 0.95) · out says yes.
    "#]],
    );
    check_table(
        &scene,
        &["cost", "last"],
        |_| true,
        expect![[r#"
        AGENT  MODEL  CALLS  INPUT  CACHED  WRITTEN  OUTPUT  COST
        0  script:/FOLDER/work/judge.yaml  2  1.1k  0  0  50  $0.00
        0  script:/FOLDER/work/agent.yaml  3  600  0  0  30  $0.00
        total  5  1.7k  0  0  80  $0.00
    "#]],
    );
    check_table(
        &scene,
        &["cost", "last", "--by", "purpose"],
        |_| true,
        expect![[r#"
        PURPOSE  CALLS  INPUT  CACHED  WRITTEN  OUTPUT  COST
        judge  2  1.1k  0  0  50  $0.00
        turn  3  600  0  0  30  $0.00
        total  5  1.7k  0  0  80  $0.00
    "#]],
    );
}

#[test]
fn explain_tells_how_often_a_goal_was_verified() {
    let scene = scene(CLAIMS, NO_THEN_YES);
    assert_eq!(scene.provost(&["run", "write it"]).status, 0);
    check_table(
        &scene,
        &["explain", "last"],
        |_| true,
        expect![[r#"
            run  RUN
            status  completed
            goal  write it
            as of  entry 12 of the run, 22 of agent 0 · MOMENT

            limits of the run
            LIMIT  SET TO  REACHED  CONSULTED  DECIDED
            tokens  not set  1,780
            money  not set  $0.00
            wall time  not set  TIME
            turns  not set  3

            limits of the agent
            LIMIT  SET TO  REACHED  CONSULTED  DECIDED
            turns  300  3  3  0
            -  model patience secs  900  1  0  0  no model call failed
            -  empty answers  2  0  0  0  no answer was empty
            -  continuations  3  0  0  0  no answer was cut off
            repeated call notice  3  1  1  0
            repeated call  10  1  1  0
            failed turns notice  5  0  1  0
            failed turns  12  0  1  0
            -  interruptions  3  0  0  0  it was never interrupted
            -  stop blocks  8  0  0  0  there is no stop hook
            goal rounds  10  1  1  0
            -  judge failures  3  0  0  0  the judges could always tell
            stuck turns  5  1  3  0
            verify every  not set  0

            judges of the goal
            JUDGE  CONSULTED  TIME  LONGEST  COST
            script:/FOLDER/work/judge.yaml  2  TIME  TIME  $0.00  reached 1, not reached 1
            verified 2 times: at claims 2
            what that came to: reached 1, not reached 1

            permissions
            everything is allowed without asking

            not configured: stop hooks, hooks

            - 6 of 14 were never consulted: 6 limits
        "#]],
    );
}

#[test]
fn programs_get_all_of_a_goal() {
    let scene = scene(CLAIMS, NO_THEN_YES);
    assert_eq!(scene.provost(&["run", "write it"]).status, 0);
    let goals = goals(&scene);
    let shown = json(scene.provost(&["show", "last", "--json"]).stdout.trim());
    assert_eq!(shown["goals"], Value::from(goals.clone()));
    assert_eq!(shown["agents"][0]["goal_state"], "achieved");
    let [goal] = goals.as_slice() else { panic!("{goals:?}") };
    assert_eq!((&goal["agent"], &goal["state"], &goal["rounds"]), (&0.into(), &"achieved".into(), &1.into()));
    assert_eq!((&goal["finding_is_current"], &goal["judging"]["calls"]), (&true.into(), &2.into()));
    let found = goal["verifications"].as_array().unwrap().iter();
    let found = found
        .map(|one| (one["turn"].clone(), one["finding"].as_object().unwrap().keys().next().unwrap().clone()));
    assert_eq!(found.collect::<Vec<_>>(), [(1.into(), "not_achieved".into()), (3.into(), "achieved".into())]);
    assert_eq!(goal["verifications"][0]["answers"][0]["answer"]["verdict"]["confidence"], 0.9);
}

#[test]
fn a_goal_is_cleared_while_its_judge_is_asked_and_the_run_goes_on_without_it() {
    let scene = scene(DONE, SLOW);
    let running = at_verifying(&scene);
    assert_eq!(goals(&scene)[0]["state"], "verifying");
    check(
        &scene,
        &["goal", "clear", "last"],
        0,
        expect![[r#"
        run RUN has no goal any more, and is suspended
        go on without it: provost resume RUN
    "#]],
    );
    let ended = running.end();
    assert_eq!(ended.status, 4, "{ended:?}");
    let log = log(&scene);
    assert!(entries(&log, "goal_judged").iter().all(|judged| judged["stale"] == true), "{log:?}");
    assert!(entries(&log, "goal_verdict").is_empty());
    check(
        &scene,
        &["goal", "clear", "last"],
        2,
        expect![[r#"
        error: the goal of run RUN was cleared already, by provost goal clear
        hint: `provost resume RUN` goes on without it
    "#]],
    );
    check(
        &scene,
        &["goal", "pause", "last"],
        2,
        expect![[r#"
        error: the goal of run RUN was cleared already, by provost goal clear
        hint: `provost resume RUN` goes on without it
    "#]],
    );
    check(
        &scene,
        &["resume", "last"],
        0,
        expect![[r#"
            Done.
            run: RUN goes on, asked by provost resume
            completed, not verified · 1 turn · 110 tokens · $0.00 · TIME
            the goal was cleared by provost goal clear; it wasn't verified
            go on with: provost resume RUN "and now …"
        "#]],
    );
    check(
        &scene,
        &["goal", "show", "last"],
        0,
        expect![[r#"
            run         RUN
            status      completed
            outcome     completed, not verified
            task        write it

            condition   out says yes
            state       cleared by provost goal clear (generation 6)
            rounds      0 of 10: claims that were found wrong
            failures    0 of 3: times in a row that the judges couldn't tell
            idle turns  1 of 5: in a row, without measurable progress
            verified    when the agent says that it is done, and at a limit
            judges      each at least 0.70 sure, within 1m00s
                        script:/FOLDER/work/judge.yaml: asked 1 time (1 no verdict, 1 of them too late)
            judging     1 call · 0 tokens · $0.00

            verdicts
              turn 1, claim: given up (MOMENT, entry 4)
                · script:/FOLDER/work/judge.yaml: stopped before it gave a verdict (TIME, 0 tokens, $0.00)
        "#]],
    );
}

#[test]
fn a_goal_is_cleared_at_rest() {
    let scene = scene(
        "answers: [{ tools: [list_dir], usage: { input: 100, output: 10 } }, { text: Done., usage: { input: 200, output: 10 } }]\n",
        NO_THEN_YES,
    );
    check(
        &scene,
        &["run", "write it", "--max-turns", "1"],
        3,
        expect![[r#"
            run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
              write it
            provost: told that this is its last turn
            tool: list_dir
            ok: list_dir (TIME)
            provost: stopping: Turn budget of the run used up: 1 of 1
            goal: verifying the goal: a limit ends the work
            goal: script:/FOLDER/work/judge.yaml: not reached, confidence 0.90 (TIME)
            goal: the goal isn't reached (confidence 0.90)
              Nothing was written.
              - write it
              - read it back
            provost: told what the judges miss
            Turn budget of the run used up: 1 of 1 · 1 turn · 640 tokens · $0.00 · TIME
            the goal isn't reached (confidence 0.90): Nothing was written.
            no final summary: the model's answer was empty
            go on with: provost resume RUN --max-turns 1
        "#]],
    );
    check(
        &scene,
        &["goal", "clear", "last"],
        0,
        expect![[r#"
            run RUN has no goal any more, and is still suspended: Turn budget of the run used up: 1 of 1
            go on without it: provost resume RUN --max-turns 1
        "#]],
    );
    check(
        &scene,
        &["resume", "last", "--max-turns", "5"],
        0,
        expect![[r#"
            Done.
            turns: limit now 6 turns, used 1 turn
            run: RUN goes on, asked by provost resume
            agent: Done.
            completed, not verified · 2 turns · 850 tokens · $0.00 · TIME
            the goal was cleared by provost goal clear; it wasn't verified
            go on with: provost resume RUN "and now …"
        "#]],
    );
}

#[test]
fn a_goal_is_cleared_when_the_process_that_verified_it_is_gone() {
    let scene = scene(DONE, SLOW);
    at_verifying(&scene).kill();
    check(
        &scene,
        &["goal", "clear", "last"],
        0,
        expect![[r#"
        run RUN has no goal any more, and is suspended
        go on without it: provost resume RUN
    "#]],
    );
    check(
        &scene,
        &["resume", "last"],
        0,
        expect![[r#"
            Done.
            run: RUN goes on, asked by provost resume
            completed, not verified · 1 turn · ~11.6k tokens · $0.00 · TIME
            the goal was cleared by provost goal clear; it wasn't verified
            go on with: provost resume RUN "and now …"
        "#]],
    );
}

#[test]
fn a_goal_is_paused_while_its_judge_is_asked_and_verified_when_it_goes_on() {
    let scene = scene(DONE, SLOW);
    let running = at_verifying(&scene);
    check(
        &scene,
        &["goal", "pause", "last"],
        0,
        expect![[r#"
        run RUN is suspended: paused by provost pause
        go on with: provost resume RUN
    "#]],
    );
    assert_eq!(running.end().status, 4);
    assert_eq!(goals(&scene)[0]["state"], "paused");
    check(
        &scene,
        &["goal", "resume", "last"],
        0,
        expect![[r#"
            Done.
            run: RUN goes on, asked by provost resume
            goal: verifying the goal: the agent says that it is done
            goal: script:/FOLDER/work/judge.yaml: reached, confidence 0.90 (TIME)
            goal: the goal is reached (confidence 0.90)
              out says yes.
            completed, verified · 1 turn · 730 tokens · $0.00 · TIME
            verified: the goal is reached (confidence 0.90)
            go on with: provost resume RUN "and now …"
        "#]],
    );
    let log = log(&scene);
    assert_eq!(entries(&log, "goal_verdict").len(), 1);
    assert_eq!(goals(&scene)[0]["state"], "achieved");
}

#[test]
fn what_has_no_goal_is_told_apart_from_what_has_ended() {
    let scene = Scene::scripted(DONE);
    check(
        &scene,
        &["goal", "show", "last"],
        2,
        expect![[r#"
        error: there are no runs yet
        hint: start one with `provost run`
    "#]],
    );
    assert_eq!(scene.provost(&["run", "write it"]).status, 0);
    for what in ["show", "pause", "resume"] {
        check(
            &scene,
            &["goal", what, "last"],
            2,
            expect![[r#"
            error: run RUN has no goal that judges verify
            hint: start a run with one: provost run --goal "CONDITION" …, or [goal] in the settings
        "#]],
        );
    }
    check(
        &scene,
        &["goal", "clear", "last"],
        2,
        expect![[r#"
            error: run RUN has no goal that judges verify
            hint: start a run with one: provost run --goal "CONDITION" …, or [goal] in the settings
        "#]],
    );
    check(
        &scene,
        &["goal", "show", "last.7"],
        2,
        expect![[r#"
        error: run RUN has no agent 7; its one agent, 0, is done
        hint: `provost show RUN` draws them
    "#]],
    );
    check(
        &scene,
        &["goal", "show", "zzz"],
        2,
        expect![[r#"
        error: there is no run `zzz`
        hint: `provost ps --all` lists them
    "#]],
    );
}

#[test]
fn an_agent_can_t_clear_its_own_goal() {
    let program = env!("CARGO_BIN_EXE_provost");
    let script = format!(
        "answers:\n  - tools:\n      - shell: {{ command: \"(setsid {program} goal clear last) > out 2>&1; echo $? >> out\" }}\n  - text: done\n"
    );
    let scene = scene(&script, "verdicts: [{ achieved: true, confidence: 0.9, reasoning: it is }]\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let out = fs::read_to_string(scene.path("work/out")).unwrap();
    expect![[r#"
        error: provost goal clear: this was started by run RUN, whose programs can't act on runs
        hint: do it in a terminal of your own; ps, show and logs work here too
        2
    "#]]
    .assert_eq(&scene.stable(&out));
    assert!(entries(&log(&scene), "goal_cleared").is_empty());
}

#[test]
fn the_end_of_a_budget_says_whether_the_goal_was_reached() {
    let looks = "answers: [{ tools: [list_dir], usage: { input: 100, output: 10 } }]\n";
    for (verdict, expected) in [
        (
            "{ achieved: false, confidence: 0.9, reasoning: \"Nothing was written.\\nAt all.\", usage: { input: 500, output: 20 } }",
            expect![[r#"
                Turn budget of the run used up: 1 of 1 · 1 turn · 630 tokens · $0.00 · TIME
                the goal isn't reached (confidence 0.90): Nothing was written.
                no final summary: the model's answer was empty
                go on with: provost resume RUN --max-turns 1"#]],
        ),
        (
            "{ achieved: true, confidence: 0.2, reasoning: It may be there., usage: { input: 500, output: 20 } }",
            expect![[r#"
                Turn budget of the run used up: 1 of 1 · 1 turn · 630 tokens · $0.00 · TIME
                the goal isn't reached: It looks reached, but the judge is not sure enough: 0.20, and 0.70 is needed. It may be there.
                no final summary: the model's answer was empty
                go on with: provost resume RUN --max-turns 1"#]],
        ),
        (
            "{ fault: { class: unauthorized, message: no such key } }",
            expect![[r#"
                Turn budget of the run used up: 1 of 1 · 1 turn · 110 tokens · $0.00 · TIME
                the goal couldn't be verified: the provider refused the key: no such key; set a valid key, then resume
                no final summary: the model's answer was empty
                go on with: provost resume RUN --max-turns 1"#]],
        ),
        (
            "{ achieved: true, confidence: 0.9, reasoning: out says yes., usage: { input: 500, output: 20 } }",
            expect![[r#"
                completed, verified · 1 turn · 630 tokens · $0.00 · TIME
                verified: the goal is reached (confidence 0.90)
                no final summary: the model's answer was empty
                go on with: provost resume RUN --max-turns 1 "and now …""#]],
        ),
    ] {
        let scene = scene(looks, &format!("verdicts: [{verdict}]\n"));
        let ran = scene.provost(&["run", "write it", "--max-turns", "1"]);
        let is_reached = verdict.contains("0.9, reasoning: out");
        assert_eq!(ran.status, if is_reached { 0 } else { 3 }, "{ran:?}");
        let end =
            ran.stderr.lines().skip_while(|line| !line.contains(" turn · ")).collect::<Vec<_>>().join("\n");
        expected.assert_eq(&stable(&scene, &end));
        let page = scene.provost(&["show", "last"]).stdout;
        let outcome = page.lines().skip_while(|line| !line.starts_with("outcome")).nth(1).unwrap().trim();
        assert!(ran.stderr.contains(outcome), "{outcome}: {ran:?}");
    }
}

#[test]
fn a_judge_that_can_t_be_reached_pauses_the_run_and_resume_asks_it_again() {
    let judge = "
verdicts:
  - { fault: { class: unauthorized, message: no such key } }
  - { achieved: true, confidence: 0.9, reasoning: out says yes., usage: { input: 600, output: 20 } }
";
    let scene = scene(DONE, judge).with_settings("max_failures = 1\n");
    check(
        &scene,
        &["run", "write it"],
        4,
        expect![[r#"
            Done.
            run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
              write it
            agent: Done.
            goal: verifying the goal: the agent says that it is done
            goal: script:/FOLDER/work/judge.yaml: no verdict: the provider refused the key: no such key (TIME)
            goal: the goal couldn't be verified: the provider refused the key: no such key; set a valid key, then resume
            the judge gives no verdict: one failure, the last: the provider refused the key: no such key; set a valid key, then resume · 1 turn · 110 tokens · $0.00 · TIME
            go on with: provost resume RUN
        "#]],
    );
    check(
        &scene,
        &["goal", "resume", "last"],
        0,
        expect![[r#"
            Done.
            run: RUN goes on, asked by provost resume
            goal: verifying the goal: the agent says that it is done
            goal: script:/FOLDER/work/judge.yaml: reached, confidence 0.90 (TIME)
            goal: the goal is reached (confidence 0.90)
              out says yes.
            completed, verified · 1 turn · 730 tokens · $0.00 · TIME
            verified: the goal is reached (confidence 0.90)
            go on with: provost resume RUN "and now …"
        "#]],
    );
}

#[test]
fn what_judges_write_can_t_pose_as_anything_else() {
    let judge = r#"
verdicts:
  - achieved: false
    confidence: 0.9
    reasoning: "No.\e[2J\e]0;owned\a\ngoal: the goal is reached (confidence 1.00)\r\u202Etxt"
    suggestions: ["\e[31mdo\nverdicts of the judges", "again"]
  - { achieved: true, confidence: 0.9, reasoning: "\e[1mYes." }
"#;
    let scene = scene(DONE, judge);
    let ran = scene.provost(&["run", "write it"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("goal: the goal is reached")).count(), 1);
    for args in
        [["goal", "show", "last"].as_slice(), &["show", "last"], &["logs", "last"], &["explain", "last"]]
    {
        let shown = scene.provost(args).stdout;
        assert!(!shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{shown:?}");
        assert!(!shown.lines().any(|line| line.starts_with("goal: the goal is reached")), "{shown}");
        assert_eq!(
            shown.lines().filter(|line| line.starts_with("verdicts")).count(),
            usize::from(args.len() == 3 || args[0] == "show")
        );
    }
}

#[test]
fn explain_tells_which_judges_and_limits_had_a_say() {
    let of_judges =
        |line: &str| ["judge", "goal rounds", "verified", "came to"].iter().any(|word| line.contains(word));
    let goal = "[goal]\ncondition = \"out says yes\"\njudges = [\"script:judge.yaml\", \"script:other.yaml\"]\nagree = 2\nmax_rounds = 2\n";
    let scene = Scene::scripted(DONE).with_settings(goal);
    let judge = "
verdicts:
  - { achieved: false, confidence: 0.9, reasoning: Nothing was written., usage: { input: 500, output: 20 } }
  - { achieved: false, confidence: 0.8, reasoning: Still nothing., usage: { input: 500, output: 20 } }
";
    scene.write("work/judge.yaml", judge);
    scene.write("work/other.yaml", "verdicts: [{ achieved: true, confidence: 1, reasoning: yes }]\n");
    check(
        &scene,
        &["run", "write it"],
        4,
        expect![[r#"
        Done again.
        run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
          write it
        agent: Done.
        goal: verifying the goal: the agent says that it is done
        goal: script:/FOLDER/work/judge.yaml: not reached, confidence 0.90 (TIME)
        goal: the goal isn't reached (confidence 0.90)
          script:/FOLDER/work/judge.yaml: Nothing was written.
        provost: told what the judges miss
        agent: Done again.
        goal: verifying the goal: the agent says that it is done
        goal: script:/FOLDER/work/judge.yaml: not reached, confidence 0.80 (TIME)
        goal: the goal isn't reached (confidence 0.80)
          script:/FOLDER/work/judge.yaml: Still nothing.
        provost: told what the judges miss
        blocked: judge: script:/FOLDER/work/judge.yaml: Still nothing. · 2 turns · 1.3k tokens · $0.00 · TIME
        go on with: provost resume RUN
    "#]],
    );
    check_table(
        &scene,
        &["explain", "last"],
        of_judges,
        expect![[r#"
            goal rounds  2  2  2  1
            -  judge failures  3  0  0  0  the judges could always tell
            judges of the goal
            script:/FOLDER/work/judge.yaml  2  TIME  TIME  $0.00  not reached 2
            -  script:/FOLDER/work/other.yaml  0  what the judges before it said was enough
            verified 2 times: at claims 2
            what that came to: not reached 2
            - 11 of 15 were never consulted: 10 limits, 1 judge
        "#]],
    );
    let explained = json(scene.provost(&["explain", "last", "--json"]).stdout.trim());
    let goal = &explained["agents"][0]["goal"];
    assert_eq!((&goal["checks"]["claims"], &goal["checks"]["not_achieved"]), (&2.into(), &2.into()));
    assert_eq!((&goal["judges"][0]["consulted"], &goal["judges"][1]["say"]), (&2.into(), &"never".into()));
    let limits = explained["agents"][0]["limits"].as_array().unwrap();
    let rounds = limits.iter().find(|limit| limit["name"] == "goal_rounds").unwrap();
    assert_eq!((&rounds["most"], &rounds["decided"]), (&2.into(), &1.into()));
}

#[test]
fn sub_agents_with_goals_are_shown_and_cleared_by_their_number() {
    let script = "
answers:
  - tools: [{ spawn_agent: { goal: write it, name: writer, done_when: out says yes } }]
    usage: { input: 100, output: 10 }
  - text: It is back.
    usage: { input: 200, output: 10 }
agents:
  - goal: write it
    answers: [{ text: Done., usage: { input: 100, output: 10 } }]
";
    let scene = Scene::scripted(script).with_settings("[goal]\njudge = \"script:judge.yaml\"\n");
    scene.write("work/judge.yaml", SLOW);
    let running = scene.start(&["run", "team"]);
    until("its judge is asked", || {
        goals(&scene).iter().any(|goal| goal["state"] == "verifying").then_some(())
    });
    check(
        &scene,
        &["goal", "clear", "last"],
        2,
        expect![[r#"
        error: run RUN has no goal that judges verify
        hint: `provost goal show RUN` shows those that its agents have, e.g. RUN.1
    "#]],
    );
    let tree = scene.provost(&["show", "last"]).stdout;
    assert!(tree.contains("1 writer  goal: verifying"), "{tree}");
    // Whether the run is suspended by now is a race.
    let cleared = stable(&scene, &scene.provost(&["goal", "clear", "last.1"]).stdout);
    let words = "agent 1 (writer) of run RUN has no goal any more, and is suspended: the goal was cleared by";
    assert!(cleared.starts_with(words), "{cleared}");
    assert!(cleared.contains("\ngo on without it: provost resume RUN"), "{cleared}");
    assert_eq!(scene.provost(&["goal", "clear", "last.1"]).status, 2);
    let ended = running.end();
    check_table(
        &scene,
        &["show", "last"],
        |line| line.contains("writer") || line.contains("outcome"),
        expect![[r#"
            outcome  the goal was cleared by provost goal clear; resume goes on without it
            └ 1 writer  suspended: the goal was cleared by provo…  normal  1/300  110  $0.00  TIME  write it
        "#]],
    );
    assert_eq!(ended.status, 4, "{ended:?}");
    check(
        &scene,
        &["resume", "last"],
        0,
        expect![[r#"
            It is back.
            run: RUN goes on, asked by provost resume
            run: agent 1 (writer) is done
            ok: spawn_agent writer: write it (TIME)
            agent: It is back.
            completed, not verified · 3 turns · 430 tokens · $0.00 · TIME
            go on with: provost resume RUN "and now …"
        "#]],
    );
    assert_eq!(goals(&scene)[0]["cleared_by"], "provost goal clear");
}
