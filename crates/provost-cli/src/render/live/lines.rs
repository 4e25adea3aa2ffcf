//! An entry in words as lines of a terminal: marked, coloured, wrapped.

use console::{Style, measure_text_width};

use crate::render::saying::{ChangedLine, Saying, Tag};

/// The columns before a mark and before what the first agent says: room for the number of its turn.
pub(super) const GUTTER: usize = 3;
const INDENT: &str = "   ";
const TEXT: &str = "     ";
const UNDER: &str = "       ";

/// The lines of a saying, marked, coloured and wrapped to `width`; each begins with its agent, unless that is the
/// root.
pub(super) fn lines(saying: &Saying, width: usize) -> String {
    let Some(who) = &saying.who else { return text(saying, width) };
    let who = format!("{INDENT}{who} │");
    let text = text(saying, width.saturating_sub(measure_text_width(&who)));
    let who = Style::new().for_stderr().cyan().apply_to(who).to_string();
    let lines = text.trim_start_matches('\n').lines();
    lines
        .map(|line| format!("{who}{}", line.strip_prefix("  ").unwrap_or(line)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn text(saying: &Saying, width: usize) -> String {
    let plain = Style::new().for_stderr();
    let (mark, style) = match saying.tag {
        Tag::Agent => return format!("\n{}", wrapped(saying.text(), INDENT, width)),
        Tag::Run => ("▸", plain.clone().bold()),
        Tag::User => ("»", plain.clone().cyan()),
        Tag::Provost | Tag::Detail | Tag::Tool => ("·", plain.clone().dim()),
        Tag::Ok => ("✓", plain.clone().green()),
        Tag::Failed => ("✗", plain.clone().red()),
        Tag::HooksAgree => ("◆", plain.clone().green()),
        Tag::HooksObject => ("◆", plain.clone().yellow()),
        Tag::Asks => ("?", plain.clone().yellow().bold()),
        Tag::Retry => ("↻", plain.clone().yellow()),
        Tag::Goal => ("◎", plain.clone().cyan()),
        Tag::Budget => ("■", plain.clone().yellow()),
    };
    let text = wrapped(saying.text(), TEXT, width);
    let mut out = format!("{INDENT}{} {}", style.apply_to(mark), text.trim_start());
    for line in saying.changes() {
        out.push('\n');
        out.push_str(&changed(line, width));
    }
    for line in saying.more() {
        let line = wrapped(line, UNDER, width);
        out.push('\n');
        out.push_str(&plain.clone().dim().apply_to(line).to_string());
    }
    out
}

/// A line of a diff, cut to the width: it shows what kind of change it is, and the whole is in `provost diff`.
fn changed(line: &ChangedLine, width: usize) -> String {
    let plain = Style::new().for_stderr();
    let (text, style) = match line {
        ChangedLine::Added { number, text } => (format!("{number:>4} + {text}"), plain.green()),
        ChangedLine::Removed { number, text } => (format!("{number:>4} - {text}"), plain.red()),
        ChangedLine::More(count) => (format!("… {count} more lines"), plain.dim()),
    };
    let text = console::truncate_str(&text.replace('\t', "    "), width.saturating_sub(TEXT.len()), "…")
        .into_owned();
    format!("{TEXT}{}", style.apply_to(text))
}

pub(super) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width.max(20)).initial_indent(indent).subsequent_indent(indent);
    let expanded = text.replace('\t', "    ");
    expanded.lines().map(|line| textwrap::fill(line, &options)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::lines;
    use crate::render::saying::{Saying, Tag};

    #[test]
    fn lines_are_marked_wrapped_and_safe() {
        console::set_colors_enabled_stderr(false);
        let said =
            Saying::kept(Tag::Agent, "I'll look around first, then run\nthe \u{1b}[31mtests\u{1b}[0m.");
        let failed = Saying::kept(Tag::Failed, "shell cargo test --workspace --all-features (12.3s)");
        let failed = failed.with(["exit status 101".to_owned(), "\ttests/a.rs".to_owned()]);
        let shown = [lines(&said, 30), lines(&failed, 30)].join("\n");
        let shown = shown.lines().map(|line| format!("|{line}\n")).collect::<String>();
        expect![[r#"
            |
            |   I'll look around first,
            |   then run
            |   the tests.
            |   ✗ shell cargo test
            |     --workspace --all-
            |     features (12.3s)
            |       exit status 101
            |           tests/a.rs
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn what_a_sub_agent_says_stands_behind_its_name_on_every_line() {
        console::set_colors_enabled_stderr(false);
        let who = Some("3 reviewer".to_owned());
        let said = Saying::kept(Tag::Agent, "I'll look around first.\n\nThen more.").of(who.clone());
        let failed = Saying::kept(Tag::Failed, "shell cargo test --workspace (12.3s)").of(who);
        let shown = [lines(&said, 34), lines(&failed.with(["exit status 101".to_owned()]), 34)].join("\n");
        let shown = shown.lines().map(|line| format!("|{line}\n")).collect::<String>();
        expect![[r#"
            |   3 reviewer │ I'll look around
            |   3 reviewer │ first.
            |   3 reviewer │ 
            |   3 reviewer │ Then more.
            |   3 reviewer │ ✗ shell cargo
            |   3 reviewer │   test
            |   3 reviewer │   --workspace
            |   3 reviewer │   (12.3s)
            |   3 reviewer │     exit status
            |   3 reviewer │     101
        "#]]
        .assert_eq(&shown);
    }
}
