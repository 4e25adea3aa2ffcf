//! The screens, at the sizes that people have.

use expect_test::{Expect, expect};

use super::stage::Stage;
use crate::draw::{Colours, Glyphs, Look};

const ASKS: &str = "
answers:
  - text: Everything is green, I push it.
    tools: [{ shell: { command: git push origin ledger-micros } }]
    usage: { input: 30000, output: 900 }
  - text: 'It is pushed. VERDICT: PASS'
";
const DONE: &str =
    "answers: [{ text: 'The flag is there. VERDICT: PASS', usage: { input: 18000, output: 200 } }]";
const SAYS_FAIL: &str = "answers: [{ text: 'The build still hangs. VERDICT: FAIL' }]";
const CUT_SHORT: &str = "
answers:
  - { tools: [{ read_file: { path: notes.md } }], usage: { input: 900, output: 90 } }
  - { text: never said }
";
const TREE: &str = "
answers:
  - tools: [{ tests: { goal: Cover the parser. } }]
  - { text: 'Both done. VERDICT: PASS' }
agents:
  - goal: Cover the parser
    answers: [{ text: 'Covered. VERDICT: PASS' }]
";

/// Runs of most groups, in three folders.
async fn evening(columns: u16, rows: u16) -> Stage {
    evening_with(Stage::new(columns, rows)).await
}

async fn evening_with(mut stage: Stage) -> Stage {
    let agent = stage.agent("till", DONE);
    stage.ran(1, "Add --json to till report", agent).await;
    let agent = stage.agent("till", SAYS_FAIL);
    stage.ran(2, "Find out why the Windows build hangs", agent).await;
    let agent = stage.agent("infra", CUT_SHORT).builtin_tools().allow("read_file");
    let agent = agent.budget(provost::Budget::default().tokens(1_000));
    stage.ran(3, "Rotate the staging certificates", agent).await;
    let agent = stage.agent("atlas-api", ASKS).builtin_tools().ask("shell");
    let agent = agent.budget(provost::Budget::default().tokens(100_000));
    let goal = "Keep the ledger in integer micro-dollars; every test passes\nand more";
    stage.asks(4, goal, agent).await;
    stage.read().await;
    stage
}

fn check(shown: &str, expected: Expect) {
    expected.assert_eq(shown);
}

