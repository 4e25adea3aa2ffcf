//! Decides the next step from the situation.

use std::time::Duration;

use provost_event::{Blocker, ExternalPolicy, TerminalAsk, TerminalState};
use provost_terminal::ProgramKind;
use tokio::time::Instant;

use super::calls::ModelCalls;
use super::terminal_status::TerminalStatus;
use crate::attach::Attendance;

/// An agent whose composer has been ready for this long is done with its prompt, even if it didn't report that.
const IDLE_STANDS: Duration = Duration::from_millis(1_500);
/// A model call that ends this soon after a report of completion is the one that the report followed.
const SAME_END: Duration = Duration::from_millis(500);
/// No automatic typing until this long after a person's last key.
const KEYS_PAUSE: Duration = Duration::from_secs(2);
/// How long a person may take to attach to an attended program before approvers are asked.
const PERSON_COMES_WITHIN: Duration = Duration::from_secs(3);

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExchangeStep {
    /// Wait for an event, at most until this time.
    Wait(Option<Instant>),
    /// Type the pending text.
    Submit,
    /// Refuse this question.
    Deny(TerminalAsk),
    /// Pass this question on for a decision.
    HandOn(TerminalAsk),
    /// The agent is done with its prompt.
    Done,
    /// No person came to give it the input it waits for.
    Unanswered(String),
    /// The program has ended.
    Ended,
}

/// A prompt that the program was given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// The number of turns completed before it.
    pub(super) turns_before: u64,
    /// When it was given.
    pub(super) since: Instant,
}

/// The situation to decide on.
pub(super) struct Situation<'a> {
    pub(super) now: Instant,
    pub(super) standing: &'a TerminalStatus,
    pub(super) attendance: Attendance,
    pub(super) kind: ProgramKind,
    pub(super) policy: &'a ExternalPolicy,
    pub(super) is_verified: bool,
    /// Text is waiting to be typed.
    pub(super) has_words: bool,
    /// The program was given a prompt since its start.
    pub(super) was_told: bool,
    /// The question that was passed on and refused.
    pub(super) refused: Option<&'a str>,
    pub(super) turn: Option<Turn>,
    /// How many turns were completed when the last one was reported, and when that was.
    pub(super) turns_seen: u64,
    pub(super) seen_at: Instant,
    /// When the program was started, and when it last wrote.
    pub(super) started: Instant,
    pub(super) wrote: Instant,
    /// What it waits for is text, and it paints frames rather than writing lines.
    pub(super) takes_text: bool,
    pub(super) paints: bool,
    /// It asks for a secret while the terminal shows what is typed.
    pub(super) exposes_secret: bool,
    /// Its model calls.
    pub(super) calls: ModelCalls,
    /// When the wait for the program began.
    pub(super) began: Instant,
}

/// Decides the next step.
pub(super) fn next(s: &Situation<'_>) -> ExchangeStep {
    if s.standing.exit.is_some() {
        return ExchangeStep::Ended;
    }
    if let Some(ask) = &s.standing.ask {
        return s.consent(ask);
    }
    match s.standing.state {
        TerminalState::Password => s.wait_for_person(|| format!("the password for: {}", s.standing.prompt)),
        TerminalState::Blocked(Blocker::Auth) => s.wait_for_person(|| "a login".to_owned()),
        // Whatever the screen shows, a program with an open model call is at work.
        _ if s.is_calling() => ExchangeStep::Wait(None),
        TerminalState::Blocked(Blocker::Question) | TerminalState::WaitingForInput => s.words(),
        TerminalState::Idle => s.idle(),
        TerminalState::Working => ExchangeStep::Wait(None),
        TerminalState::Blocked(Blocker::Approval)
        | TerminalState::Starting
        | TerminalState::Stalled
        | TerminalState::Unknown
        | TerminalState::Exiting
        | TerminalState::Exited => s.sign_of_life(),
    }
}

