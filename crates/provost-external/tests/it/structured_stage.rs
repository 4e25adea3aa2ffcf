//! Agents with a structured stream, on the stage of the others: one script for all formats.

use std::sync::Arc;

use provost_event::{
    AgentPolicy, Channel, ConversationEntry, Entry, ExternalPolicy, Outcome, RunPolicy, TerminalEvent, Usage,
};
use provost_external::{Drivers, DriversOptions};
use provost_harness::{AgentHarness, Harness, HarnessDeps, Models, ToolRegistry};
use provost_terminal::Profile;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::stage::{DEADLINE, Program, RUN, Stage};

/// The format that the script uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Codex,
    Acp,
    Claude,
}

pub(crate) const ALL: [Speaks; 3] = [Speaks::Codex, Speaks::Acp, Speaks::Claude];

/// The protocols that report more than messages.
pub(crate) const TYPED: [Speaks; 2] = [Speaks::Codex, Speaks::Acp];

impl Speaks {
    const fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Acp => "acp",
            Self::Claude => "claude",
        }
    }

    fn profile(self) -> Profile {
        let format = match self {
            Self::Codex => "codex-app-server",
            Self::Acp => "acp",
            Self::Claude => "stream-json",
        };
        let name = self.name();
        // The script asks in any case; the argument declares that.
        let args = match self {
            Self::Claude => "\"claude\", \"--permission-prompt-tool\", \"stdio\"".to_owned(),
            Self::Codex | Self::Acp => format!("\"{name}\""),
        };
        let text = format!(
            "name = \"speaks-{name}\"\nkind = \"agent\"\n[program]\ncommands = [\"none\"]\n\
             [[channels]]\nformat = \"{format}\"\nargs = [{args}]\n"
        );
        Profile::parse("speaks", &text).expect("a profile")
    }
}

/// A program that doesn't know its stream, one without a login, and one that has options of which only `speaks.py` counts there.
fn others() -> [Profile; 3] {
    let of = |name: &str, channel: &str| {
        let text = format!(
            "name = \"{name}\"\nkind = \"plain\"\ninherits = \"generic\"\n[program]\ncommands = [\"speaks\"]\n[[channels]]\n{channel}\n"
        );
        Profile::parse("other", &text).expect("a profile")
    };
    [
        of("speaks-old", "format = \"acp\"\nargs = [\"old\"]"),
        of("speaks-locked", "format = \"codex-app-server\"\nargs = [\"codex\", \"locked\"]"),
        of("speaks-options", "format = \"acp\"\nargs = [\"acp\"]\noptions = { \"--known\" = [] }"),
    ]
}

/// A stage with one agent.
pub(crate) struct Talk {
    pub(crate) stage: Stage,
    speaks: Speaks,
}

/// A run that is being worked on.
pub(crate) struct Talking {
    pub(crate) run: JoinHandle<Outcome>,
    pub(crate) cancel: CancellationToken,
}

impl Talk {
    pub(crate) fn new(speaks: Speaks) -> Self {
        let stage = Stage::new();
        let script = stage.folder.path().join("speaks.py");
        std::fs::write(script, include_str!("structured_agent.py")).expect("an agent");
        Self { stage, speaks }
    }

    fn harness(&self) -> AgentHarness {
        let env = ["PATH", "HOME", "LANG"];
        let drivers = Drivers::new(DriversOptions {
            folder: self.stage.terminals(),
            records: true,
            env: env
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
                .collect(),
            passed: Vec::new(),
            profiles: ALL.iter().map(|speaks| speaks.profile()).chain(others()).collect(),
            gateway: None,
            masked: Arc::default(),
            private: Arc::default(),
            streams: None,
        });
        AgentHarness::new(HarnessDeps {
            external: Arc::new(drivers),
            ..HarnessDeps::new(self.stage.backend.clone(), Models::new(), ToolRegistry::new())
        })
    }

    pub(crate) fn policy(&self) -> RunPolicy {
        self.policy_with(|_| {}, |_| {})
    }

    pub(crate) fn policy_with(
        &self,
        external: impl FnOnce(&mut ExternalPolicy),
        agent: impl FnOnce(&mut AgentPolicy),
    ) -> RunPolicy {
        let script = self.stage.folder.path().join("speaks.py").display().to_string();
        let program = Program::named("python3").with(|policy| {
            policy.args = vec![script];
            policy.profile = format!("speaks-{}", self.speaks.name());
            policy.channel = Channel::Auto;
            policy.submits_goal = true;
        });
        program.with(external).policy_with(&self.stage, agent)
    }

    pub(crate) async fn start(&self, goal: &str, policy: RunPolicy) -> Talking {
        talking(self.harness().start(RUN, goal, policy).await.expect("it starts"))
    }

    pub(crate) async fn run(&self, goal: &str, policy: RunPolicy) -> Outcome {
        self.start(goal, policy).await.outcome().await
    }

    /// Opens the run as another process does.
    pub(crate) async fn open(&self) -> Harness {
        self.harness().open(RUN).await.expect("it opens")
    }

    /// The script's input, one line each.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.stage.file("heard").unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// The prompts in its input, without their numbers.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let heard = self.heard();
        let prompts = heard.iter().filter_map(|line| line.strip_prefix("prompt "));
        prompts.map(|line| line.split_once(": ").expect("a number").1.to_owned()).collect()
    }

    pub(crate) async fn noted(&self) -> Vec<String> {
        self.stage.noted().await
    }

    /// The charged usage of the answers.
    pub(crate) async fn usage(&self) -> Vec<Usage> {
        let log = self.stage.log().await;
        let answers = log.iter().filter_map(|record| match &record.entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => Some(message.usage),
            _ => None,
        });
        answers.collect()
    }

    /// Waits until the script works on a prompt that has it hang.
    pub(crate) async fn hangs(&self) {
        let mark = self.stage.workspace().join("hung");
        let is_there = async {
            while !mark.exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, is_there).await.expect("it hangs in time");
    }

    /// Waits until a prompt has been given to the script.
    pub(crate) async fn is_told(&self) {
        self.stage.sees_event(|event| matches!(event, TerminalEvent::Submitted { .. })).await;
    }
}

pub(crate) fn talking(mut run: Harness) -> Talking {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    Talking { run: tokio::spawn(async move { run.run(&token).await.expect("it works") }), cancel }
}

impl Talking {
    pub(crate) async fn outcome(self) -> Outcome {
        timeout(DEADLINE, self.run).await.expect("in time").expect("no panic")
    }
}
