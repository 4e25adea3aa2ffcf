//! Parses TOML into a profile.

use std::collections::BTreeMap;
use std::ops::Range;

use provost_event::AskKind;
use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::channel::{self, RawChannel};
use super::rule::{Choice, Gate, Options, Region, Rule, RuleEvent};
use super::subject::Subject;
use super::{
    GatewayRoute, Keys, Profile, ProfileError, ProgramKind, QuitStep, Resume, SandboxedStart, shipped,
};

pub(super) const SETTLE_MS: u64 = 60;
pub(super) const SUBMIT_MS: u64 = 6000;
pub(super) const STALLED_MS: u64 = 120_000;
const SPAN: usize = 40;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Option<String>,
    kind: ProgramKind,
    version: Option<u32>,
    #[serde(default)]
    tested: String,
    inherits: Option<String>,
    settle_ms: Option<u64>,
    submit_ms: Option<u64>,
    stalled_ms: Option<u64>,
    #[serde(default)]
    program: RawProgram,
    #[serde(default)]
    start: RawStart,
    #[serde(default)]
    resume: Resume,
    #[serde(default)]
    channels: Vec<RawChannel>,
    gateway: Option<GatewayRoute>,
    #[serde(default)]
    sandbox: SandboxedStart,
    #[serde(default)]
    keys: Keys,
    #[serde(default)]
    quit: Vec<QuitStep>,
    #[serde(default)]
    composer: RawComposer,
    #[serde(default)]
    said: RawSaid,
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawComposer {
    waits: Vec<String>,
    line_mode: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawSaid {
    message: Option<String>,
    end: Option<String>,
    skip: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProgram {
    commands: Vec<String>,
    screen: Vec<String>,
    relays: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawStart {
    unattended: Vec<String>,
    private: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    id: String,
    event: RuleEvent,
    ask: Option<AskKind>,
    region: Region,
    rows: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    end: Option<usize>,
    span: Option<usize>,
    gate: Option<Gate>,
    subject: Option<RawSubject>,
    subject_until: Option<RawSubject>,
    #[serde(default)]
    subject_one_line: bool,
    question: Option<String>,
    options: Option<RawOptions>,
    #[serde(default)]
    choices: Vec<Choice>,
    stable_ms: Option<u64>,
    confidence: Option<u8>,
    #[serde(default)]
    input: RawInput,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawInput {
    #[default]
    Text,
    Choice,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSubject {
    One(String),
    Several(Vec<String>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawOptions {
    Menu,
    Letters,
    Buttons,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Profile, ProfileError> {
    let raw: Raw = toml::from_str(text)
        .map_err(|error| ProfileError::Malformed { name: name.to_owned(), message: error.to_string() })?;
    let mut rules = Vec::new();
    for rule in raw.rules {
        let span = rule.span();
        rules.push(
            compile(rule.into_inner()).map_err(|(rule, message)| wrong(name, text, span, (rule, message)))?,
        );
    }
    let parent = inherited(name, raw.inherits, raw.kind)?;
    let wrong =
        |message| ProfileError::Malformed { name: name.to_owned(), message: format!("program: {message}") };
    let screen = patterns(&raw.program.screen).map_err(wrong)?;
    let mut relays = patterns(&raw.program.relays).map_err(wrong)?;
    let malformed =
        |message| ProfileError::Malformed { name: name.to_owned(), message: format!("said: {message}") };
    let message = raw.said.message.map(|text| pattern(&text)).transpose().map_err(malformed)?;
    let message_end = raw.said.end.map(|text| pattern(&text)).transpose().map_err(malformed)?;
    let skipped = patterns(&raw.said.skip).map_err(malformed)?;
    let waits = patterns(&raw.composer.waits).map_err(|message| ProfileError::Malformed {
        name: name.to_owned(),
        message: format!("composer: {message}"),
    })?;
    let channels = channel::read(raw.channels).map_err(|message| ProfileError::Malformed {
        name: name.to_owned(),
        message: format!("channels: {message}"),
    })?;
    if let Some(parent) = parent {
        rules.extend(parent.rules);
        relays.extend(parent.relays);
    }
    Ok(Profile {
        name: raw.name.unwrap_or_else(|| name.to_owned()),
        kind: raw.kind,
        version: raw.version.unwrap_or(1),
        tested: raw.tested,
        message,
        message_end,
        skipped,
        waits,
        may_be_in_line_mode: raw.composer.line_mode,
        unattended: raw.start.unattended,
        private: raw.start.private,
        resume: raw.resume,
        channels,
        gateway: raw.gateway,
        sandbox: raw.sandbox,
        keys: raw.keys,
        quit: raw.quit,
        source: text.to_owned(),
        settle_ms: raw.settle_ms.unwrap_or(SETTLE_MS),
        submit_ms: raw.submit_ms.unwrap_or(SUBMIT_MS),
        stalled_ms: raw.stalled_ms.unwrap_or(STALLED_MS),
        rules,
        relays,
        commands: raw.program.commands,
        screen,
    })
}

/// A profile's commands; none if the text is no valid profile.
pub(super) fn commands(text: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Names {
        #[serde(default)]
        program: RawProgram,
    }
    toml::from_str::<Names>(text).map(|names| names.program.commands).unwrap_or_default()
}

fn wrong(name: &str, text: &str, span: Range<usize>, (rule, message): (String, String)) -> ProfileError {
    let line = text.get(..span.start).unwrap_or_default().matches('\n').count() + 1;
    ProfileError::Rule { name: name.to_owned(), line, rule, message }
}

fn inherited(name: &str, parent: Option<String>, kind: ProgramKind) -> Result<Option<Profile>, ProfileError> {
    let Some(parent) = parent else { return Ok(None) };
    let unknown = || ProfileError::UnknownParent {
        name: name.to_owned(),
        inherits: parent.clone(),
        shipped: shipped::NAMES.join(", "),
    };
    // One level only: a shipped parent is parsed together with its own parent, and every chain ends at the generic
    // profile, which has none.
    let parent_profile =
        Some(&parent).filter(|parent| *parent != name).and_then(|parent| shipped::profile(parent));
    let parent_profile = parent_profile.ok_or_else(unknown)?;
    let mut profile = parent_profile.clone();
    if kind == ProgramKind::Agent {
        profile.rules.iter_mut().for_each(Rule::for_an_agent);
    }
    Ok(Some(profile))
}

fn compile(raw: RawRule) -> Result<Rule, (String, String)> {
    let id = raw.id.clone();
    build(raw).map_err(|message| (id, message))
}

fn build(raw: RawRule) -> Result<Rule, String> {
    let mut rows = patterns(&raw.rows)?;
    let anchor = rows.pop().ok_or("it has no rows")?;
    if raw.confidence.is_some_and(|confidence| confidence > 100) {
        return Err("a confidence is at most 100".to_owned());
    }
    let one = |text: Option<String>| text.map(|text| pattern(&text)).transpose();
    let options = match raw.options {
        Some(RawOptions::Menu) => Options::Menu,
        Some(RawOptions::Letters) => Options::Letters,
        Some(RawOptions::Buttons) => Options::Buttons,
        None => Options::Given(raw.choices),
    };
    Ok(Rule {
        gate: raw.gate.unwrap_or(match raw.region {
            Region::Cursor => Gate::Keys,
            _ => Gate::None,
        }),
        id: raw.id,
        event: raw.event,
        ask: raw.ask.unwrap_or(AskKind::Other),
        region: raw.region,
        anchor,
        above: rows,
        unless: patterns(&raw.unless)?,
        end: raw.end.unwrap_or(1).max(1),
        span: raw.span.unwrap_or(SPAN),
        subject: subject(raw.subject, raw.subject_until, raw.subject_one_line)?,
        question: one(raw.question)?,
        options,
        stable_ms: raw.stable_ms.unwrap_or(0),
        confidence: raw.confidence.unwrap_or(85),
        reads_text: raw.input == RawInput::Text,
        is_inherited: false,
    })
}

fn subject(
    from: Option<RawSubject>,
    until: Option<RawSubject>,
    is_one_line: bool,
) -> Result<Option<Subject>, String> {
    let all = |raw: Option<RawSubject>| match raw {
        None => Ok(Vec::new()),
        Some(RawSubject::One(text)) => patterns(&[text]),
        Some(RawSubject::Several(texts)) => patterns(&texts),
    };
    let subject = Subject { from: all(from)?, until: all(until)?, is_one_line };
    match (subject.from.len(), subject.until.len()) {
        (0, 0) if is_one_line => Err("`subject_one_line` is of a `subject`".to_owned()),
        (0, 0) => Ok(None),
        (0, _) => Err("`subject_until` is the end of a `subject`".to_owned()),
        (2.., 0) => Err("a `subject` without `subject_until` is one pattern".to_owned()),
        _ => Ok(Some(subject)),
    }
}

fn patterns(texts: &[String]) -> Result<Vec<Regex>, String> {
    texts.iter().map(|text| pattern(text)).collect()
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| format!("`{text}` is no pattern: {error}"))
}
