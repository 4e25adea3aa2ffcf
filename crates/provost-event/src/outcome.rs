//! Outcomes: how a session or run ends or is suspended.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{ErrorClass, MicroDollars, ModelTrouble, SessionId, Verdict, Verification, counted, grouped};

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Tokens of all kinds.
    Tokens,
    /// Money, in micro-dollars.
    Money,
    /// Turns of one agent, or of all agents of a run.
    Turns,
    /// Worked time, in milliseconds.
    WallTime,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOwner {
    /// The run's limit: it counts all its agents.
    #[default]
    Run,
    /// An agent's limit: it counts the agent and those below it.
    Agent,
}

impl LimitOwner {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

/// Why a call doesn't fit although the limit isn't used up, in the dimension's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortfall {
    /// The maximum that the smallest useful call takes.
    pub needs: u64,
    /// Reserved for calls in flight of other agents.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved: u64,
    /// Kept for the final summary.
    #[serde(default, skip_serializing_if = "is_default")]
    pub summary: u64,
    /// Kept for judges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub judges: u64,
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exhausted {
    /// Which limit.
    pub dimension: Dimension,
    /// The amount used, in the dimension's unit.
    pub used: u64,
    /// The limit, in the dimension's unit.
    pub limit: u64,
    /// The owner of the limit.
    #[serde(default, skip_serializing_if = "LimitOwner::is_run")]
    pub owner: LimitOwner,
    /// The shortfall of the call that doesn't fit; absent if no call was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<Shortfall>,
    /// Why there is no final summary, if none could be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsummarized: Option<Unsummarized>,
}

/// Why an agent wasn't asked for a final summary at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unsummarized {
    /// The budget was too small even for that.
    CantBePaid,
    /// The agent hasn't answered once.
    NeverAnswered,
}

impl fmt::Display for Unsummarized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CantBePaid => "it can't be paid either",
            Self::NeverAnswered => "the agent hasn't answered once",
        })
    }
}

impl Exhausted {
    /// A limit of the run that is used up, without a call that doesn't fit.
    #[must_use]
    pub const fn new(dimension: Dimension, used: u64, limit: u64) -> Self {
        Self { dimension, used, limit, owner: LimitOwner::Run, shortfall: None, unsummarized: None }
    }

    /// The rest of the limit, including reserved and kept amounts.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    fn show(&self, amount: u64) -> String {
        match self.dimension {
            Dimension::Money => MicroDollars(amount).to_string(),
            Dimension::WallTime => format!("{}.{:01} s", grouped(amount / 1000), amount % 1000 / 100),
            Dimension::Tokens | Dimension::Turns => grouped(amount),
        }
    }

    fn show_shortfall(&self, f: &mut fmt::Formatter<'_>, shortfall: Shortfall) -> fmt::Result {
        let Shortfall { needs, reserved, summary, judges } = shortfall;
        let left = self.left();
        let is_counted = matches!(self.dimension, Dimension::Tokens | Dimension::Turns);
        let are = |amount: u64| if is_counted && amount != 1 { "are" } else { "is" };
        let needed = match self.dimension {
            Dimension::Tokens => counted(needs, "token"),
            Dimension::Turns => counted(needs, "turn"),
            Dimension::Money | Dimension::WallTime => self.show(needs),
        };
        write!(f, "; the next call needs about {needed}")?;
        // Kept amounts matter only if the call would fit without them.
        if needs <= left {
            let parts = [
                // Said at the end where it doesn't pay for one.
                (if self.unsummarized.is_none() { summary } else { 0 }, "kept for the final summary"),
                (judges, "kept for judges"),
                (reserved, "reserved for calls of other agents"),
            ];
            for (amount, what) in parts.into_iter().filter(|(amount, _)| *amount > 0) {
                write!(f, ", {} {} {what}", self.show(amount), are(amount))?;
            }
        }
        write!(f, "; {} {} left", self.show(left), are(left))
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.dimension {
            Dimension::Tokens => "Token",
            Dimension::Money => "Money",
            Dimension::Turns => "Turn",
            Dimension::WallTime => "Time",
        };
        let owner = match (self.owner, self.dimension) {
            (LimitOwner::Agent, _) => " of the agent",
            (LimitOwner::Run, Dimension::Turns) => " of the run",
            (LimitOwner::Run, _) => "",
        };
        let used = self.show(self.used);
        let limit = self.show(self.limit);
        match self.shortfall {
            _ if self.used > self.limit => write!(f, "{name} budget{owner} exceeded: {used} > {limit}")?,
            Some(shortfall) if self.used < self.limit => {
                write!(f, "{name} budget{owner} too small to go on: {used} of {limit} used")?;
                self.show_shortfall(f, shortfall)?;
            }
            Some(_) | None => write!(f, "{name} budget{owner} used up: {used} of {limit}")?,
        }
        let kept = self.shortfall.filter(|short| short.needs <= self.left()).map_or(0, |short| short.summary);
        match self.unsummarized {
            Some(Unsummarized::CantBePaid) if kept > 0 => {
                write!(
                    f,
                    "; no final summary: what was kept for it ({}) no longer pays for one",
                    self.show(kept)
                )
            }
            Some(why) => write!(f, "; no final summary: {why}"),
            None => Ok(()),
        }
    }
}

