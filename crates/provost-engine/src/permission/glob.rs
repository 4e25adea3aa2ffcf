//! Globs in which `*` matches any text and `\*` a star; all other characters are literal.

/// Marks an unknown part of a text: any text, also none. An unassigned character; if a text contains it itself,
/// that text only counts as less known than it is.
pub(super) const HOLE: char = '\u{10FFFF}';

/// One step of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GlobStep {
    /// This character.
    Is(char),
    /// Any text.
    Star,
}

/// A glob, ready to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    steps: Vec<GlobStep>,
    /// The literal texts between the stars: always one more than there are stars.
    literals: Vec<String>,
}

/// Reads a pattern's text into steps.
pub(super) fn steps_of(text: &str) -> Vec<GlobStep> {
    let mut steps = Vec::with_capacity(text.len());
    let mut ahead = text.chars().peekable();
    while let Some(c) = ahead.next() {
        match c {
            '*' => steps.push(GlobStep::Star),
            '\\' if ahead.next_if_eq(&'*').is_some() => steps.push(GlobStep::Is('*')),
            _ => steps.push(GlobStep::Is(c)),
        }
    }
    steps
}

/// `text` as a pattern that matches nothing else.
pub(super) fn escaped(text: &str) -> String {
    text.replace('*', "\\*")
}

impl Glob {
    /// Reads a pattern.
    pub(super) fn new(text: &str) -> Self {
        Self::of(steps_of(text))
    }

    /// Whether it may match a text of two or more characters that begins and ends with these.
    pub(super) fn can_enclose(&self, first: char, last: char) -> bool {
        let fits = |step: Option<&GlobStep>, c: char| {
            matches!(step, Some(GlobStep::Star)) || step == Some(&GlobStep::Is(c))
        };
        fits(self.steps.first(), first) && fits(self.steps.last(), last)
    }

    /// A glob of these steps.
    pub(super) fn of(mut steps: Vec<GlobStep>) -> Self {
        steps.dedup_by(|a, b| *a == GlobStep::Star && *b == GlobStep::Star);
        let mut literals = vec![String::new()];
        for step in &steps {
            match (step, literals.last_mut()) {
                (GlobStep::Is(c), Some(last)) => last.push(*c),
                _ => literals.push(String::new()),
            }
        }
        Self { steps, literals }
    }

    /// The only text that it matches, if there is just one.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.literals.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The literal text before the first star.
    pub(super) fn prefix(&self) -> &str {
        self.literals.first().map_or("", String::as_str)
    }

    /// The length of that text in bytes.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix().len()
    }

    /// The number of literal characters.
    pub(super) fn literal_chars(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, GlobStep::Is(_))).count()
    }

    /// Whether `c` is among the literal characters.
    pub(super) fn has(&self, c: char) -> bool {
        self.steps.contains(&GlobStep::Is(c))
    }

    /// Whether it matches all of `text`. A hole counts as a character of its own, so that only a star matches it.
    pub(super) fn matches(&self, text: &str) -> bool {
        let [first, between @ .., last] = self.literals.as_slice() else {
            return self.literal() == Some(text);
        };
        let Some(mut rest) =
            text.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str()))
        else {
            return false;
        };
        // The leftmost match of each literal is always sufficient: the rest of the text is longest then.
        for literal in between {
            match rest.find(literal.as_str()) {
                Some(at) => rest = rest.get(at + literal.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        true
    }

    /// Whether it may match `text` if each hole may be any text.
    pub(super) fn may_match(&self, text: &str) -> bool {
        // Most texts already differ at the beginning.
        let known = text.split(HOLE).next().unwrap_or_default();
        let first = self.literals.first().map_or("", String::as_str);
        if !first.starts_with(known) && !known.starts_with(first) {
            return false;
        }
        let mut states = vec![false; self.steps.len() + 1];
        if let Some(start) = states.first_mut() {
            *start = true;
        }
        self.pass_stars(&mut states);
        for c in text.chars() {
            if c == HOLE {
                let first = states.iter().position(|state| *state).unwrap_or(states.len());
                states.iter_mut().skip(first).for_each(|state| *state = true);
                continue;
            }
            let mut next = vec![false; states.len()];
            for (at, step) in self.steps.iter().enumerate().filter(|(at, _)| states.get(*at) == Some(&true)) {
                let to = match step {
                    GlobStep::Star => at,
                    GlobStep::Is(is) if *is == c => at + 1,
                    GlobStep::Is(_) => continue,
                };
                if let Some(state) = next.get_mut(to) {
                    *state = true;
                }
            }
            self.pass_stars(&mut next);
            if !next.contains(&true) {
                return false;
            }
            states = next;
        }
        states.last() == Some(&true)
    }

    /// A star may match nothing.
    fn pass_stars(&self, states: &mut [bool]) {
        for (at, step) in self.steps.iter().enumerate() {
            if *step == GlobStep::Star
                && states.get(at) == Some(&true)
                && let Some(after) = states.get_mut(at + 1)
            {
                *after = true;
            }
        }
    }
}
