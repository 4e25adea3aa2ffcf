//! The fence around everything that a judge is shown and that Provost didn't write itself.
//!
//! Each line of such a text stands behind a word of Provost's and a bar: `output| 3 tests passed`. Provost's own lines
//! have no bar. So there is no fence to be closed: whatever a text says, in whatever language, none of its lines can
//! look like one of Provost's, and each line tells by itself whose it is, however long the text. A fence with an end,
//! even with one that nobody can guess, would have to be remembered by the model over thousands of lines; a text in
//! JSON would keep just as tight, but nobody reads code and test results well in it.
//!
//! What would make a line look like something else is spelled out as `\u{…}`: characters that break lines in some
//! places but not in others, that turn the direction of writing, that can't be seen, and the first character of what
//! model servers take for the end of a message. A backslash before `u{` is spelled out too, so that the text can be
//! had back as it was.

/// What stands before the lines of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Condition,
    Task,
    Told,
    Summary,
    Hook,
    Says,
    File,
    Tool,
    Input,
    Output,
    Begun,
    Pending,
    Claim,
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
            Self::Tool => "tool",
            Self::Input => "input",
            Self::Output => "output",
            Self::Begun => "begun",
            Self::Pending => "pending",
            Self::Claim => "claim",
        }
    }

    /// `text` behind the fence, with a line end behind each of its lines. An empty text is one empty line.
    pub(super) fn quote(self, text: &str) -> String {
        let mut quoted = String::with_capacity(text.len().saturating_mul(2));
        for line in text.split('\n') {
            self.quote_line_into(line, &mut quoted);
        }
        quoted
    }

    /// `text` behind the fence as one line, whatever it has in it.
    pub(super) fn quote_line(self, text: &str) -> String {
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

/// What servers of models have for the end of a message or the beginning of another; upper and lower case count the
/// same. All with `<|` are besides.
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

/// `line` with everything spelled out that would make it look like something else.
fn spell(line: &str, spelled: &mut String) {
    for (at, character) in line.char_indices() {
        let rest = line.get(at..).unwrap_or_default();
        if is_hidden(character) || begins_mark(character, rest) || rest.starts_with("\\u{") {
            // The form that Rust has for characters.
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
    // The second bar is the one of full width, which some vendors' marks have.
    rest.starts_with("<|") || rest.starts_with("<\u{ff5c}") || TEMPLATE_MARKS.iter().any(is_mark)
}

/// Whether a character shows as nothing, or changes how others show: what Unicode calls control and format characters,
/// separators of lines, ignorable letters, and what selects variants, but for the one that makes signs colourful.
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
