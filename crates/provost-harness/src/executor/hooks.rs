//! Calls the hooks of a hook point.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_engine::{Actor, CallDetails, HookCall, HookCallDetails, ToolMemory};
use provost_event::{
    EffectId, HookDecision, HookPolicy, HookReport, HookTrigger, OnFailure, Record, Seq, SessionId,
};
use provost_process::Confinement;
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::log_file::Informed;
use crate::hooks::Dispatch;
use crate::session_cache::Opening;
use crate::{FolderAccess, GrantedFolder, HookQuestion, HookQuestionTrigger};

impl HarnessExecutor {
    /// Calls the policy's hooks at the trigger's hook points, each within its time limit.
    pub(super) async fn ask_hooks(
        &self,
        id: EffectId,
        hook_call: &HookCall,
        cancel: &CancellationToken,
    ) -> Vec<HookReport> {
        let opening = match self.known.opening(self.backend(), hook_call.session).await {
            Ok(opening) => opening,
            Err(error) => return not_asked(hook_call, &error.to_string()).into_iter().collect(),
        };
        let hooks = &*opening.policy.hooks;
        if !hooks.iter().any(|hook| hook.is_asked(&hook_call.about, opening.agent.parent)) {
            return Vec::new();
        }
        let records = self.results(hook_call).await;
        let hook_call = self.with_priority(hook_call).await;
        let env_file = match &hook_call.about {
            HookTrigger::Session { .. } => self.new_env_file(hook_call.session).await,
            _ => None,
        };
        let place = HookPlace {
            folder: self.current_folder(hook_call.shell.as_ref(), &opening),
            confinement: self.hooks_confinement(hook_call.session, &opening, env_file.as_deref()),
            env_file,
        };
        let trigger = HookQuestionTrigger::HookCall(hook_call.clone());
        let question = question(trigger, &opening, place, records);
        let programs = Informed::new(self, hook_call.session, id.seq);
        self.dispatch(hooks, &programs, &question, cancel).all().await
    }

    /// The file with variables for the commands of a run's agents, as hooks leave it at the session's start.
    pub(super) fn env_file(&self, session: SessionId) -> Option<PathBuf> {
        let root = SessionId::root(session.run);
        Some(self.hook_files(session.run)?.join("env").join(format!("{root}.sh")))
    }

    /// The same, empty: each start of the session begins anew.
    async fn new_env_file(&self, session: SessionId) -> Option<PathBuf> {
        let path = self.env_file(session)?;
        let made = path.clone();
        let make = move || {
            std::fs::create_dir_all(made.parent()?).ok()?;
            std::fs::write(&made, "").ok()
        };
        tokio::task::spawn_blocking(make).await.ok()??;
        Some(path)
    }

    /// The agent's current folder: that of its shell, if it is still there.
    pub(super) fn current_folder(&self, shell: Option<&ToolMemory>, opening: &Opening) -> Arc<Path> {
        let folder = shell.and_then(|shell| self.tools.get(&shell.tool)?.folder(Some(&shell.memory)));
        match folder.filter(|folder| folder.is_dir()) {
            Some(folder) => folder.into(),
            None => opening.workspace.clone(),
        }
    }

