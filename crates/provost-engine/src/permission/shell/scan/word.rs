//! Words: quotes, escapes and expansions of the shell.

use super::super::super::glob::HOLE;
use super::{Read, ScriptScan, Unclear, Word};

impl<'t> ScriptScan<'t, '_> {
    /// The word that begins here; empty if there is none.
    pub(super) fn word(&mut self) -> Read<Word> {
        let start = self.cursor.at;
        let mut word = Word { bare: true, ..Word::default() };
        let mut fills_in = false;
        let mut brace = false;
        let mut expands_brace = false;
        while let Some(c) = self.cursor.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if !self.at_process() => break,
                '<' | '>' => {
                    self.cursor.at += 2;
                    self.in_parens()?;
                    word.bare = false;
                    word.value.push(HOLE);
                }
                '\\' if self.cursor.take("\\\n") => self.inside_newline()?,
                '\'' | '"' | '\\' | '$' | '`' => {
                    word.bare = false;
                    let before = self.cursor.at;
                    let length = word.value.len();
                    self.special(c, &mut word.value)?;
                    let written = self.cursor.text.get(before..self.cursor.at).unwrap_or_default();
                    let fills = word.value.get(length..).is_some_and(|added| added.contains(HOLE));
                    // An unquoted expansion may give several words; a list does even in quotes.
                    word.splits |= fills && (c != '"' || written.contains(['@', '*', '!']));
                }
                _ => {
                    self.cursor.bump();
                    word.assigns |= c == '=' && word.bare && is_variable(&word.value);
                    brace |= c == '{';
                    expands_brace |= brace && (c == ',' || (c == '.' && word.value.ends_with('.')));
                    fills_in |= matches!(c, '*' | '?') || (c == ']' && word.value.contains('['));
                    word.value.push(c);
                }
            }
        }
        word.raw = self.cursor.text.get(start..self.cursor.at).unwrap_or_default().to_owned();
        if expands_brace {
            word.value = HOLE.to_string();
        }
        word.splits |= expands_brace || fills_in;
        word.plain = !word.value.contains(HOLE) && (!fills_in || word.value == "[[" || word.value == "[");
        Ok(word)
    }

    fn special(&mut self, c: char, value: &mut String) -> Read<()> {
        match c {
            '\'' => self.single_quotes(value),
            '"' => self.double_quotes(value),
            '`' => {
                value.push(HOLE);
                self.backticks(false)
            }
            '$' => self.dollar(false, value),
            _ => {
                self.cursor.bump();
                value.extend(self.cursor.bump());
                Ok(())
            }
        }
    }

    fn single_quotes(&mut self, value: &mut String) -> Read<()> {
        self.cursor.bump();
        let Some((quoted, _)) = self.cursor.rest().split_once('\'') else {
            return Err(Unclear("a quote in it is never closed"));
        };
        if quoted.contains('\n') {
            self.inside_newline()?;
        }
        value.push_str(quoted);
        self.cursor.at += quoted.len() + 1;
        Ok(())
    }

    fn double_quotes(&mut self, value: &mut String) -> Read<()> {
        self.deeper(|scan| {
            scan.cursor.bump();
            loop {
                match scan.cursor.peek() {
                    None => return Err(Unclear("a quote in it is never closed")),
                    Some('"') => {
                        scan.cursor.bump();
                        return Ok(());
                    }
                    Some('$') => scan.dollar(true, value)?,
                    Some('`') => {
                        scan.backticks(true)?;
                        value.push(HOLE);
                    }
                    Some('\\') => scan.quoted_escape(value)?,
                    Some(c) => {
                        if c == '\n' {
                            scan.inside_newline()?;
                        }
                        scan.cursor.bump();
                        value.push(c);
                    }
                }
            }
        })
    }

    fn quoted_escape(&mut self, value: &mut String) -> Read<()> {
        self.cursor.bump();
        match self.cursor.bump() {
            None => return Err(Unclear("a quote in it is never closed")),
            Some('\n') => return self.inside_newline(),
            Some(c @ ('$' | '`' | '"' | '\\')) => value.push(c),
            Some(c) => value.extend(['\\', c]),
        }
        Ok(())
    }

    /// An expansion that begins with `$`.
    pub(super) fn dollar(&mut self, quoted: bool, value: &mut String) -> Read<()> {
        let mut ahead = self.cursor.rest().chars().skip(1);
        let next = ahead.next();
        let after = ahead.next();
        match next {
            Some('(') if after == Some('\\') => return Err(Unclear("a substitution isn't understood")),
            Some('(') if after == Some('(') => self.deeper(Self::arithmetic)?,
            Some('(') => {
                self.cursor.at += 2;
                self.in_parens()?;
            }
            Some('{') => self.deeper(|scan| scan.parameter(quoted))?,
            Some('[') => return Err(Unclear("`$[` is arithmetic in some shells")),
            Some('\\') if after == Some('\n') => return Err(Unclear("a substitution isn't understood")),
            Some('\'') if !quoted => return self.ansi_quotes(value),
            Some('"') if !quoted => {
                self.cursor.bump();
                return Ok(());
            }
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                self.cursor.bump();
                self.cursor.at += self
                    .cursor
                    .rest()
                    .bytes()
                    .take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric())
                    .count();
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => self.cursor.at += 2,
            _ => {
                self.cursor.bump();
                value.push('$');
                return Ok(());
            }
        }
        value.push(HOLE);
        Ok(())
    }

    /// `$((…))`, if it is certainly that. Its content is evaluated repeatedly as long as it is the name of a
    /// variable, and commands in there run: only numbers are safe.
    fn arithmetic(&mut self) -> Read<()> {
        self.cursor.at += 3;
        let mut open = 0_usize;
        loop {
            match self.cursor.peek() {
                Some('(') => open += 1,
                Some(')') if open > 0 => open -= 1,
                Some(')') if self.cursor.take("))") => return Ok(()),
                Some('$') => {
                    self.number_put_in()?;
                    continue;
                }
                Some(c) if c == '_' || c.is_ascii_alphanumeric() => {
                    let name = self.name();
                    self.facts.count_with(name);
                    continue;
                }
                Some(c) if " +-*/%<>=!&|^~?:,\n".contains(c) => {}
                _ => return Err(Unclear("what stands in `$((` isn't understood")),
            }
            self.cursor.bump();
        }
    }

    /// Letters, digits and `_`.
    fn name(&mut self) -> &'t str {
        let length = self
            .cursor
            .rest()
            .bytes()
            .take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric())
            .count();
        let start = self.cursor.at;
        self.cursor.at += length;
        self.cursor.text.get(start..self.cursor.at).unwrap_or_default()
    }

    /// An expansion with `$` where a number is expected.
    fn number_put_in(&mut self) -> Read<()> {
        let start = self.cursor.at;
        self.dollar(true, &mut String::new())?;
        let written = self.cursor.text.get(start..self.cursor.at).unwrap_or_default();
        self.facts.count_with_put_in(written);
        Ok(())
    }

    /// `${…}`.
    fn parameter(&mut self, quoted: bool) -> Read<()> {
        self.cursor.at += 2;
        if matches!(self.cursor.peek(), None | Some(' ' | '\t' | '\n' | '|' | '(' | '!')) {
            return Err(Unclear("what stands in `${` isn't understood"));
        }
        self.parameter_name()?;
        let mut unused = String::new();
        loop {
            match self.cursor.peek() {
                Some('}') => {
                    self.cursor.bump();
                    return Ok(());
                }
                Some('\'') if !quoted => self.single_quotes(&mut unused)?,
                Some('"') if !quoted => self.double_quotes(&mut unused)?,
                Some('$')
                    if !self.cursor.rest().starts_with("$'") && !self.cursor.rest().starts_with("$\"") =>
                {
                    self.dollar(true, &mut unused)?;
                }
                Some('`') => self.backticks(quoted)?,
                Some('\\') if !self.cursor.rest().starts_with("\\\n") => {
                    _ = (self.cursor.bump(), self.cursor.bump())
                }
                None | Some('\'' | '"' | '$' | '\\' | '{' | '\n' | '<' | '>' | '(') => {
                    return Err(Unclear("what stands in `${` isn't understood"));
                }
                Some(_) => _ = self.cursor.bump(),
            }
        }
    }

    /// The name in `${…}`, its index, and its operator: nothing that the shell would evaluate.
    fn parameter_name(&mut self) -> Read<()> {
        if self.cursor.rest().starts_with('#') && !self.cursor.rest().starts_with("#}") {
            self.cursor.bump();
        }
        if self.name().is_empty() && self.cursor.bump().is_none_or(|c| !"@*#?$!-".contains(c)) {
            return Err(Unclear("what stands in `${` isn't understood"));
        }
        if self.cursor.take("[") {
            let index = self.cursor.rest().split([']', '}']).next().unwrap_or_default();
            let is_plain = matches!(index, "@" | "*") || index.bytes().all(|byte| byte.is_ascii_digit());
            if !is_plain || !self.cursor.rest().get(index.len()..).unwrap_or_default().starts_with(']') {
                self.facts.doubt("an index in it is worked out by the shell");
                return Ok(());
            }
            self.cursor.at += index.len() + 1;
        }
        let rest = self.cursor.rest();
        let assigns = rest.starts_with('=') || rest.starts_with(":=");
        let is_slice = rest.strip_prefix(':').is_some_and(|rest| !rest.starts_with(['-', '+', '?', '=']));
        let slice = rest.split('}').next().unwrap_or_default();
        let plain_slice = slice.bytes().all(|byte| byte.is_ascii_digit() || b": -".contains(&byte));
        if assigns || (is_slice && !plain_slice) {
            self.facts.doubt("what stands in `${` is worked out by the shell");
        }
        if rest.starts_with('@') && !["@Q}", "@U}", "@u}", "@L}"].iter().any(|known| rest.starts_with(known))
        {
            return Err(Unclear("`${x@…}` may run what a variable holds"));
        }
        Ok(())
    }

    /// Commands between backticks.
    pub(super) fn backticks(&mut self, quoted: bool) -> Read<()> {
        self.cursor.bump();
        let mut script = String::new();
        loop {
            match self.cursor.bump() {
                None => return Err(Unclear("a backtick in it has no partner")),
                Some('`') => break,
                Some('\\') => match self.cursor.bump() {
                    Some(c @ ('`' | '\\' | '$')) => script.push(c),
                    Some('"') if quoted => script.push('"'),
                    Some(c) => script.extend(['\\', c]),
                    None => {}
                },
                Some(c) => script.push(c),
            }
        }
        if script.contains('\n') {
            self.inside_newline()?;
        }
        self.inner(&script, |scan| scan.list(super::ListEnd::Text)).map(|_| ())
    }

    /// `$'…'`, in which bash expands escapes.
    fn ansi_quotes(&mut self, value: &mut String) -> Read<()> {
        self.cursor.at += 2;
        loop {
            match self.cursor.bump() {
                None => return Err(Unclear("a quote in it is never closed")),
                Some('\'') => return Ok(()),
                Some('\n') => {
                    self.inside_newline()?;
                    value.push('\n');
                }
                Some('\\') => self.ansi_escape(value)?,
                Some(c) => value.push(c),
            }
        }
    }

    fn ansi_escape(&mut self, value: &mut String) -> Read<()> {
        let c = match self.cursor.bump() {
            // For dash this is the end of the quote.
            None | Some('\'') => return Err(Unclear("shells differ in how they read `$'`")),
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(c @ ('\\' | '"' | '?')) => c,
            Some('x') => self.code(16, 2, 0),
            Some('u') => self.code(16, 4, 0),
            Some('U') => self.code(16, 8, 0),
            Some(c @ '0'..='7') => self.code(8, 2, c.to_digit(8).unwrap_or(0)),
            // Control characters, and escapes that only some shells have.
            Some(_) => HOLE,
        };
        value.push(c);
        Ok(())
    }

    /// A character by its number; a hole if shells would encode it as bytes.
    fn code(&mut self, radix: u32, digits_max: usize, start: u32) -> char {
        let mut code = start;
        for _ in 0..digits_max {
            let Some(digit) = self.cursor.peek().and_then(|c| c.to_digit(radix)) else { break };
            code = code.saturating_mul(radix).saturating_add(digit);
            self.cursor.bump();
        }
        char::from_u32(code).filter(|c| c.is_ascii() && *c != '\0').unwrap_or(HOLE)
    }
}

/// Whether `text` may precede an assignment's `=`.
fn is_variable(text: &str) -> bool {
    let name = text.strip_suffix('+').unwrap_or(text);
    let name = name.split_once('[').filter(|_| name.ends_with(']')).map_or(name, |(name, _)| name);
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}
