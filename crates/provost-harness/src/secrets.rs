//! Removes secrets from texts that are stored or shown.

mod arguments;
mod edges;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{LazyLock, PoisonError, RwLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use secrecy::{ExposeSecret as _, SecretString};

pub use arguments::without_keys;

/// The replacement of a secret.
const HIDDEN: &str = "[secret]";
/// A shorter value would also match text that is no secret.
const CHARS_MIN: usize = 8;
/// The same for values that were typed as secrets, and how many of them are kept.
const LEARNED_CHARS_MIN: usize = 4;
const LEARNED_MAX: usize = 100;

/// Well-known shapes of secrets. If a shape has a group, that is the secret, and else all of it. Word boundaries
/// are those of ASCII: others would make the search slow on other text.
const SHAPES: &[&str] = &[
    // Model providers.
    r"(?-u:\b)sk-[A-Za-z0-9]{20,}",
    r"(?-u:\b)sk-(?:ant|proj|svcacct)-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)sk-admin-[A-Za-z0-9_-]{40,}",
    r"(?-u:\b)sk-or-v1-[0-9a-f]{32,}",
    r"(?-u:\b)AIza[A-Za-z0-9_-]{35,}",
    r"(?-u:\b)gsk_[A-Za-z0-9]{32,}",
    r"(?-u:\b)xai-[A-Za-z0-9]{40,}",
    r"(?-u:\b)hf_[A-Za-z0-9]{30,}",
    // Code hosting and package registries.
    r"(?-u:\b)gh[opsru]_[A-Za-z0-9]{36,}",
    r"(?-u:\b)github_pat_[A-Za-z0-9_]{36,}",
    r"(?-u:\b)glpat-[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,})?",
    r"(?-u:\b)npm_[A-Za-z0-9]{36,}",
    // Clouds, chat, payment.
    r"(?-u:\b)A[KS]IA[A-Z2-7]{16}(?-u:\b)",
    r"(?-u:\b)xox[a-z]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)xapp-[0-9]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(?:sk|rk)_live_[A-Za-z0-9]{16,}",
    // JSON Web Tokens (RFC 7519): header and payload are objects, so that both begin alike.
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    // HTTP's Authorization (RFC 6750, RFC 7617).
    r"(?:[Bb]earer|BEARER)[ \t]+([A-Za-z0-9._~+/=-]{16,})",
    r"[Aa]uthorization[ \t:='\x22]{1,6}[Bb]asic[ \t]+([A-Za-z0-9+/=]{8,})",
    // User and password before a host (RFC 3986, 3.2.1), unless the password is a placeholder.
    r#"://[^\s/?#@:"'<>{}\\`]*:([^\s/?#@"'<>{}\\`$*%][^\s/?#@"'<>{}\\`]*)@"#,
];

/// Private keys as text (RFC 7468), also cut off, as a literal, or with line ends escaped. The body has only
/// characters of such keys, and at least some of it is required, so that code that merely mentions such keys
/// doesn't match.
const PRIVATE_KEY: [&str; 4] = [
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
    r#"(?:(?:\s|\\+[nrt]|["'+,\\])*[A-Za-z][A-Za-z-]{0,30}: [^\n"\\]{0,200})*"#,
    r#"(?:(?:\s|\\+[nrt]|["'+,\\])*[A-Za-z0-9+/=]{16,})+"#,
    r#"(?:(?:(?:\s|\\+[nrt]|["'+,\\])*[A-Za-z0-9+/=]{1,15}){0,3}(?:\s|\\+[nrt]|["'+,\\])*-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"#,
];

static SHAPE: LazyLock<Regex> =
    LazyLock::new(|| constant(&format!("{}|{}", PRIVATE_KEY.concat(), SHAPES.join("|"))));

/// Escape sequences (ECMA-48), and control characters except line ends and tabs.
static CONTROL: LazyLock<Regex> = LazyLock::new(|| {
    let sequence = r"(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]";
    let text = r"(?:\x1b\]|\x{9d})[^\x07\x1b\x{9c}]*(?:\x07|\x1b\\|\x{9c})";
    constant(&format!(r"{sequence}|{text}|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x{{9f}}]"))
});

/// Where a row of a screen ends and the next begins.
static ROW_END: LazyLock<Regex> = LazyLock::new(|| constant(r"[ \t]*\n[ \t]*"));

/// Strings and numbers of a JSON text.
static JSON_TOKEN: LazyLock<Regex> =
    LazyLock::new(|| constant(r#"(?s)"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*"#));

#[expect(clippy::expect_used, reason = "the pattern is a constant, and every test compiles it")]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

/// Removes secrets from texts: the given values, and whatever has the shape of a well-known kind of secret (keys
/// of model providers, tokens of code hosts, clouds and chat, JSON Web Tokens, private keys, `Bearer` tokens,
/// passwords in URLs). They are replaced by `[secret]`.
///
/// An unknown secret without a well-known shape stays, as does one in another encoding.
pub struct Redactor {
    exact: AhoCorasick,
    values: Vec<String>,
    /// Values that became known later.
    learned: RwLock<Vec<String>>,
}

impl Redactor {
    /// A redactor for these values, without surrounding white space. Values of less than 8 characters are ignored,
    /// as they would match ordinary text. A value is also found in JSON's escaped form.
    #[must_use]
    pub fn new(exact: impl IntoIterator<Item = SecretString>) -> Self {
        let values = exact.into_iter().flat_map(|secret| forms(secret.expose_secret().trim()));
        let values: Vec<String> = values.collect();
        Self { exact: matcher(&values), values, learned: RwLock::default() }
    }

    /// From now on this value is removed too: a secret that was typed while its terminal showed it. Values of less than
    /// 4 characters are ignored, and only the first hundred are kept.
    pub fn learn(&self, value: &str) {
        let value = value.trim();
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !learned.iter().any(|known| known == value);
        if is_new && value.chars().count() >= LEARNED_CHARS_MIN && learned.len() < LEARNED_MAX {
            learned.push(value.to_owned());
        }
    }

    fn learned_places(&self, text: &str) -> Vec<Range<usize>> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let found = learned.iter().flat_map(|value| text.match_indices(value.as_str()));
        found.map(|(at, value)| at..at + value.len()).collect()
    }

    /// Whether a value has less than 8 characters: it would also match ordinary words, so it isn't removed.
    #[must_use]
    pub fn is_too_short(value: &str) -> bool {
        value.chars().count() < CHARS_MIN
    }

    /// `text` without secrets; borrowed if there are none.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let hidden = |place: Range<usize>| (place, HIDDEN.to_owned());
        splice(text, self.places(text).into_iter().map(hidden))
    }

    /// The JSON value in the text `json` without secrets; borrowed if there are none. It stays JSON: secrets are
    /// removed from its strings and names, however they are escaped, and a number that contains one becomes a
    /// string.
    #[must_use]
    pub fn redact_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let tokens = JSON_TOKEN.find_iter(json);
        splice(json, tokens.filter_map(|token| Some((token.range(), self.without_secret(token.as_str())?))))
    }