impl Situation<'_> {
    /// A model call is open. A call before the first prompt, such as one for a greeting, doesn't keep the prompt back.
    const fn is_calling(&self) -> bool {
        self.calls.is_open && (self.turn.is_some() || !self.has_words)
    }

    fn consent(&self, ask: &TerminalAsk) -> ExchangeStep {
        let comes_by = self.started + PERSON_COMES_WITHIN;
        if self.attendance.controls > 0 {
            ExchangeStep::Wait(None)
        } else if self.refused == Some(ask.fingerprint.as_str()) {
            ExchangeStep::Deny(ask.clone())
        } else if self.policy.attended && !self.attendance.has_been && self.now < comes_by {
            ExchangeStep::Wait(Some(comes_by))
        } else {
            ExchangeStep::HandOn(ask.clone())
        }
    }

    /// It reads input.
    fn words(&self) -> ExchangeStep {
        // What an agent asks before its first prompt isn't for the prompt to answer.
        let fits = self.kind == ProgramKind::Plain || self.was_told;
        if fits && self.has_words && self.takes_text {
            return self.submit();
        }
        // A program that was given a goal and reads again is done with it.
        let has_goal = self.policy.submits_goal && !self.policy.attended && self.kind == ProgramKind::Plain;
        if let Some(turn) = self.turn.filter(|_| has_goal && self.attendance.controls == 0) {
            // It may show a spinner and read keys while it works: only its profile could tell.
            if self.paints {
                return self.until(self.quiet_since(self.began).max(self.wrote), unknown_end);
            }
            // A menu or a sign-in that it shows instead is no sign that it is done.
            if self.takes_text {
                let stands = self.quiet_since(turn.since).max(self.wrote) + IDLE_STANDS;
                return if self.now >= stands {
                    ExchangeStep::Done
                } else {
                    ExchangeStep::Wait(Some(stands))
                };
            }
        }
        self.wait_for_person(|| match self.standing.prompt.trim() {
            "" if self.has_words => {
                "input that isn't text, so that its prompt wasn't typed: `provost attach` shows it".to_owned()
            }
            "" => "an answer".to_owned(),
            prompt if self.exposes_secret => {
                format!("a secret, which the terminal shows as it is typed (no password prompt): {prompt}")
            }
            prompt => format!("an answer to: {prompt}"),
        })
    }

    /// An agent's composer is ready.
    fn idle(&self) -> ExchangeStep {
        if self.has_words {
            return self.submit();
        }
        let is_led_by_person = self.policy.attended && !self.is_verified;
        if !is_led_by_person && self.is_turn_over() {
            return ExchangeStep::Done;
        }
        match self.turn {
            Some(turn) if !is_led_by_person => {
                ExchangeStep::Wait(Some(self.quiet_since(turn.since) + IDLE_STANDS))
            }
            _ => self.wait_for_person(|| "a prompt".to_owned()),
        }
    }

    fn is_turn_over(&self) -> bool {
        match self.turn {
            Some(turn) => {
                let reports_it =
                    self.standing.turns > turn.turns_before && !self.has_called_since_its_report();
                reports_it || self.now >= self.quiet_since(turn.since) + IDLE_STANDS
            }
            None => self.standing.turns > self.turns_seen && self.has_a_task(),
        }
    }

    /// Whether a model call has begun or ended since the program reported that it is done.
    fn has_called_since_its_report(&self) -> bool {
        self.standing.turn_ended.is_some_and(|ended| self.calls.changed > ended + SAME_END)
    }

    /// Since when it has shown nothing new, at the earliest from `begin` on.
    fn quiet_since(&self, begin: Instant) -> Instant {
        self.standing.since.max(self.calls.changed).max(begin)
    }

    /// Whether it has a task from elsewhere: its arguments, or a person at its terminal.
    fn has_a_task(&self) -> bool {
        if self.policy.attended {
            self.attendance.last_key.is_some_and(|key| key > self.seen_at)
        } else {
            !self.policy.submits_goal && self.policy.args.iter().any(|arg| !arg.starts_with('-'))
        }
    }

    fn submit(&self) -> ExchangeStep {
        match self.attendance.last_key.map(|key| key + KEYS_PAUSE) {
            Some(quiet) if self.now < quiet => ExchangeStep::Wait(Some(quiet)),
            _ => ExchangeStep::Submit,
        }
    }

    /// It continues when a person attaches.
    fn wait_for_person(&self, waits_for: impl FnOnce() -> String) -> ExchangeStep {
        if self.attendance.controls > 0 {
            return ExchangeStep::Wait(None);
        }
        let since = self.quiet_since(self.began).max(self.attendance.left.unwrap_or(self.began));
        self.until(since, waits_for)
    }

    /// It may continue by itself; after a long silence a person should look.
    fn sign_of_life(&self) -> ExchangeStep {
        if self.attendance.controls > 0 {
            return ExchangeStep::Wait(None);
        }
        let since = self.quiet_since(self.began).max(self.wrote);
        let since = since.max(self.attendance.left.unwrap_or(self.began));
        self.until(since, || "a sign of life: nothing has come from it for long".to_owned())
    }

    fn until(&self, since: Instant, waits_for: impl FnOnce() -> String) -> ExchangeStep {
        let Some(idle_ms) = self.policy.idle_ms else { return ExchangeStep::Wait(None) };
        match since.checked_add(Duration::from_millis(idle_ms)) {
            Some(limit) if self.now >= limit => ExchangeStep::Unanswered(waits_for()),
            limit => ExchangeStep::Wait(limit),
        }
    }
}

fn unknown_end() -> String {
    "evidence that it is done: a full-screen program without a profile is done when it ends, or when a person says so \
     (`provost attach`)"
        .to_owned()
}
