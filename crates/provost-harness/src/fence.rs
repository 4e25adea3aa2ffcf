//! The fence around everything that a judge, or an agent before its goal, is shown and that Provost didn't write itself.
//!
//! Each line of such a text has a label of Provost's and a bar before it: `output| 3 tests passed`. Provost's own
//! lines have no bar. So there is no fence to be closed: whatever a text says, in whatever language, none of its
//! lines can look like one of Provost's, and each line shows its origin, however long the text. A fence with an
//! end marker, even an unguessable one, would have to be remembered by the model over thousands of lines; a text
//! in JSON would be as safe, but code and test results are hard to read in it.
//!
//! Characters that would make a line look like something else are escaped as `\u{…}`: those that break lines in
//! some places but not in others, that change the direction of writing, that are invisible, and the first
//! character of model servers' end-of-message marks. A backslash before `u{` is escaped too, so that the text can
//! be restored.

/// The label before the lines of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Condition,
    Task,
    Told,
    Summary,
    Hook,
    Says,
    File,
    Diff,
    Tool,
    Input,
    Output,
    Begun,
    Pending,
    Claim,
    Name,
    Rules,
    Skill,
}

impl Label {
    const fn word(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::Task => "task",
            Self::Told => "told",
            Self::Summary => "summary",
            Self::Hook => "hook",
            Self::Says => "says",
            Self::File => "file",
            Self::Diff => "diff",
            Self::Tool => "tool",
            Self::Input => "input",
            Self::Output => "output",
            Self::Begun => "begun",
            Self::Pending => "pending",
            Self::Claim => "claim",
            Self::Name => "name",
            Self::Rules => "rules",
            Self::Skill => "skill",
        }
    }

    /// `text` with the fence, each of its lines terminated. An empty text is one empty line.
    pub(crate) fn quote(self, text: &str) -> String {
        let mut quoted = String::with_capacity(text.len().saturating_mul(2));
        for line in text.split('\n') {
            self.quote_line_into(line, &mut quoted);
        }
        quoted
    }

    /// `text` with the fence as one line, whatever it contains.
    pub(crate) fn quote_line(self, text: &str) -> String {
        let mut quoted = String::with_capacity(text.len().saturating_mul(2));
        self.quote_line_into(text, &mut quoted);
        quoted
    }

    fn quote_line_into(self, line: &str, quoted: &mut String) {
        quoted.push_str(self.word());
        quoted.push('|');
        if !line.is_empty() {
            quoted.push(' ');
            spell(line, quoted);
        }
        quoted.push('\n');
    }
}

/// Model servers' marks for the end of a message or the start of another, regardless of case. Those with `<|` are
/// handled separately.
const TEMPLATE_MARKS: [&str; 22] = [
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<<sys>>",
    "<</sys>>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "[inst]",
    "[/inst]",
    "[system_prompt]",
    "[/system_prompt]",
    "[tool_calls]",
    "[tool_results]",
];

/// `text` as one line with escapes for everything that would make it look like something else.
pub(crate) fn spelled(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    spell(text, &mut line);
    line
}

/// Appends `line` with escapes for everything that would make it look like something else.
fn spell(line: &str, spelled: &mut String) {
    for (at, character) in line.char_indices() {
        let rest = line.get(at..).unwrap_or_default();
        if is_hidden(character) || begins_mark(character, rest) || rest.starts_with("\\u{") {
            // Rust's escape syntax.
            spelled.extend(character.escape_unicode());
        } else {
            spelled.push(character);
        }
    }
}

fn begins_mark(character: char, rest: &str) -> bool {
    if !matches!(character, '<' | '[') {
        return false;
    }
    let is_mark =
        |mark: &&str| rest.get(..mark.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(mark));
    // The second bar is the full-width one of some vendors' marks.
    rest.starts_with("<|") || rest.starts_with("<\u{ff5c}") || TEMPLATE_MARKS.iter().any(is_mark)
}

/// Whether a character is invisible, or changes how others are displayed: Unicode's control and format characters,
/// line separators, ignorable characters, and variation selectors except the one for emoji.
fn is_hidden(character: char) -> bool {
    if character == '\t' {
        return false;
    }
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0e}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
