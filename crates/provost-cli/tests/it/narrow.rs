//! Tables on a narrow terminal.

use crate::on_terminal::program_on_terminal;
use crate::support::Scene;

/// The longest line of the tables of a command on a terminal of this many columns: those with wide gaps. What `explain`
/// says of the run itself is no table, and goes on in the next line of the terminal.
fn widest(scene: &Scene, columns: u32, command: &str) -> (usize, String) {
    let line = format!("stty cols {columns}; \"$PROVOST\" {command}");
    let shown = program_on_terminal(scene, &["sh", "-c", &line], &[]).stdout;
    let is_of_table = |line: &&str| {
        let is_head = command.starts_with("explain") && !line.starts_with(' ');
        line.trim_start().contains("  ") && !is_head
    };
    let widths = shown.lines().filter(is_of_table).map(|line| line.chars().count());
    (widths.max().unwrap_or_default(), shown)
}

#[test]
fn cost_models_and_explain_fit_in_forty_columns_and_leave_nothing_out_in_eighty() {
    let scene = Scene::scripted(
        "answers: [{ tools: [list_dir] }, { tools: [{ spawn_agent: { goal: a longer text } }] }, { text: done }]\n\
         agents:\n  - goal: a longer text\n    answers: [{ text: well }]\n",
    );
    assert_eq!(scene.provost(&["run", "look"]).status, 0);
    for command in ["cost last", "cost", "models anthropic", "models", "explain last"] {
        let (width, shown) = widest(&scene, 40, command);
        assert!((10..=40).contains(&width), "{command}: {width}\n{shown}");
    }
    for (command, heads) in [
        ("cost last", &["CALLS", "INPUT", "CACHED", "WRITTEN", "OUTPUT", "COST"][..]),
        ("models anthropic", &["WINDOW", "ANSWER", "INPUT", "CACHED", "OUTPUT", "FROM"]),
        ("explain last", &["SET TO", "REACHED", "CONSULTED", "DECIDED"]),
    ] {
        let (_, shown) = widest(&scene, 80, command);
        assert!(heads.iter().all(|head| shown.contains(head)), "{command}: {shown}");
    }
}
