//! The score of a detector on labelled recordings: precision, recall and delay of each kind.
//!
//! - A prediction is right if a label accepts its kind and it comes between the label's beginning (0.05 s early is
//!   tolerated) and its end. Labels of failures and completions are points: they end 3 s after they begin.
//! - A label that no prediction meets is missed. More than one prediction may meet it.
//! - A prediction that meets no label is a false alarm, unless it comes at most 0.4 s after the end of one that
//!   accepts it.
//! - The delay of a label is that of the first prediction that meets it.
//! - "A person must act" takes approvals, other waits, passwords and ready composers as one kind.

mod table;

use provost_event::TerminalEvent;
use provost_event::TerminalState;
use serde::{Deserialize, Serialize};

use crate::Detected;

pub use table::{ScoreRow, Scored};

const EARLY_S: f64 = 0.05;
const GRACE_S: f64 = 0.4;
const POINT_S: f64 = 3.0;

/// The kind of a label or a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Consent to an action is asked for.
    ApprovalRequest,
    /// Any other input is needed.
    WaitingForInput,
    /// A secret is asked for.
    PasswordPrompt,
    /// An agent's composer is ready.
    Idle,
    /// A failure became visible.
    Error,
    /// A turn or the program ended.
    Completion,
    /// It is busy.
    Working,
    /// Any other kind; not scored.
    #[serde(other)]
    Other,
}

impl EventKind {
    /// The scored kinds, in the order of the table.
    pub const SCORED: [Self; 6] = [
        Self::ApprovalRequest,
        Self::WaitingForInput,
        Self::PasswordPrompt,
        Self::Idle,
        Self::Error,
        Self::Completion,
    ];

    /// Whether a person, or an approver acting for one, has to act.
    #[must_use]
    pub const fn needs_human(self) -> bool {
        matches!(self, Self::ApprovalRequest | Self::WaitingForInput | Self::PasswordPrompt | Self::Idle)
    }

    /// The name in labels and predictions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApprovalRequest => "approval_request",
            Self::WaitingForInput => "waiting_for_input",
            Self::PasswordPrompt => "password_prompt",
            Self::Idle => "idle",
            Self::Error => "error",
            Self::Completion => "completion",
            Self::Working => "working",
            Self::Other => "other",
        }
    }
}

/// An event that a detector should report. Times are seconds since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Its kind.
    pub kind: EventKind,
    /// Its beginning.
    pub t: f64,
    /// Its end; absent for points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_end: Option<f64>,
    /// The earliest time at which a report isn't wrong, if that is before the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_soft: Option<f64>,
    /// The kinds that count as right.
    pub accept: Vec<EventKind>,
}

impl Label {
    /// The label of what was on the screen from `begin` to `end`, in seconds since the start. A failure and a completion
    /// are points. Where text is read, a detector may call it a composer.
    #[must_use]
    pub fn of(kind: EventKind, (begin, end): (f64, f64)) -> Self {
        let accept = match kind {
            EventKind::WaitingForInput => vec![kind, EventKind::Idle],
            _ => vec![kind],
        };
        let is_point = matches!(kind, EventKind::Error | EventKind::Completion);
        Self { kind, t: begin, t_end: (!is_point).then_some(end), t_soft: None, accept }
    }

    fn interval(&self) -> (f64, f64) {
        let from = self.t_soft.filter(|soft| *soft != 0.0).unwrap_or(self.t) - EARLY_S;
        let until = if self.kind.needs_human() { self.t_end.unwrap_or(self.t) } else { self.t + POINT_S };
        (from, until)
    }

    fn holds(&self, t: f64) -> bool {
        let (from, until) = self.interval();
        from <= t && t <= until
    }

    fn forgives(&self, t: f64) -> bool {
        let (from, until) = self.interval();
        from <= t && t <= until + GRACE_S
    }

    fn accepts(&self, prediction: &Prediction) -> bool {
        self.accept.contains(&prediction.kind)
    }
}

