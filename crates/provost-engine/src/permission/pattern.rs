//! Patterns: `tool` or `tool(PATTERN)`.

use std::path::Path;

use provost_event::{Json, ToolIdentity, ToolSubject};

use super::call::{Call, Subject};
use super::glob::Glob;
use super::names::of_command_lines;
use super::path::{Case, NormalizedPath, floats};
use super::shell::ShellGlob;

/// Maximum bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// A pattern can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` {complaint}")]
pub struct PatternError {
    /// The pattern as written; cut if it is very long.
    pub pattern: String,
    /// The error and the remedy, to follow the pattern in a message.
    pub complaint: &'static str,
}

/// Matches tool calls: `tool`, or `tool(PATTERN)` for those with certain arguments.
///
/// `tool` is one of the tool's names ([`ToolIdentity::names`]), with `*` for any text; `*` alone is every tool, and
/// `tool(*)` is the same as `tool`. What PATTERN is compared to depends on the [subject](ToolSubject) of the tool. In
/// all of them `*` matches any text, `\*` a star, and all other characters are literal.
///
/// - a command: one simple command. ` *` at the end also matches no arguments, `git push:*` is `git push *`, runs of
///   blanks count as one space.
/// - typed text: the same, for the command line that is started, or the text that is typed; for other calls their
///   arguments as JSON, as below.
/// - a path: that path, relative to the workspace, or absolute if it begins with `/`. `*` stays within
///   a name, `**` is any number of folders, `/` at the end is everything in the folder. A single name without `/`,
///   and the part after `**/`, match in every folder (of the workspace, for paths in it); but what allows and has a
///   single name without `*` means the one in the workspace itself, and none of these allows anything elsewhere.
///   `~/` is the home directory of any user, since the user's own isn't known here.
/// - a URL: that, as written.
/// - none of these: all arguments as JSON without blanks, with sorted field names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    tool: Glob,
    argument: Option<Argument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument {
    text: String,
    shell: ShellGlob,
    plain: Glob,
}

/// How certainly a pattern matches a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touch {
    No,
    /// It depends on facts that are only known when the call is made.
    Maybe,
    Yes,
}

/// Why a pattern can match no call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternMismatch {
    /// It is compared to the arguments as a JSON object, and can't begin with `{` and end with `}`.
    NotJson,
    /// It joins commands (`|`, `;`, `&&`), and is compared to each of them by itself.
    SeveralCommands,
    /// It begins with `^`, as regular expressions do.
    RegularExpression,
    /// It is a path with blanks around it.
    Blanks,
    /// It has `{a,b}` in a path, which stands for itself.
    Alternatives,
}

impl PatternMismatch {
    /// Why, to follow the pattern in a message; `tool` is the tool's name in it.
    #[must_use]
    pub fn why(self, tool: &str) -> String {
        match self {
            Self::NotJson => return format!("is compared to the arguments of `{tool}` as JSON"),
            Self::SeveralCommands => {
                "is compared to each command of a line by itself, without what joins them"
            }
            Self::RegularExpression => {
                "begins with `^`, which stands for itself: patterns aren't regular expressions"
            }
            Self::Blanks => "has blanks around its path",
            Self::Alternatives => "has `{`, `,` and `}`, which stand for themselves",
        }
        .to_owned()
    }

    /// What to write in its place.
    #[must_use]
    pub fn remedy(self, tool: &str) -> String {
        match self {
            Self::NotJson => {
                return format!(
                    "write `{tool}` for all of its calls, or a pattern such as `{tool}({{*\"name\":\"value\"*}})`"
                );
            }
            Self::SeveralCommands => "write a pattern for each of the commands",
            Self::RegularExpression => "write it without; `*` is any text",
            Self::Blanks => "write it without them",
            Self::Alternatives => "write a pattern for each of the paths",
        }
        .to_owned()
    }
}

/// Whether there is `|`, `;` or `&&` outside of quotes.
fn joins_commands(text: &str) -> bool {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in text.char_indices() {
        let is_escaped = before == '\\';
        match (quote, c) {
            (_, _) if is_escaped => {}
            (Some(open), c) => quote = quote.filter(|_| c != open),
            (None, '\'' | '"') => quote = Some(c),
            (None, ';') => return true,
            (None, '|') if before != '>' => return true,
            (None, '&') if text[at..].starts_with("&&") => return true,
            (None, _) => {}
        }
        before = if is_escaped { ' ' } else { c };
    }
    false
}

/// Whether there is `{`, `,` and `}` in this order.
fn has_alternatives(text: &str) -> bool {
    let inner = text.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    inner.is_some_and(|(inner, _)| inner.contains(','))
}