    /// `text` without the given values; other texts with the shape of a secret stay. Borrowed if there are none.
    #[must_use]
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let hidden = |place: Range<usize>| (place, HIDDEN.to_owned());
        splice(text, apart(text, self.known_places(text)).into_iter().map(hidden))
    }

    /// The JSON value in the text `json` without the given values; as [`redact_json`](Self::redact_json).
    #[must_use]
    pub fn redact_known_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        // Without escapes its strings are parts of it as they are.
        let is_plain = !json.contains('\\') && !is_controlled(json);
        let has_none = self.learned_places(json).is_empty();
        if has_none && (self.values.is_empty() || (is_plain && !self.exact.is_match(json))) {
            return Cow::Borrowed(json);
        }
        let without = |token: &str| match serde_json::from_str::<String>(token) {
            Ok(text) => match self.redact_known(&text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(redacted) => Some(quoted(&redacted)),
            },
            Err(_) => (!self.known_places(token).is_empty()).then(|| quoted(HIDDEN)),
        };
        let tokens = JSON_TOKEN.find_iter(json);
        splice(json, tokens.filter_map(|token| Some((token.range(), without(token.as_str())?))))
    }

    /// A text that may have been cut, without the given values, and without parts of 8 or more characters of them at
    /// its ends or at a mark of an omission. Borrowed if there are none.
    #[must_use]
    pub fn redact_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut places = self.known_places(text);
        if self.values.is_empty() && places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.extend(edges::places(text, &self.values));
        if is_controlled(text) {
            let shown = PrintableText::of(text);
            places.extend(edges::places(&shown.text, &self.values).iter().map(|part| shown.place(part)));
        }
        let hidden = |place: Range<usize>| (place, HIDDEN.to_owned());
        splice(text, apart(text, places).into_iter().map(hidden))
    }

    /// The rows of a screen, joined by newlines, without the values that this was given, also where one goes on in the next row.
    /// Borrowed when there are none.
    #[must_use]
    pub fn redact_rows<'t>(&self, rows: &'t str) -> Cow<'t, str> {
        let mut places = self.known_places(rows);
        let shown = PrintableText::without(&ROW_END, rows);
        let found = self.exact.find_overlapping_iter(&shown.text);
        places.extend(found.map(|found| shown.place(&found.range())));
        let hidden = |place: Range<usize>| (place, HIDDEN.to_owned());
        splice(rows, apart(rows, places).into_iter().map(hidden))
    }

    /// Whether `text` has one of the given values.
    #[must_use]
    pub fn holds_known(&self, text: &str) -> bool {
        !self.known_places(text).is_empty()
    }

    /// Removes the given values from `text`, as [`redact_cut`](Self::redact_cut).
    pub fn mask_known(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_cut(text) {
            *text = masked;
        }
    }

    fn known_places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = self.learned_places(text);
        if self.values.is_empty() {
            return places;
        }
        if self.exact.is_match(text) {
            places.extend(self.exact.find_overlapping_iter(text).map(|found| found.range()));
        }
        if is_controlled(text) {
            let shown = PrintableText::of(text);
            let found = self.exact.find_overlapping_iter(&shown.text);
            places.extend(found.map(|found| shown.place(&found.range())));
        }
        places
    }

    /// The positions of secrets in order, without overlaps.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = self.known_places(text);
        if SHAPE.is_match(text) {
            places.extend(SHAPE.captures_iter(text).filter_map(|shape| secret_of(&shape)));
        }
        apart(text, places)
    }

    /// A token of a JSON text without its secrets; `None` if it has none.
    fn without_secret(&self, token: &str) -> Option<String> {
        match serde_json::from_str::<String>(token) {
            Ok(text) => match self.redact(&text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(redacted) => Some(quoted(&redacted)),
            },
            // A number; or half of a surrogate pair, which is JSON by its grammar, but no valid string.
            Err(_) => (!self.places(token).is_empty()).then(|| quoted(HIDDEN)),
        }
    }
}