/// An event that a detector reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The time, in seconds since the start.
    pub t: f64,
    /// Its kind.
    pub kind: EventKind,
}

impl Prediction {
    /// The prediction of an event; `None` for events that aren't about the program's state.
    #[must_use]
    pub fn of(detected: &Detected) -> Option<Self> {
        let kind = match &detected.noted.event {
            TerminalEvent::ApprovalRequest(_) => EventKind::ApprovalRequest,
            TerminalEvent::WaitingForInput { .. } => EventKind::WaitingForInput,
            TerminalEvent::PasswordPrompt { .. } => EventKind::PasswordPrompt,
            TerminalEvent::Error { .. } => EventKind::Error,
            TerminalEvent::Completion { .. } => EventKind::Completion,
            TerminalEvent::Idle => EventKind::Idle,
            TerminalEvent::State(TerminalState::Working) => EventKind::Working,
            _ => return None,
        };
        Some(Self { t: detected.at.as_secs_f64(), kind })
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// The recording.
    pub recording: String,
    /// Whether it was missed or a false alarm.
    pub wrong: Wrong,
    /// The kind.
    pub kind: EventKind,
    /// The time, in seconds since the start.
    pub t: f64,
}

/// The kind of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A label that no prediction met.
    Missed,
    /// A prediction that met no label.
    FalseAlarm,
}

/// The score of a detector.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// Each scored kind, in the order of [`EventKind::SCORED`].
    pub kinds: [Scored; 6],
    /// "A person must act".
    pub needs_human: Scored,
    /// All mistakes.
    pub mistakes: Vec<Mistake>,
}

impl Score {
    /// The score of a set of recordings: their names, labels and predictions.
    #[must_use]
    pub fn of<'a>(recordings: impl IntoIterator<Item = (&'a str, &'a [Label], &'a [Prediction])>) -> Self {
        let mut score = Self::default();
        for (name, labels, predictions) in recordings {
            score.add(name, labels, predictions);
        }
        score
    }

    /// Adds one recording.
    pub fn add(&mut self, name: &str, labels: &[Label], predictions: &[Prediction]) {
        self.add_kinds(name, labels, predictions);
        let labels: Vec<&Label> = labels.iter().filter(|label| label.kind.needs_human()).collect();
        let predictions: Vec<&Prediction> = predictions.iter().filter(|p| p.kind.needs_human()).collect();
        for label in &labels {
            let met = predictions.iter().find(|prediction| label.holds(prediction.t));
            self.needs_human.label(met.map(|prediction| prediction.t - label.t));
        }
        let is_false = |p: &&&Prediction| !labels.iter().any(|label| label.forgives(p.t));
        self.needs_human.false_alarms += predictions.iter().filter(is_false).count();
    }

    fn add_kinds(&mut self, name: &str, labels: &[Label], predictions: &[Prediction]) {
        let mistake = |wrong, kind, t| Mistake { recording: name.to_owned(), wrong, kind, t };
        for label in labels {
            let Some(row) = self.kind_mut(label.kind) else { continue };
            let met =
                predictions.iter().find(|prediction| label.accepts(prediction) && label.holds(prediction.t));
            row.label(met.map(|prediction| prediction.t - label.t));
            if met.is_none() {
                self.mistakes.push(mistake(Wrong::Missed, label.kind, label.t));
            }
        }
        let is_scored = |label: &&Label| EventKind::SCORED.contains(&label.kind);
        for prediction in predictions {
            let is_right = |label: &Label| label.accepts(prediction) && label.forgives(prediction.t);
            if labels.iter().filter(is_scored).any(is_right) {
                continue;
            }
            let Some(row) = self.kind_mut(prediction.kind) else { continue };
            row.false_alarms += 1;
            self.mistakes.push(mistake(Wrong::FalseAlarm, prediction.kind, prediction.t));
        }
    }

    fn kind_mut(&mut self, kind: EventKind) -> Option<&mut Scored> {
        let at = EventKind::SCORED.iter().position(|scored| *scored == kind)?;
        self.kinds.get_mut(at)
    }
}
