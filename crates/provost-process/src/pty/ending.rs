//! The stages of ending a program: each is harder than the one before, and there is no way back.

use std::collections::VecDeque;
use std::time::Duration;

use super::options::{QuitPlan, QuitStep};

/// How long a program may take to end after the end of its input.
const END_OF_INPUT_WAIT: Duration = Duration::from_millis(300);

/// How long killed processes may take to end; only a process stuck in the kernel, or one of another user, takes
/// that long. Its guard goes on killing it.
const VANISH_MAX: Duration = Duration::from_secs(5);

/// How long the guard may take to kill all processes; only a stopped guard takes longer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Ending {
    /// No request to end.
    NotAsked,
    /// The program's own way: the remaining steps.
    Quitting { steps: VecDeque<QuitStep>, until: Duration, grace: Duration },
    /// It was asked to end, and is killed at that time. Without a request the program has ended by itself, and its
    /// remaining processes are asked to end.
    Asked { kill_at: Duration, is_wished: bool },
    /// It was killed; the wait for its end is given up at that time.
    Killed { force_at: Option<Duration>, give_up_at: Duration },
    /// No process is left, or the rest doesn't end.
    Over,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Type(String),
    /// Types the key that ends input, if the program reads line by line.
    EndInput,
    HangUp,
    Kill,
    /// Kills by other means: the guard doesn't answer.
    Force,
    GiveUp,
}

impl Ending {
    /// When [`next`](Self::next) has an action.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::NotAsked | Self::Over => None,
            Self::Quitting { until, .. } => Some(*until),
            Self::Asked { kill_at, .. } => Some(*kill_at),
            Self::Killed { force_at, give_up_at } => Some(force_at.unwrap_or(*give_up_at)),
        }
    }

    /// A request to end: begins the ending, or escalates it at once.
    pub(super) fn ask(&mut self, now: Duration, plan: QuitPlan) -> Option<Next> {
        if let Self::Asked { kill_at, is_wished: is_wished @ false } = self {
            *kill_at = now.saturating_add(plan.grace).min(*kill_at);
            *is_wished = true;
            return None;
        }
        if !matches!(self, Self::NotAsked) {
            return self.harder(now);
        }
        let mut steps: VecDeque<_> = plan.steps.into();
        let (next, wait) = match steps.pop_front() {
            Some(step) => (Next::Type(step.keys), step.wait),
            None => (Next::EndInput, END_OF_INPUT_WAIT),
        };
        *self = Self::Quitting { steps, until: now.saturating_add(wait), grace: plan.grace };
        Some(next)
    }

    /// The program has ended; its remaining processes have `grace`.
    pub(super) fn exited(&mut self, now: Duration, grace: Duration) -> Option<Next> {
        match self {
            Self::NotAsked => {
                *self = Self::Asked { kill_at: now.saturating_add(grace), is_wished: false };
                Some(Next::HangUp)
            }
            Self::Quitting { grace, .. } => {
                let grace = *grace;
                Some(self.hang_up(now, grace))
            }
            Self::Asked { .. } | Self::Killed { .. } | Self::Over => None,
        }
    }

    /// The action that is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<Next> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        if let Self::Quitting { steps, until, .. } = self
            && let Some(step) = steps.pop_front()
        {
            *until = now.saturating_add(step.wait);
            return Some(Next::Type(step.keys));
        }
        self.harder(now)
    }

    fn harder(&mut self, now: Duration) -> Option<Next> {
        match self {
            Self::Quitting { grace, .. } => {
                let grace = *grace;
                Some(self.hang_up(now, grace))
            }
            Self::Asked { .. } => {
                let force_at = Some(now.saturating_add(ANSWER_MAX));
                *self = Self::Killed { force_at, give_up_at: now.saturating_add(VANISH_MAX) };
                Some(Next::Kill)
            }
            Self::Killed { force_at: force_at @ Some(_), .. } if force_at.is_some_and(|at| now >= at) => {
                *force_at = None;
                Some(Next::Force)
            }
            Self::Killed { force_at: None, give_up_at } if now >= *give_up_at => {
                *self = Self::Over;
                Some(Next::GiveUp)
            }
            Self::NotAsked | Self::Killed { .. } | Self::Over => None,
        }
    }

    fn hang_up(&mut self, now: Duration, grace: Duration) -> Next {
        *self = Self::Asked { kill_at: now.saturating_add(grace), is_wished: true };
        Next::HangUp
    }
}