/// A text without its control characters and escape sequences: a secret that they split is contiguous there.
struct PrintableText {
    text: String,
    /// The position of each of its bytes in the original text.
    places: Vec<usize>,
}

impl PrintableText {
    fn of(text: &str) -> Self {
        Self::without(&CONTROL, text)
    }

    fn without(left_out: &Regex, text: &str) -> Self {
        let mut shown =
            Self { text: String::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        let mut kept = 0;
        for hidden in left_out.find_iter(text) {
            shown.keep(text, kept..hidden.start());
            kept = hidden.end();
        }
        shown.keep(text, kept..text.len());
        shown
    }

    fn keep(&mut self, text: &str, range: Range<usize>) {
        self.text.push_str(text.get(range.clone()).unwrap_or_default());
        self.places.extend(range);
    }

    /// The position of a part in the original text.
    fn place(&self, part: &Range<usize>) -> Range<usize> {
        let at = |index: usize| self.places.get(index).copied().unwrap_or_default();
        at(part.start)..at(part.end.saturating_sub(1)).saturating_add(1)
    }
}

impl Default for Redactor {
    /// A redactor for shapes only.
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// Whether it contains invisible control characters.
fn is_controlled(text: &str) -> bool {
    text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The positions in order, overlapping ones merged.
fn apart(text: &str, mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|place| text.get(place.clone()) != Some(HIDDEN));
    places.sort_by_key(|place| (place.start, place.end));
    places.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
    places
}

/// The forms of a value in a text: plain, and in JSON's escaped form.
fn forms(value: &str) -> Vec<String> {
    if Redactor::is_too_short(value) {
        return Vec::new();
    }
    let quoted = quoted(value);
    let escaped = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).map(str::to_owned);
    let mut forms = vec![value.to_owned()];
    forms.extend(escaped.filter(|escaped| escaped != value));
    forms
}

#[expect(
    clippy::expect_used,
    reason = "it fails at more than two thousand million states; dropping values would leak them"
)]
fn matcher(values: &[String]) -> AhoCorasick {
    AhoCorasick::new(values).expect("fewer values")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The position of a shape's secret.
fn secret_of(shape: &regex::Captures<'_>) -> Option<Range<usize>> {
    let group = shape.iter().skip(1).flatten().next();
    match group {
        // The word after `Bearer` in prose and templates has no digit; a password may have none.
        Some(secret) if !secret.as_str().bytes().any(|byte| byte.is_ascii_digit()) && !is_password(shape) => {
            None
        }
        Some(secret) => Some(secret.range()),
        None => shape.get(0).map(|whole| whole.range()),
    }
}

fn is_password(shape: &regex::Captures<'_>) -> bool {
    shape.get(0).is_some_and(|whole| whole.as_str().starts_with("://"))
}

/// `text` with replacements at these positions, which must be in order.
fn splice<'t>(text: &'t str, places: impl Iterator<Item = (Range<usize>, String)>) -> Cow<'t, str> {
    let (mut out, mut copied) = (String::new(), 0);
    for (place, words) in places {
        out.push_str(text.get(copied..place.start).unwrap_or_default());
        out.push_str(&words);
        copied = place.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
