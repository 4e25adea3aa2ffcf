//! Reads a patch.
//!
//! The grammar is that of Codex's `apply_patch` (`codex-rs/core/src/tools/handlers/tool_apply_patch.lark`).

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Add { path: &'a str, content: String },
    Delete { path: &'a str },
    Update { path: &'a str, to: Option<&'a str>, hunks: Vec<Hunk<'a>> },
}

/// Lines that are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// A line above them, after `@@`.
    pub(super) below: Option<&'a str>,
    pub(super) lines: Vec<HunkLine<'a>>,
    /// Whether they are the last ones of the file.
    pub(super) at_end: bool,
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLine<'a> {
    Kept(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl<'a> HunkLine<'a> {
    /// The line, if the file has it before the change.
    pub(super) const fn before(&self) -> Option<&'a str> {
        match self {
            Self::Kept(line) | Self::Removed(line) => Some(line),
            Self::Added(_) => None,
        }
    }
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const HUNK: &str = "@@";

/// A patch's lines, the next one first, with their numbers.
struct Lines<'a> {
    ahead: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

impl<'a> Lines<'a> {
    fn peek(&mut self) -> Option<&'a str> {
        self.ahead.peek().map(|(_, line)| *line)
    }

    fn take_header(&mut self, header: &str) -> Option<&'a str> {
        let path = self.peek()?.trim().strip_prefix(header)?.trim();
        self.ahead.next();
        Some(path)
    }

    /// The next line, unless it begins another part.
    fn take_within(&mut self) -> Option<&'a str> {
        let line = self.peek().filter(|line| !line.starts_with("***"))?;
        self.ahead.next();
        Some(line)
    }

    fn objection(&mut self, what: &str) -> String {
        match self.ahead.peek() {
            Some((at, line)) => format!("line {} of the patch: {what} (is `{line}`)", at + 1),
            None => format!("the patch ends too early: {what}"),
        }
    }
}

/// The changes of a patch, in their order.
///
/// # Errors
/// What isn't as it must be, with its line.
pub(super) fn parse(text: &str) -> Result<Vec<Change<'_>>, String> {
    let mut lines = Lines { ahead: text.trim().lines().enumerate().peekable() };
    if lines.take_header(BEGIN) != Some("") {
        return Err(lines.objection(&format!("it must begin with `{BEGIN}`")));
    }
    let mut changes = Vec::new();
    while lines.take_header(END).is_none() {
        changes.push(change(&mut lines)?);
    }
    if lines.peek().is_some() {
        return Err(lines.objection(&format!("nothing may follow `{END}`")));
    }
    if changes.is_empty() {
        return Err("the patch changes nothing".to_owned());
    }
    Ok(changes)
}

fn change<'a>(lines: &mut Lines<'a>) -> Result<Change<'a>, String> {
    if let Some(path) = lines.take_header(ADD) {
        return Ok(Change::Add { path: named(path, ADD)?, content: added(lines)? });
    }
    if let Some(path) = lines.take_header(DELETE) {
        return Ok(Change::Delete { path: named(path, DELETE)? });
    }
    if let Some(path) = lines.take_header(UPDATE) {
        let to = lines.take_header(MOVE).map(|to| named(to, MOVE)).transpose()?;
        let hunks = hunks(lines)?;
        if hunks.is_empty() && to.is_none() {
            return Err(lines.objection(&format!("`{UPDATE} {path}` must be followed by changes")));
        }
        return Ok(Change::Update { path: named(path, UPDATE)?, to, hunks });
    }
    Err(lines.objection(&format!("it must be `{ADD} PATH`, `{UPDATE} PATH`, `{DELETE} PATH` or `{END}`")))
}

fn named<'a>(path: &'a str, header: &str) -> Result<&'a str, String> {
    if path.is_empty() { Err(format!("`{header}` must be followed by a path")) } else { Ok(path) }
}

fn added(lines: &mut Lines<'_>) -> Result<String, String> {
    let mut content = String::new();
    while let Some(line) = lines.peek().filter(|line| !line.starts_with("***")) {
        let Some(line) = line.strip_prefix('+') else {
            return Err(lines.objection("each line of a new file must begin with `+`"));
        };
        content.push_str(line);
        content.push('\n');
        lines.ahead.next();
    }
    Ok(content)
}

fn hunks<'a>(lines: &mut Lines<'a>) -> Result<Vec<Hunk<'a>>, String> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    loop {
        if let Some(hunk) = hunks.last_mut()
            && lines.take_header(END_OF_FILE).is_some()
        {
            hunk.at_end = true;
            continue;
        }
        let Some(line) = lines.peek().filter(|line| !line.starts_with("***")) else { break };
        if let Some(below) = line.strip_prefix(HUNK) {
            let below = below.strip_prefix(' ').unwrap_or(below);
            // `@@ -1,2 +3,4 @@` has numbers that say nothing.
            let is_numbers = below.starts_with('-') && below.ends_with(HUNK);
            let below = Some(below).filter(|below| !below.trim().is_empty() && !is_numbers);
            hunks.push(Hunk { below, ..Hunk::default() });
            lines.ahead.next();
            continue;
        }
        let line = hunk_line(line).ok_or_else(|| {
            lines.objection("each line of a change must begin with a space, `-` or `+`, or be `@@`")
        })?;
        if hunks.last().is_none_or(|hunk| hunk.at_end) {
            hunks.push(Hunk::default());
        }
        hunks.iter_mut().last().into_iter().for_each(|hunk| hunk.lines.push(line));
        lines.take_within();
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    Ok(hunks)
}

/// A line without its mark; an empty one is an empty line that is kept.
fn hunk_line(line: &str) -> Option<HunkLine<'_>> {
    match line.as_bytes().first() {
        None => Some(HunkLine::Kept("")),
        Some(b' ') => line.get(1..).map(HunkLine::Kept),
        Some(b'-') => line.get(1..).map(HunkLine::Removed),
        Some(b'+') => line.get(1..).map(HunkLine::Added),
        Some(_) => None,
    }
}
