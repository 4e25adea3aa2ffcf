//! Read models of runs: what they are doing, what they wait for, and what they took.
//!
//! Each view is a plain `serde` type, computed over a [`Backend`](provost_harness::Backend) from the logs; those of
//! settings ([`ModelList`], [`CheckedSettings`]) are filled by who has read the settings. The commands of [`ViewKind`]
//! print these types with `--json`. Every top-level type has the member `v`, the [version](ViewVersion) of all views,
//! and a JSON Schema ([`ViewKind::schema`]). Money is in millionths of a US
//! dollar (`…_micro_usd`), times are in milliseconds since 1970-01-01T00:00Z (`…_at_ms`), durations in milliseconds
//! (`…_ms`). A member without a value is null, or absent where its documentation says so.
//!
//! Reading one run reads the logs of no other. The crate prints nothing, and knows no widths, colours or arguments.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "views are data")]

mod agents;
mod answer_fields;
mod approvals;
mod changes;
mod checked;
mod conversation;
mod details;
pub mod explain;
mod facts;
mod gateway;
mod goals;
mod groups;
mod kind;
mod log_entry;
mod mcp;
mod models;
mod names;
mod recordings;
mod run_list;
mod safe_text;
mod seen;
mod segments;
mod services;
mod spend_curve;
mod spending;
mod status;
mod steps;
mod store;
mod timeline;
mod version;
mod wait;

/// Runs that the views read at the same time: over an engine each read is a request.
pub const RUNS_AT_ONCE: usize = 16;

pub use agents::{
    AgentOpening, AgentOpenings, AgentsRead, RunAgent, RunAgentState, agent_openings, goal_state_of,
};
pub use answer_fields::{AnswerChoice, AnswerField, AnswerKind};
pub use approvals::{
    Approval, ApprovalQuestion, OpenApprovals, RunApprovals, ToolQuestion, answer_to, awaits_answer,
    last_answer, open_approvals, open_in, open_of, question_at, questions_of, short_id,
};
pub use changes::{ChangedFile, ChangedFileState, RunChanges};
pub use checked::{
    CheckedAgent, CheckedGoal, CheckedHook, CheckedSettings, CheckedSkill, CheckedStopHook, ProjectRulesFile,
    ProjectTrust, SettingProblem, SettingValue, TrustRequest, TrustWord,
};
pub use conversation::{ConversationView, SeenImage, SeenMessage, SeenPart, SeenRole, SeenToolResult};
pub use details::{RunDetails, RunSlots, RunTree};
pub use facts::{AgentProgress, CompactionCounts, ProgramFacts, RunFacts};
pub use gateway::{GatewayCalls, GatewayModelUse, GatewayUse};
pub use goals::{AgentGoal, GoalAnswer, GoalVerification, JudgeSums, Judging, RunGoals};
pub use groups::{GroupedRun, GroupedRuns, KeptGroups, RunGroup, RunsOfGroup, StateMark};
pub use kind::ViewKind;
pub use log_entry::LogEntry;
pub use mcp::{
    McpCallResult, McpLogin, McpProgram, McpRefusedTool, McpServerState, McpServerView, McpTestView,
    McpToolView,
};
pub use models::{FactsOrigin, KeyState, ListedModel, ListedProvider, ModelList};
pub use names::AgentNames;
pub use recordings::AgentRecordings;
pub use run_list::{ListedRun, RunListItem, StepCounts, is_money_partial};
pub use safe_text::{safe, visible, visible_json};
pub use seen::SeenRuns;
pub use segments::{Segment, SegmentCounter, SettingsChange, segments_of};
pub use services::{ServiceStateView, ServiceView};
pub use spend_curve::{ModelCurve, SpendCurve};
pub use spending::{Spending, SpendingGroup, SpendingQuery, SpendingReport, SpendingRow, SpendingSums};
pub use status::{AwaitedProvider, CurrentStatus, ProviderWait, run_state, status_word, terminal_wait};
pub use steps::{WorkflowStep, WorkflowStepState};
pub use store::{CheckedStore, FoundProblem, KeptRun, PrunedRuns, RemovedRuns, SalvagedRun, StoreBackup};
pub use timeline::{AgentTimeline, CallProgress, TimelineCall, TimelineEvent, TimelineItem, TimelineTurn};
pub use version::{VIEW_VERSION, ViewVersion};
pub use wait::{Wait, WaitLeft};