    pub(super) fn dispatch<'a>(
        &'a self,
        hooks: &'a [HookPolicy],
        programs: &'a Informed<'a>,
        question: &'a Arc<HookQuestion>,
        cancel: &'a CancellationToken,
    ) -> Dispatch<'a> {
        let (registry, clock) = (&self.deps.hooks, &*self.deps.clock);
        Dispatch { hooks, registry, programs, question, clock, cancel }
    }

    /// With the priority of the configured sub-agent to spawn: it is in the run's policy, not in the agent's.
    async fn with_priority(&self, hook_call: &HookCall) -> HookCall {
        let mut hook_call = hook_call.clone();
        let run = hook_call.session.run;
        if let (HookTrigger::Spawn { .. }, HookCallDetails::Call(CallDetails { wanted: Some(wanted), .. })) =
            (&hook_call.about, &mut hook_call.details)
            && let Some(name) = &wanted.agent
        {
            let run = self.backend().state(run.into()).await.ok();
            let policy = run.as_ref().and_then(|run| match run {
                Actor::Run(state) => state.policy(),
                Actor::Session(_) => None,
            });
            let configured = policy.and_then(|policy| policy.agents.iter().find(|agent| agent.name == *name));
            wanted.priority = configured.map(|agent| agent.priority);
        }
        hook_call
    }

    /// What confines the hooks of an agent that are programs: its sandbox, if the settings say so. There they read the
    /// run's transcripts, and write `env_file`, which the agent's own programs don't.
    pub(super) fn hooks_confinement(
        &self,
        session: SessionId,
        opening: &Opening,
        env_file: Option<&Path>,
    ) -> Confinement {
        if !opening.policy.sandbox.hooks {
            return Confinement::Strongest;
        }
        let granted = |path: &Path, access| {
            let path = std::fs::create_dir_all(path).and_then(|()| path.canonicalize()).ok()?;
            Some(GrantedFolder { path, access })
        };
        let transcripts = self.hook_files(session.run);
        let read = transcripts.and_then(|folder| granted(&folder, FolderAccess::Read));
        let written = env_file.and_then(Path::parent).and_then(|folder| granted(folder, FolderAccess::Write));
        self.sandbox_of(session, opening).confinement_with(read.into_iter().chain(written).collect())
    }

    /// The results of tool calls that the question refers to, as far as they can be read.
    async fn results(&self, hook_call: &HookCall) -> Vec<Arc<Record>> {
        let places = match &hook_call.details {
            HookCallDetails::Result { finished, .. } => vec![*finished],
            HookCallDetails::Batch { calls } => calls.iter().map(|(_, finished)| *finished).collect(),
            _ => Vec::new(),
        };
        let mut results = Vec::with_capacity(places.len());
        for place in places {
            results.extend(self.entry_at(hook_call.session, place).await);
        }
        results
    }

    async fn entry_at(&self, session: SessionId, place: Seq) -> Option<Arc<Record>> {
        let before = Seq(place.0.saturating_sub(1));
        let read = self.backend().read(session.into(), before, 1).await;
        if let Err(error) = &read {
            tracing::warn!(%session, seq = %place, %error, "a result that hooks are asked about can't be read");
        }
        read.ok()?.into_iter().find(|record| record.seq == place)
    }
}

/// Where the program of a hook runs.
pub(super) struct HookPlace {
    pub(super) folder: Arc<Path>,
    pub(super) confinement: Confinement,
    pub(super) env_file: Option<PathBuf>,
}

pub(super) fn question(
    trigger: HookQuestionTrigger,
    opening: &Opening,
    place: HookPlace,
    records: Vec<Arc<Record>>,
) -> Arc<HookQuestion> {
    let HookPlace { folder, confinement, env_file } = place;
    Arc::new(HookQuestion {
        trigger,
        workspace: opening.workspace.clone(),
        folder,
        agent: opening.agent.clone(),
        model: opening.policy.model.clone(),
        transcript_path: None,
        root_transcript_path: None,
        env_file,
        records,
        confinement,
        voice: None,
    })
}

/// The report if even the hooks are unknown: a denial where a hook without an answer denies.
fn not_asked(hook_call: &HookCall, why: &str) -> Option<HookReport> {
    let point = hook_call.about.points().first().copied()?;
    let why = format!("the hooks can't be asked: {why}");
    let decision = match OnFailure::default_at(point) {
        OnFailure::Deny => HookDecision::Deny(why),
        OnFailure::Continue | OnFailure::ContinueIfRun => HookDecision::Broken(why),
    };
    Some(HookReport::new("hooks", point, decision))
}