/// Why a session is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// It was requested.
    Asked {
        /// By whom.
        by: String,
        /// The trouble of the provider that it waited for then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        awaited: Option<Box<ModelTrouble>>,
    },
    /// The same call with the same arguments gave the same result this many consecutive times.
    RepeatedCall {
        /// The tool.
        tool: String,
        /// How many times.
        times: u32,
    },
    /// In this many consecutive turns every call was rejected, denied or failed as a tool.
    ToolFailures {
        /// How many.
        turns: u32,
    },
    /// The agent's workspace was deleted, moved or unmounted: no call can work in it.
    WorkspaceGone {
        /// The folder.
        path: PathBuf,
    },
    /// The same turn was interrupted this many times.
    CrashLoop {
        /// How many times.
        times: u32,
    },
    /// A hook paused it.
    Hook {
        /// The hook.
        hook: String,
        /// Its reason; may be empty.
        reason: String,
    },
    /// An approval timed out; the question stays open.
    Approval {
        /// The call's tool.
        tool: String,
    },
    /// An external agent's program waited for input or approval, and got none in time.
    Unanswered {
        /// What it waits for.
        waits_for: String,
    },
    /// It yields to another agent, and continues by itself when a slot is free.
    Preempted {
        /// The other agent, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<SessionId>,
    },
    /// The agent made no measurable progress for this many turns.
    Stuck {
        /// How many.
        turns: u32,
    },
    /// It can't be determined whether the goal is reached: the judges failed this many consecutive times.
    JudgeUnreachable {
        /// How many times; 0 if no judge could be called.
        times: u32,
        /// The last error.
        error: String,
    },
    /// The goal was cleared; a resume continues without one.
    GoalCleared {
        /// By whom.
        by: String,
    },
    /// A model gives no answer, or no usable one.
    Model(Box<ModelTrouble>),
    /// A workflow step has failed and needs a decision: a resume retries it.
    StepFailed {
        /// The step.
        step: String,
        /// The outcome of its last attempt.
        reason: String,
    },
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { by, awaited: None } => write!(f, "paused by {by}"),
            Self::Asked { by, awaited: Some(trouble) } => {
                let ModelTrouble { model, message, .. } = &**trouble;
                write!(f, "paused by {by} while {} ({model}): {message}", trouble.past())
            }
            Self::RepeatedCall { tool, times } => {
                write!(
                    f,
                    "repeated call: the same `{tool}` call gave the same result {} in a row",
                    counted((*times).into(), "time")
                )
            }
            Self::ToolFailures { turns } => {
                write!(
                    f,
                    "no tool call succeeded in {} in a row: each was rejected, denied or failed",
                    counted((*turns).into(), "turn")
                )
            }
            Self::WorkspaceGone { path } => {
                write!(f, "the workspace {} is gone: it was deleted, moved or unmounted", path.display())
            }
            Self::CrashLoop { times } => {
                write!(f, "the same turn was interrupted {}", counted((*times).into(), "time"))
            }
            Self::Hook { hook, reason } if reason.is_empty() => write!(f, "paused by hook {hook}"),
            Self::Hook { hook, reason } => write!(f, "paused by hook {hook}: {reason}"),
            Self::Approval { tool } => write!(f, "a `{tool}` call waits for approval"),
            Self::Unanswered { waits_for } => write!(f, "the program got no answer: {waits_for}"),
            Self::Preempted { by: Some(by) } => write!(f, "yields to agent {by}"),
            Self::Preempted { by: None } => f.write_str("yields to others"),
            Self::Stuck { turns } => {
                write!(f, "stuck: {} without measurable progress", counted((*turns).into(), "turn"))
            }
            Self::JudgeUnreachable { times, error } => {
                if *times == 0 {
                    return write!(f, "no judge can be asked: {error}");
                }
                let often = if *times == 1 { "one failure" } else { "failures in a row" };
                let times = if *times == 1 { String::new() } else { format!("{times} ") };
                write!(f, "the judge gives no verdict: {times}{often}, the last: {error}")
            }
            Self::GoalCleared { by } => write!(f, "the goal was cleared by {by}; resume goes on without it"),
            Self::Model(trouble) => trouble.fmt(f),
            Self::StepFailed { step, reason } => {
                write!(f, "step `{step}` has failed ({reason}); resume tries it again, cancel ends the run")
            }
        }
    }
}