#[tokio::test]
async fn all_runs_at_80_by_24() {
    check(
        &evening(80, 24).await.screen(),
        expect![[r#"
        Provost  ◆ 1 needs you · 1 agent at work                  $0.00 in runs of today

        NEEDS YOU 1
        ▌◆ Keep the ledger in integer micro-… atlas-api  approval 1m       $0.00 ━━────
        ▌  it asks: git push origin ledger-micros
        FINISHED, NOT LOOKED AT 2
         ✓ • Find out why the Windows build … till       says FAIL 3m      $0.00
         ✓ • Add --json to till report        till       finished 4m       $0.00
        FAILED 1
         ✗ Rotate the staging certificates    infra      budget 2m         $0.00 ──────













        a approve  Enter open  s say  p pause  x cancel  n new run  i inbox  ? keys
    "#]],
    );
}

#[tokio::test]
async fn all_runs_and_one_of_them_at_200_by_50() {
    check(
        &evening(200, 50).await.screen(),
        expect![[r#"
            Provost  ◆ 1 needs you · 1 agent at work · 4 runs in 3 folders                                                                                                                    $0.00 in runs of today

            NEEDS YOU 1                                   FOLDER         STATE             SINCE      TURNS    SPENT OF LIMIT │ ◆ approval 1m · Keep the ledger in integer micro-dollars; every test passes …
            ▌◆ Keep the ledger in integer micro-dollars;… atlas-api      approval             1m          1    $0.00 ━━━───── │ 000000000004 · /tmp/.tmpFOLDER/atlas-api · scripted
            ▌  it asks: git push origin ledger-micros                                                                         │
                                                                                                                              │ money  $0.00 no limit                     tokens 30.9k of 100.0k ━━━━──────
            FINISHED, NOT LOOKED AT 2                                                                                         │ time   0s no limit                        agents 1 of 8 slots
             ✓ • Find out why the Windows build hangs     till           says FAIL            3m          1    $0.00          │
             ✓ • Add --json to till report                till           finished             4m          1    $0.00          │ AGENTS 1
                                                                                                                              │  ◆ 0 root           needs approval, turn 1                                     $0.00
            FAILED 1                                                                                                          │
             ✗ Rotate the staging certificates            infra          budget               2m          0    $0.00 ──────── │ LIVE
                                                                                                                              │ 1  Everything is green, I push it.
                                                                                                                              │    ◆ shell git push origin ledger-micros                              needs approval
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │
                                                                                                                              │

            a approve  Enter open  s say  p pause  x cancel  n new run  i inbox  / filter  t terminal  f fork  o idle runs  j k move  q leave  ? keys
        "#]],
    );
}

#[tokio::test]
async fn a_run_at_80_by_24() {
    let mut stage = evening(80, 24).await;
    stage.keys("\n").await;
    check(
        &stage.screen(),
        expect![[r#"
            Provost  ◆ 1 needs you · 1 agent at work                  $0.00 in runs of today

            ◆ approval 1m · Keep the ledger in integer micro-dollars; every test passes …
            000000000004 · /tmp/.tmpFOLDER/atlas-api · scripted
            money  $0.00 no limit                   tokens 30.9k of 100.0k ━━━━──────
            time   0s no limit                      agents 1 of 8 slots
            ◆ it asks: git push origin ledger-micros  a answers
            [1 live]  2 agents   3 goal   4 cost   5 changes   agent 0
            1  Everything is green, I push it.
               ◆ shell git push origin ledger-micros                          needs approval













            a approve  s say  p pause  x cancel  f fork  h l agent  j k scroll  ? keys
        "#]],
    );
}

#[tokio::test]
async fn a_question_at_80_by_24() {
    let mut stage = evening(80, 24).await;
    stage.keys("a").await;
    check(
        &stage.screen(),
        expect![[r#"
        Provost  ◆ 1 needs you · 1 agent at work                  $0.00 in runs of today

        ▌◆ it asks: git push origin ledger-micros                     atlas-api      1m

        ◆ May the agent use shell?                                                1 of 1
          Keep the ledger in integer micro-dollars; every test passes … · atlas-api
          asked 1m ago · an answer counts for 59m
          git push origin ledger-micros

        why you  `ask shell` requires approval
        covers   with r and A: shell(git push origin ledger-micros); a deny rule still w
                 ins











        a once  r this run  A always  d deny  l later  v whole text  ? keys
    "#]],
    );
}

#[tokio::test]
async fn all_keys_at_80_by_24() {
    let mut stage = evening(80, 24).await;
    stage.keys("?").await;
    check(
        &stage.screen(),
        expect![[r#"
        Provost ┌──────────────────────────────────────────────────────────────┐of today
                │ j k, arrows move; in a run: scroll                           │
        NEEDS YO│ Enter / Esc open / back                                      │
        ▌◆ Keep │ a           open the question; there: approve once           │ ━━────
        ▌  it as│ r           approve for this run                             │
        FINISHED│ A           approve for all runs: shows pattern, wants Enter │
         ✓ • Fin│ d           deny; asks for a reason                          │
         ✓ • Add│ l           later: the next question                         │
        FAILED 1│ v           whole text of a question                         │
         ✗ Rotat│ h l         in a run: the agent before, after                │ ──────
                │ 1-5         in a run: live, agents, goal, cost, changes      │
                │ o           fold, unfold: idle runs, outputs                 │
                │ s           say something to the agent                       │
                │ p           pause, or resume                                 │
                │ x           cancel; wants Enter                              │
                │ f           fork at what is shown last                       │
                │ n           new run                                          │
                │ t           terminal of an external agent; Ctrl-\ detaches   │
                │ i           inbox: the questions of all runs                 │
                │ /           filter: goal, folder, agent, state               │
                │ Ctrl-L      draw anew                                        │
                │ Ctrl-Z      to the shell; fg comes back                      │
                │ q, Ctrl-C   leave; runs go on                                │
        a approv└──────────────────────────────────────────────────────────────┘eys
    "#]],
    );
}

#[tokio::test]
async fn a_tree_of_agents_stands_in_its_order() {
    let mut stage = Stage::new(80, 24);
    let agent = stage.agent("till", TREE).sub_agent(provost::SubAgent::new("tests", "Writes tests."));
    stage.ran(1, "Cover all", agent).await;
    stage.read().await;
    stage.keys("\n2").await;
    let shown = stage.screen();
    assert!(shown.contains("AGENTS 2") && shown.contains("└ ✓ 1 tests"), "{shown}");
    stage.keys("l1").await;
    let shown = stage.screen();
    assert!(shown.contains("Covered.") && shown.contains("agent 1"), "{shown}");
}

#[tokio::test]
async fn without_colours_and_unicode_all_is_said() {
    let look = Look { glyphs: Glyphs::Ascii, colours: Colours::None };
    let mut stage = evening_with(Stage::with_look(80, 24, look)).await;
    let shown = stage.screen();
    assert!(shown.is_ascii(), "{shown}");
    assert!(shown.contains("! Keep the ledger") && shown.contains(">! Keep"), "{shown}");
    assert_eq!(stage.colours(), 0);
    assert!(evening(80, 24).await.colours() > 0);
}

#[tokio::test]
async fn every_size_is_drawn() {
    let mut stage = evening(80, 24).await;
    for keys in ["", "\n", "2", "3", "4", "5", "1", "i", "v", "?", "\u{1b}", "/x", "\u{1b}", "n"] {
        stage.keys(keys).await;
        for (columns, rows) in [(1, 1), (20, 6), (40, 10), (60, 24), (139, 60), (140, 12), (300, 100)] {
            stage.resize(columns, rows);
            stage.screen();
        }
    }
}

#[tokio::test]
async fn what_others_wrote_is_inert() {
    let hostile = "a\\x1b[2J\\u202eb\\u200b\\x07c";
    let script = format!(
        "answers: [{{ text: \"{hostile}\", tools: [{{ shell: {{ command: \"echo {hostile}\" }} }}] }}, {{ text: ok }}]"
    );
    let mut stage = Stage::new(80, 24);
    let agent = stage.agent("till", &script).builtin_tools().ask("shell");
    stage.asks(1, "a goal\u{1b}[31m\u{202e} \u{9b}2J", agent).await;
    stage.read().await;
    for keys in ["", "\n", "a", "v"] {
        stage.keys(keys).await;
        let shown = stage.screen();
        let is_bad = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}'));
        assert!(!shown.contains(is_bad), "{shown:?}");
    }
    let shown = stage.screen();
    assert!(shown.contains("echo a\\u{1b}[2J\\u{202e}b\\u{200b}\\u{7}c"), "all of it is shown: {shown}");
}

#[tokio::test]
async fn an_empty_store_says_how_to_begin() {
    let mut stage = Stage::new(80, 24);
    stage.read().await;
    assert!(stage.screen().contains("no runs yet: n starts one"), "{}", stage.screen());
    stage.keys("i").await;
    assert!(stage.screen().contains("Nothing waits for you. 0 agents are at work."), "{}", stage.screen());
}
