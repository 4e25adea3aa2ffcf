//! Read models of runs: what they are doing, what they wait for, and what they took.
//!
//! Each view is a plain `serde` type, computed over a [`Backend`](provost_harness::Backend) from the logs. What
//! `ps`, `approvals`, `goal show` and `cost` print with `--json` are these types, and so is what they draw. Every top-level type has the member `v`,
//! the [version](ViewVersion) of all views, and a JSON Schema ([`ViewKind::schema`]). Money is in millionths of a US
//! dollar (`…_micro_usd`), times are in milliseconds since 1970-01-01T00:00Z (`…_at_ms`), durations in milliseconds
//! (`…_ms`). A member without a value is null, or absent where its documentation says so.
//!
//! Reading one run reads the logs of no other. The crate prints nothing, and knows no widths, colours or arguments.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "views are data")]

mod approvals;
mod goals;
mod kind;
mod names;
mod run_list;
mod segments;
mod spending;
mod status;
mod version;
mod wait;

pub use approvals::{
    Approval, ApprovalQuestion, OpenApprovals, RunApprovals, answer_to, last_answer, open_approvals, open_in,
    open_of, question_at, questions_of, short_id,
};
pub use goals::{AgentGoal, GoalAnswer, GoalVerification, JudgeSums, Judging, RunGoals};
pub use kind::ViewKind;
pub use names::AgentNames;
pub use run_list::{ListedRun, RunListItem, StepCounts};
pub use segments::{Segment, SegmentCounter, SettingsChange, segments_of};
pub use spending::{Spending, SpendingGroup, SpendingQuery, SpendingReport, SpendingRow, SpendingSums};
pub use status::{AwaitedProvider, CurrentStatus, ProviderWait, run_state, status_word, terminal_wait};
pub use version::{VIEW_VERSION, ViewVersion};
pub use wait::{Wait, WaitLeft};
