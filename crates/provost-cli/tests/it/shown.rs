//! The output while a run works: plain lines, records, and the log of another process's run.

use expect_test::expect;
use provost_event::Record;

use crate::support::{Scene, line_in, until};

const RICH: &str = r#"
answers:
  - thinking: hidden thoughts
    text: I'll look around.
    usage: { input: 1000, output: 20 }
    tools:
      - list_dir
      - read_file: { path: missing.rs }
  - fault: { class: rate_limited, message: slow down, retry_after_ms: 20 }
  - usage: { input: 1100, output: 20 }
    tools:
      - update_plan: { items: [{ text: look, status: done }, { text: repair, status: in_progress }] }
  - usage: { input: 1200, output: 20 }
    tools:
      - shell: { command: "echo out; exit 3" }
  - text: "I think I am done.\n\nVERDICT: PASS"
    usage: { input: 1300, output: 20 }
  - text: "\e[31mReally\e[0m done.\n\nVERDICT: PASS"
    usage: { input: 1400, output: 20 }
"#;

const HOOK: &str = "[[stop_hooks]]
name = \"second look\"
command = \"test -e seen || { touch seen; echo 'warning: unused'; echo '  --> lib.rs'; exit 2; }\"
";

fn rich() -> Scene {
    Scene::scripted(RICH).with_settings(HOOK).trusted()
}

