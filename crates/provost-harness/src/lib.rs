//! The harness of Provost: its ports to the outside, and the executor that performs the engine's decisions.
//!
//! It is stateless: an agent's state is its log. [`AgentHarness`] is the plain interface for programs that embed
//! it.

mod backend;
mod blobs;
mod clock;
mod control;
mod deps;
mod entry_chain;
mod executor;
mod external;
mod fence;
mod final_text;
mod git;
mod harness;
mod hook_command;
mod hook_program;
pub mod hooks;
mod image;
mod lineage;
mod live_output;
mod live_pieces;
mod model;
mod model_gateway;
mod model_panic;
mod observer;
mod observers;
mod output;
mod power;
mod preamble;
mod private_folder;
mod prompt;
mod prompt_queue;
mod read_back;
mod recall;
mod remote_start;
mod run_order;
mod sandbox;
mod secrets;
mod services;
mod session_cache;
mod session_log;
mod shell_hook;
pub mod spans;
mod stop_hook;
mod supervisor;
mod tool;
mod trace;
mod transcript;
mod watch;
mod work;
mod workspace;

pub use backend::{
    Backend, BackendError, Catalog, Holder, Log, PlacedEntry, PlacedRecord, Posted, RunCursor, RunFilter,
    RunLease, RunPosition, RunQuery, RunStatus, RunStatusFilter, RunSummary, Unheld, Worker,
};
pub use blobs::{BLOB_URI, Blobs};
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use control::{Control, KeepsApproved, OpenApproval};
pub use deps::{HarnessDeps, HarnessError};
pub use entry_chain::{ChainLink, EntryChain};
pub use executor::Executor;
pub use external::{ConsentTool, Exchange, ExternalAgents, NoExternalAgents, TerminalLog, consent_tools};
pub use final_text::final_text;
pub use git::confine_own_git;
pub use harness::{AgentHarness, ForkRequest, Harness, RemadeWorktree, ResumeRequest, RunTools, TurnState};
pub use hook_command::HookCommand;
pub use hook_program::{
    HookAgent, HookAnswer, HookPrograms, HookQuestion, HookQuestionTrigger, HookTranscript, HookUrgency,
    HookVoice, LogTranscript, NoHookPrograms,
};
pub use hooks::HookRegistry;
pub use image::{Goal, IMAGE_BYTES_MAX, ImageData, ImageError};
pub use lineage::{ForkError, ForkPoint, read_conversation};
pub use live_output::LiveOutput;
pub use live_pieces::{LivePiece, LivePieces, live_pieces, live_socket};
pub use model::{DeltaSink, Model, ModelRequest, Models, ToolChoice, UnknownModel};
pub use model_gateway::{GatewayAccess, GatewayActivity, GatewayFailure, ModelGateway};
pub use observer::{ObservedBody, Observer, ObserverError, ObserverEvent, ObserverEventKind, observe_with};
pub use observers::{
    CostTotals, CostTracker, JsonlTrace, MemoryTrace, ObserverOptions, ObserverReport, ObserverState,
    Observers, RunLogger, RunObservers, Spending,
};
pub use power::{NoPower, Power, PowerGuard};
pub use preamble::{
    ENVIRONMENT_BYTES_MAX, HostFacts, ProjectRules, RULES_BYTES_MAX, RulesFile, environment, preamble,
    project_rules, skills_preamble,
};
pub use private_folder::PrivateFolder;
pub use prompt::system_prompt;
pub use prompt_queue::{Prompt, PromptQueue};
pub use provost_event::StopHookVerdict;
pub use provost_process::MaskedPaths;
pub use recall::Recall;
pub use remote_start::{RemoteStart, RemoteStartError, fetch_remote, start_remote};
pub use run_order::{LogPart, log_parts, read_run};
pub use sandbox::{
    AgentSandbox, FolderAccess, GrantedFolder, Inspection, NoSandbox, PROTECTED_FILES, PROTECTED_FOLDERS,
    Sandbox, SandboxRequest, ScratchFolder, masked_paths,
};
pub use secrets::{Redactor, without_keys};
pub use services::{
    SERVICE_GRACE, ServiceEnd, ServiceError, ServiceRecord, ServiceRequest, ServiceStarter, ServiceState,
    Services, StoppedBy, Supervision, report_service, supervise_service,
};
pub use session_log::{LogItem, LogPage, SessionLog, Utterance};
pub use shell_hook::ShellStopHook;
pub use stop_hook::{StopHookContext, StopHookHandler};
pub use supervisor::{
    Action, ChangedFiles, Evidence, FileHunks, GoalSupervisor, HookResult, Inquiry, Judgement, Since,
    parse_verdict,
};
pub use tool::{FileReach, Tool, ToolContext, ToolOutput, ToolRegistry};
pub use trace::{NoTrace, TraceBody, TraceError, TraceEvent, TraceSink};
pub use transcript::{Dialect, Message, Part, Role, Transcript};
pub use watch::{HarnessCallback, NoCallback};
pub use work::{
    ForkRun, IDEMPOTENCY_KEY_CHARS_MAX, NotStarted, ResumeRun, RunStarts, StartError, StartRun, StartsWork,
    Work, WorkLimits,
};
pub use workspace::{
    FileChange, FileChangeKind, WorkspaceDiff, WorkspaceDiffError, WorkspaceDiffQuery, workspace_diff,
};
