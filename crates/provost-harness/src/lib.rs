//! The harness of Provost: its ports to the outside, and the executor that performs the engine's decisions.
//!
//! It is stateless: an agent's state is its log. [`AgentHarness`] is the plain interface for programs that embed
//! it.

mod blobs;
mod clock;
pub mod conformance;
mod deps;
mod entry_chain;
mod executor;
mod external;
mod face;
mod final_text;
mod git;
mod home;
mod hook_program;
pub mod hooks;
mod image;
mod known;
mod lineage;
mod model;
mod observer;
mod observers;
mod output;
mod power;
mod private_folder;
mod prompt;
mod read_back;
mod recall;
mod secrets;
mod session_log;
mod shell_hook;
mod stop_hook;
mod supervisor;
mod tool;
mod trace;
mod transcript;
mod watch;
mod words;
mod workspace;

pub use blobs::{BLOB_URI, Blobs};
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use deps::{HarnessDeps, HarnessError};
pub use entry_chain::{ChainLink, EntryChain};
pub use executor::Executor;
pub use external::{Exchange, ExternalAgents, NoExternalAgents, TerminalLog, consent_tools};
pub use face::{AgentHarness, ForkRequest, Harness, RemadeWorktree, ResumeRequest, TurnState};
pub use final_text::final_text;
pub use home::{Home, HomeError, Posted, RunQuery, RunStatus, RunSummary, Serving};
pub use hook_program::{
    HookAgent, HookAnswer, HookPrograms, HookQuestion, HookQuestionSubject, NoHookPrograms,
};
pub use hooks::HookRegistry;
pub use image::{Goal, IMAGE_BYTES_MAX, ImageData, ImageError};
pub use lineage::{ForkError, ForkPoint, read_conversation};
pub use model::{DeltaSink, Model, ModelRequest, Models, ToolChoice, UnknownModel};
pub use observer::{Observed, ObservedBody, ObservedKind, Observer, ObserverError, observe_with};
pub use observers::{
    CostTotals, CostTracker, JsonlTrace, MemoryTrace, ObserverOptions, ObserverReport, ObserverState,
    Observers, RunLogger, RunObservers, Spending,
};
pub use power::{NoPower, Power, PowerGuard};
pub use private_folder::PrivateFolder;
pub use prompt::system_prompt;
pub use provost_event::StopHookVerdict;
pub use read_back::read_actor;
pub use recall::Recall;
pub use secrets::Redactor;
pub use session_log::{Said, SessionLog, Shown, Stretch};
pub use shell_hook::ShellStopHook;
pub use stop_hook::{StopHookContext, StopHookHandler};
pub use supervisor::{
    Action, ChangedFiles, Evidence, GoalSupervisor, HookResult, Inquiry, Judgement, Since, parse_verdict,
};
pub use tool::{Tool, ToolContext, ToolOutput, Toolbox};
pub use trace::{NoTrace, TraceBody, TraceError, TraceEvent, TraceSink};
pub use transcript::{Dialect, Message, Part, Role, Transcript};
pub use watch::{HarnessCallback, NoCallback};
pub use words::{Prompt, Words};