#[test]
fn plain_lines_have_stable_prefixes_and_no_control_codes() {
    let scene = rich();
    let ran = scene.provost(&["run", "Repair it"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(ran.stdout, "Really done.\n\nVERDICT: PASS\n");
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'));
    expect![[r#"
        run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
          Repair it
        agent: I'll look around.
        tool: list_dir
        tool: read_file missing.rs
        ok: list_dir (TIME)
        failed: read_file missing.rs (TIME)
          `missing.rs` doesn't exist
        tool: update_plan 1/2 repair
        ok: update_plan 1/2 repair (TIME)
        tool: shell echo out; exit 3
        failed: shell echo out; exit 3 (TIME)
          out
          exit status 3
        agent: I think I am done.

          VERDICT: PASS
        hooks: stop hooks say no: second look (TIME)
          second look: warning: unused
            --> lib.rs
        provost: sent back to work with the stop hooks' reasons
        agent: Really done.

          VERDICT: PASS
        hooks: stop hooks agree: second look (TIME)
        completed (verdict PASS), verified · 5 turns · 6.1k tokens · $0.00 · TIME
        go on with: provost resume RUN "and now …"
    "#]]
    .assert_eq(&scene.stable(&ran.stderr));
}

#[test]
fn quiet_says_nothing_but_the_final_summary() {
    let scene = rich();
    let ran = scene.provost(&["run", "Repair it", "--quiet"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Really done.\n\nVERDICT: PASS\n", ""));
}

#[test]
fn json_prints_every_record_once_and_the_runs_end_last() {
    let scene = rich();
    let ran = scene.provost(&["run", "Repair it", "--json"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let records = ran.stdout.lines().map(|line| Record::from_line(line).unwrap()).collect::<Vec<_>>();
    for (record, line) in records.iter().zip(ran.stdout.lines()) {
        assert_eq!(record.to_line().unwrap(), line);
    }
    assert_eq!(records.last().unwrap().entry.kind(), "ended");
    assert_eq!(records.last().unwrap().actor.to_string(), scene.last_run());
    let sorted = |text: &str| {
        let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&ran.stdout), sorted(&scene.provost(&["logs", "last", "--json"]).stdout));
}

#[test]
fn a_goal_comes_from_standard_input_or_a_file_too() {
    let scene = Scene::scripted("answers: [{ expect: { contains: a goal of two lines }, text: heard }]");
    scene.write("work/goal.txt", "hear\na goal of two lines\n");
    let from_file = scene.provost(&["run", "--file", "goal.txt"]);
    assert_eq!((from_file.status, from_file.stdout.as_str()), (0, "heard\n"), "{from_file:?}");
    for args in [&["run", "-"][..], &["run", "--stdin"]] {
        let input = std::fs::File::open(scene.path("work/goal.txt")).unwrap();
        let ran = scene.command(args).stdin(input).output().unwrap();
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), "heard\n");
    }
}

#[test]
fn a_reader_that_leaves_doesnt_disturb() {
    let scene = rich();
    let mut command = std::process::Command::new("sh");
    command
        .arg("-c")
        .arg(r#""$PROVOST" run x --json | head -n 1 > first"#)
        .env("PROVOST", env!("CARGO_BIN_EXE_provost"));
    command
        .current_dir(scene.path("work"))
        .env("HOME", scene.path("home"))
        .env("PROVOST_STATE_DIR", scene.path("state"));
    assert!(command.status().unwrap().success());
    until("the run has ended", || scene.provost(&["ps"]).stdout.contains("completed").then_some(()));
}

#[test]
fn the_log_of_another_processes_run_is_followed_to_its_end() {
    let script = "
answers:
  - tools: [{ shell: { command: 'echo $$ > child; while [ ! -e go ]; do sleep 0.02; done' } }]
  - text: went
";
    let scene = Scene::scripted(script);
    let running = scene.start(&["run", "wait"]);
    line_in(&scene.path("work/child"));
    let following = scene.start(&["logs", "last", "-f", "--json"]);
    let lines = scene.start(&["logs", "last", "--follow"]);
    scene.write("work/go", "");
    assert_eq!(running.end().status, 0);
    let (followed, lines) = (following.end(), lines.end());
    assert_eq!((followed.status, lines.status), (0, 0));
    assert_eq!(
        followed.stdout.lines().count(),
        scene.provost(&["logs", "last", "--json"]).stdout.lines().count()
    );
    assert!(followed.stdout.lines().last().unwrap().contains(r#""type":"ended""#));
    assert!(lines.stdout.lines().last().unwrap().ends_with("completed, not verified"), "{}", lines.stdout);
}

#[test]
fn a_log_is_a_line_an_entry() {
    let scene = rich();
    scene.provost(&["run", "Repair it"]);
    let log = scene.provost(&["logs", "last"]).stdout;
    // Entries of two logs may have the same time or not.
    let of = |who: &str| {
        let lines = log.lines().map(|line| &line[22..]).filter(|line| line.starts_with(who));
        lines
            .filter(|line| !line.contains("budget_reserved"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let lines = of("run") + &of("0");
    expect![[r#"
        run     1  run_started         RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work · Repair it
        run     3  budget_charged      call 1: 1,000 tokens in, 20 out, $0.00
        run     5  budget_charged      call 2: 0 tokens in, 0 out, $0.00
        run     7  budget_charged      call 3: 1,100 tokens in, 20 out, $0.00
        run     9  budget_charged      call 4: 1,200 tokens in, 20 out, $0.00
        run    11  budget_charged      call 5: 1,300 tokens in, 20 out, $0.00
        run    13  budget_charged      call 6: 1,400 tokens in, 20 out, $0.00
        run    14  ended               completed (verdict PASS), verified
        0       1  session_started     script:/FOLDER/work/agent.yaml with 11 tools
        0       2  model_called        turn 1, call 1
        0       3  assistant_message   I'll look around.
        0       4  tool_started        list_dir
        0       5  tool_started        read_file missing.rs
        0       6  tool_finished       list_dir (TIME)
        0       7  tool_finished       read_file missing.rs (TIME) · `missing.rs` doesn't exist
        0       8  turn_ended          turn 1, 2 tool calls
        0       9  model_called        turn 2, call 2
        0      10  retry               rate limited (429): slow down; again in TIME
        0      11  model_called        turn 2, call 3, attempt 2
        0      12  assistant_message   asks for 1 tool
        0      13  tool_started        update_plan 1/2 repair
        0      14  tool_finished       update_plan 1/2 repair (TIME)
        0      15  turn_ended          turn 2, 1 tool call
        0      16  model_called        turn 3, call 4
        0      17  assistant_message   asks for 1 tool
        0      18  tool_started        shell echo out; exit 3
        0      19  tool_finished       shell echo out; exit 3 (TIME) · exit status 3
        0      20  turn_ended          turn 3, 1 tool call
        0      21  model_called        turn 4, call 5
        0      22  assistant_message   I think I am done. …
        0      23  stop_verdicts       stop hooks say no: second look (TIME) · second look: warning: unused
        0      24  system_item         sent back to work with the stop hooks' reasons
        0      25  turn_ended          turn 4, 0 tool calls
        0      26  model_called        turn 5, call 6
        0      27  assistant_message   Really done. …
        0      28  stop_verdicts       stop hooks agree: second look (TIME)
        0      29  turn_ended          turn 5, 0 tool calls
        0      30  ended               completed (verdict PASS), verified
    "#]]
    .assert_eq(&scene.stable(&lines));
}

#[test]
fn words_of_the_command_line_that_are_not_understood_are_shown_as_they_are() {
    let said = Scene::new().provost(&["check", "a\u{9b}31m\u{202e}b\u{200b}"]);
    assert_eq!(said.status, 2, "{said:?}");
    assert!(said.stderr.contains("'a\\u{9b}31m\\u{202e}b\\u{200b}'"), "{said:?}");
}