/// Whether the argument of a pattern for `tool` holds another such pattern, as in `rm *), shell(mv *`.
fn holds_another(tool: &str, argument: &str) -> bool {
    argument.match_indices(')').any(|(at, _)| {
        let after = argument.get(at + 1..).unwrap_or_default();
        let next = after.trim_start_matches([',', ';', ' ']);
        next.len() < after.len() && next.strip_prefix(tool).is_some_and(|rest| rest.starts_with('('))
    })
}

/// Whether a pattern, and no single word, is in quotes: `'rm *'`.
fn is_quoted(argument: &str) -> bool {
    [('\'', '\''), ('"', '"'), ('\u{201c}', '\u{201d}')].into_iter().any(|(open, close)| {
        let inner = argument.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner| inner.contains(" *") && !inner.contains([open, close]))
    })
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is empty or longer than 64 KiB, names no tool, its parenthesis is empty or isn't closed at its end, or
    /// what is in it can match no call: several patterns, or one in quotes.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let fail = |complaint| Err(PatternError { pattern: text.chars().take(200).collect(), complaint });
        let trimmed = text.trim();
        if text.len() > PATTERN_BYTES_MAX {
            return fail("is too long: at most 64 KiB");
        }
        let (tool, argument) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(argument) => (tool, Some(argument)),
                None => return fail("isn't closed: write `)` at its end"),
            },
        };
        if argument == Some("") {
            return fail(
                "has nothing in its parentheses: write `tool` for all of its calls, or `tool(PATTERN)`",
            );
        }
        if tool.is_empty() {
            return fail("names no tool: write `tool` or `tool(PATTERN)`, or `*` for every tool");
        }
        if tool.contains(|c: char| c.is_whitespace() || c == ')') {
            return fail("isn't one: write `tool` or `tool(PATTERN)`");
        }
        if argument.is_some_and(|argument| holds_another(tool, argument)) {
            return fail("holds several patterns: write each as an item of its own");
        }
        if argument.is_some_and(is_quoted) {
            return fail("is in quotes, which calls don't have: write it without");
        }
        let argument = argument.filter(|argument| *argument != "*").map(Argument::new);
        Ok(Self { tool: Glob::new(tool), argument })
    }

    /// All calls of the tool of an unreadable pattern; of all tools if the tool can't be read either.
    pub(super) fn widest_of(text: &str) -> Self {
        let tool = text.trim().split('(').next().unwrap_or_default();
        let all = || Self { tool: Glob::new("*"), argument: None };
        Self::parse(tool).unwrap_or_else(|_| all())
    }

    /// Whether any part of a call matches, as `ask`, `deny` and the `if` of hooks use it.
    ///
    /// A command counts as matched if its text doesn't show all that it runs, and a search or listing if anything
    /// below its folder may match. For paths, upper and lower case are the same, and a pattern for a folder
    /// includes its contents.
    #[must_use]
    pub fn touches(&self, tool: &ToolIdentity, input: &Json, workspace: &Path) -> bool {
        let call = Call::read(tool, input, workspace);
        self.names(tool) && (self.touch(&call) > Touch::No || call.unclear().is_some())
    }

    /// Whether it is for calls of this tool, whatever their arguments.
    #[must_use]
    pub fn names(&self, tool: &ToolIdentity) -> bool {
        tool.names().any(|name| self.tool.matches(name))
    }

    /// Whether it is for calls of the tool with this name, and not also for those of others.
    pub(super) fn names_exactly(&self, name: &str) -> bool {
        self.tool.literal().is_some_and(|tool| tool == name)
    }

    /// Why it can match no call of this tool; `None` if it can.
    #[must_use]
    pub fn mismatch(&self, tool: &ToolIdentity) -> Option<PatternMismatch> {
        let argument = self.argument.as_ref()?;
        let text = argument.text.as_str();
        match tool.subject {
            ToolSubject::Own | ToolSubject::Opaque => {
                (!argument.plain.can_enclose('{', '}')).then_some(PatternMismatch::NotJson)
            }
            ToolSubject::Command { .. } | ToolSubject::Typed { .. } => {
                let is_several = argument.shell.literal().is_none() && joins_commands(text);
                if is_several {
                    return Some(PatternMismatch::SeveralCommands);
                }
                text.starts_with('^').then_some(PatternMismatch::RegularExpression)
            }
            ToolSubject::Path { .. } | ToolSubject::Patch { .. } if text.starts_with('^') => {
                Some(PatternMismatch::RegularExpression)
            }
            ToolSubject::Path { .. } | ToolSubject::Patch { .. } if text.trim() != text => {
                Some(PatternMismatch::Blanks)
            }
            ToolSubject::Path { .. } | ToolSubject::Patch { .. } if has_alternatives(text) => {
                Some(PatternMismatch::Alternatives)
            }
            ToolSubject::Path { .. } | ToolSubject::Patch { .. } | ToolSubject::Url { .. } => None,
        }
    }

    /// Whether it is for command lines, whatever the tool that runs them is called.
    pub(super) fn names_command_lines(&self) -> bool {
        of_command_lines().any(|name| self.tool.matches(name))
    }

    /// Whether it is for command lines only.
    pub(super) fn names_command_lines_only(&self) -> bool {
        self.tool.literal().is_some_and(|tool| of_command_lines().any(|name| name == tool))
    }

    /// Whether it compares arguments.
    pub(super) fn is_bound(&self) -> bool {
        self.argument.is_some()
    }

    /// Whether its paths begin at a certain folder.
    pub(super) fn says_where(&self) -> bool {
        self.argument.as_ref().is_some_and(|argument| !floats(&argument.text, Case::Counts))
    }

    /// Whether it begins at a home directory, which isn't known here.
    pub(super) fn is_of_home(&self) -> bool {
        self.argument.as_ref().is_some_and(|argument| argument.text.starts_with("~/"))
    }

    /// Whether any part of a call of its tool matches.
    pub(super) fn touch(&self, call: &Call<'_>) -> Touch {
        let Some(argument) = &self.argument else { return Touch::Yes };
        let sure = |yes: bool| if yes { Touch::Yes } else { Touch::No };
        match &call.subject {
            Subject::Shell(script) if argument.shell.touches(script) => Touch::Yes,
            Subject::Shell(script)
                if script.commands.iter().any(|one| argument.shell.may_touch_command(one)) =>
            {
                Touch::Maybe
            }
            Subject::Shell(_) => Touch::No,
            Subject::Path { place, walks } => {
                let meeting = place.meets(&argument.text, call.workspace, Case::Folds);
                sure(meeting.within || (*walks && meeting.above))
            }
            Subject::Files(files) => sure(
                files.iter().any(|place| place.meets(&argument.text, call.workspace, Case::Folds).within),
            ),
            Subject::Text(text) => sure(argument.plain.matches(text)),
            // The tool will reject the call; until then it may be anything.
            Subject::Unreadable => Touch::Yes,
        }
    }

    /// Which of a call's parts are covered: one flag for each simple command, a single one for other calls.
    pub(super) fn covers(&self, call: &Call<'_>) -> Vec<bool> {
        let Some(argument) = &self.argument else { return vec![true; call.parts()] };
        match &call.subject {
            Subject::Shell(script) => {
                let all = script.unclear.is_none() && argument.shell.literal() == Some(script.whole.as_str());
                match script.commands.as_slice() {
                    [] => vec![all],
                    commands if all => vec![true; commands.len()],
                    commands => argument.shell.covers(commands),
                }
            }
            Subject::Path { place, .. } => {
                let home = self.is_of_home();
                vec![!home && place.meets(&argument.text, call.workspace, Case::Counts).exact]
            }
            Subject::Files(files) => {
                let home = self.is_of_home();
                let covers = |place: &NormalizedPath| {
                    !home && place.meets(&argument.text, call.workspace, Case::Counts).exact
                };
                files.iter().map(covers).collect()
            }
            Subject::Text(text) => vec![argument.plain.matches(text)],
            Subject::Unreadable => vec![false],
        }
    }

    /// Whether it matches, certainly or possibly, the simple command with this index.
    pub(super) fn touches_part(&self, call: &Call<'_>, part: usize) -> bool {
        match (&self.argument, &call.subject) {
            (Some(argument), Subject::Shell(script)) => match script.commands.get(part) {
                Some(_) if argument.shell.touches_whole(script) => true,
                Some(command) => {
                    argument.shell.touches_command(command) || argument.shell.may_touch_command(command)
                }
                None => self.touch(call) > Touch::No,
            },
            (Some(argument), Subject::Files(files)) => files
                .get(part)
                .is_some_and(|place| place.meets(&argument.text, call.workspace, Case::Folds).within),
            _ => self.touch(call) > Touch::No,
        }
    }

    /// How narrow it is: the number of literal characters of its PATTERN, then of its tool.
    pub(super) fn specificity(&self) -> (usize, usize) {
        let argument = self.argument.as_ref().map_or(0, |argument| argument.shell.literal_chars());
        (argument, self.tool.literal_chars())
    }
}

impl Argument {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), shell: ShellGlob::new(text), plain: Glob::new(text) }
    }
}
