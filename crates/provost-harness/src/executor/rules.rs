//! The rules for agents of the folder that a call works in.

use std::path::{Path, PathBuf};

use provost_engine::{Event, FolderRules, RulesSought, SessionEvent, ToolResult, ToolRun};
use provost_event::{ToolStatus, ToolSubject};

use super::HarnessExecutor;
use crate::preamble::rules_of_folder;
use crate::session_cache::Opening;

impl HarnessExecutor {
    /// Has the session told of the rules of the folder that a call worked in, if it doesn't know them. They come before
    /// the call's result in the log.
    pub(super) async fn tell_of_rules(&self, run: &ToolRun, result: &ToolResult) {
        let Some(sought) = &run.rules else { return };
        let Ok(opening) = self.known.opening(self.backend(), run.session).await else { return };
        let Some(folder) = self.folder_of(run, result, &opening) else { return };
        let found = self.look_for_rules(&opening, folder, sought.clone()).await;
        if found.is_empty() {
            return;
        }
        let event = Event::Session(SessionEvent::RulesFound(found));
        if let Err(error) = self.backend().post(run.session.into(), event, None).await {
            // The next call in that folder finds them again.
            tracing::warn!(%error, "the rules of a folder could not be told");
        }
    }

    async fn look_for_rules(
        &self,
        opening: &Opening,
        folder: PathBuf,
        sought: RulesSought,
    ) -> Vec<FolderRules> {
        let workspace = opening.workspace.clone();
        let look = move || match folder.canonicalize() {
            Ok(folder) => rules_of_folder(&workspace, &folder, &sought),
            Err(_) => Vec::new(),
        };
        let mut found = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        for rules in &mut found {
            rules.body = self.deps.redactor.redact(&rules.body).into_owned();
        }
        found
    }

    /// The folder that a call worked in: that of its file, or the one in which a command has ended.
    fn folder_of(&self, run: &ToolRun, result: &ToolResult, opening: &Opening) -> Option<PathBuf> {
        let tool = self.tools.get(&run.tool)?;
        let workspace: &Path = &opening.workspace;
        match &tool.spec().subject {
            ToolSubject::Path { field, .. } if result.status == ToolStatus::Ok => {
                let input = run.input.read::<serde_json::Value>().ok()?;
                let path = workspace.join(input.get(field)?.as_str()?);
                if path.is_dir() { Some(path) } else { path.parent().map(Path::to_owned) }
            }
            // Of several files, the first one: the others' rules come when the agent works there next.
            subject @ ToolSubject::Patch { .. } if result.status == ToolStatus::Ok => {
                let path = workspace.join(subject.written_paths_in(&run.input).first()?);
                path.parent().map(Path::to_owned)
            }
            ToolSubject::Command { .. }
                if matches!(result.status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut) =>
            {
                let memory = result.memory.as_ref().or(run.memory.as_ref());
                tool.folder(memory)
            }
            ToolSubject::Path { .. }
            | ToolSubject::Patch { .. }
            | ToolSubject::Command { .. }
            | ToolSubject::Typed { .. }
            | ToolSubject::Url { .. }
            | ToolSubject::Own
            | ToolSubject::Opaque => None,
        }
    }
}