/// How a segment of work of a session or run ended.
///
/// Completed, aborted, cancelled and failed are ends, recorded by an `ended` entry: another segment follows only
/// on request. The others are suspensions, recorded by a `paused` entry. `resume` continues in the same log after
/// either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent claims that the work is done, and no configured check objected.
    Completed {
        /// The agent's own verdict, if it gave one; of a workflow PARTIAL if a step has failed or was skipped.
        verdict: Option<Verdict>,
        /// Whether anything besides the agent has confirmed it.
        #[serde(flatten)]
        verification: Verification,
    },
    /// A limit was reached.
    BudgetExhausted(Exhausted),
    /// A stop hook or a judge did not allow the end.
    Blocked {
        /// The last reasons.
        reasons: Vec<String>,
    },
    /// It waits for a decision or an event.
    Paused {
        /// Why.
        why: PauseReason,
    },
    /// A hook ended it.
    Aborted {
        /// The hook.
        hook: String,
        /// Its reason.
        reason: String,
    },
    /// It was cancelled.
    Cancelled {
        /// By whom.
        by: String,
    },
    /// It failed.
    Failed {
        /// What kind of failure.
        class: ErrorClass,
        /// The error message.
        message: String,
    },
}

impl Outcome {
    /// Completed without an agent's verdict, and confirmed by a check.
    pub const VERIFIED: Self = Self::Completed { verdict: None, verification: Verification::Passed };
    /// Completed without an agent's verdict; no check was configured.
    pub const UNVERIFIED: Self = Self::Completed { verdict: None, verification: Verification::None };

    /// Whether anything besides the agent has confirmed that the work is done; `None` if it isn't completed.
    #[must_use]
    pub const fn verification(&self) -> Option<&Verification> {
        match self {
            Self::Completed { verification, .. } => Some(verification),
            Self::BudgetExhausted(_)
            | Self::Blocked { .. }
            | Self::Paused { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// The agent's own verdict of a completed one, if that is FAIL or PARTIAL.
    #[must_use]
    pub const fn verdict_not_passed(&self) -> Option<Verdict> {
        match self {
            Self::Completed { verdict: Some(verdict @ (Verdict::Fail | Verdict::Partial)), .. } => {
                Some(*verdict)
            }
            Self::Completed { verdict: None | Some(Verdict::Pass), .. }
            | Self::BudgetExhausted(_)
            | Self::Blocked { .. }
            | Self::Paused { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Whether it is an end: nothing follows unless another segment is requested.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Aborted { .. } | Self::Cancelled { .. } | Self::Failed { .. } => {
                true
            }
            Self::BudgetExhausted(_) | Self::Blocked { .. } | Self::Paused { .. } => false,
        }
    }

    /// Whether it is a suspension that yields to another agent.
    #[must_use]
    pub const fn is_preempted(&self) -> bool {
        matches!(self, Self::Paused { why: PauseReason::Preempted { .. } })
    }

    /// Whether an agent with this outcome has failed and a restart may help. Limits, refusals, blocks and
    /// decisions of the user or a hook aren't such failures, and outages are waited out.
    #[must_use]
    pub const fn may_restart(&self) -> bool {
        match self {
            Self::Failed { class, .. } => class.may_restart(),
            Self::Paused { why } => match why {
                PauseReason::RepeatedCall { .. } | PauseReason::ToolFailures { .. } => true,
                PauseReason::Model(trouble) => trouble.class.may_restart() && !trouble.cause().is_outside(),
                PauseReason::Asked { .. }
                | PauseReason::WorkspaceGone { .. }
                | PauseReason::CrashLoop { .. }
                | PauseReason::Hook { .. }
                | PauseReason::Approval { .. }
                | PauseReason::Unanswered { .. }
                | PauseReason::Preempted { .. }
                | PauseReason::Stuck { .. }
                | PauseReason::JudgeUnreachable { .. }
                | PauseReason::GoalCleared { .. }
                | PauseReason::StepFailed { .. } => false,
            },
            Self::Completed { .. }
            | Self::BudgetExhausted(_)
            | Self::Blocked { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. } => false,
        }
    }

    /// One word, for tables.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::BudgetExhausted(_) => "budget exhausted",
            Self::Blocked { .. } => "blocked",
            Self::Paused { why: PauseReason::Model(_) } => "suspended",
            Self::Paused { .. } => "paused",
            Self::Aborted { .. } => "aborted",
            Self::Cancelled { .. } => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { verdict: Some(verdict), verification } => {
                write!(f, "completed (verdict {verdict}), {verification}")
            }
            Self::Completed { verdict: None, verification } => write!(f, "completed, {verification}"),
            Self::BudgetExhausted(exhausted) => exhausted.fmt(f),
            Self::Blocked { reasons } => write!(f, "blocked: {}", reasons.join("; ")),
            Self::Paused { why } => why.fmt(f),
            Self::Aborted { hook, reason } => write!(f, "aborted by {hook}: {reason}"),
            Self::Cancelled { by } => write!(f, "cancelled by {by}"),
            Self::Failed { class, message } => write!(f, "{}: {message}", class.words()),
        }
    }
}
