//! What `check --json` prints.

use provost_config::{Agent, External, TrustState};
use provost_view::{
    CheckedAgent, CheckedGoal, CheckedHook, CheckedSettings, CheckedSkill, CheckedStopHook, ProjectRulesFile,
    ProjectTrust, SettingProblem, SettingValue, TrustRequest, TrustWord, ViewVersion,
};

use super::Found;
use crate::commands::shown;

impl Found {
    /// For programs.
    pub(super) fn view(&self) -> CheckedSettings {
        let items = self.items.iter().map(|(key, given)| (key, given));
        let settings = self.given.iter().chain(items).map(|(key, given)| SettingValue {
            key: key.clone(),
            value: given.shown.clone(),
            source: given.source.to_string(),
        });
        let stop_hooks = self.stop_hooks.iter().map(|(name, command, source)| CheckedStopHook {
            name: name.clone(),
            command: command.clone(),
            source: source.clone(),
        });
        let hooks = self.hooks.iter();
        let hooks = hooks.map(|hook| CheckedHook { hook: hook.policy.clone(), source: hook.place.clone() });
        let rules = self.rules.files.iter().map(|file| ProjectRulesFile {
            file: shown(&file.path),
            bytes: file.bytes,
            taken: file.text.len() as u64,
        });
        let skills = self.skills.usable.iter().map(|skill| CheckedSkill {
            file: shown(&skill.file),
            name: Some(skill.name.clone()),
            description: Some(skill.description.clone()),
            skipped: None,
        });
        let skipped = self.skills.skipped.iter().map(|skipped| CheckedSkill {
            file: shown(&skipped.file),
            name: None,
            description: None,
            skipped: Some(skipped.why.clone()),
        });
        let problems = self.problems.iter().map(|problem| SettingProblem {
            source: problem.source.to_string(),
            key: problem.key.clone(),
            what: problem.what.clone(),
            remedy: problem.remedy.clone(),
        });
        CheckedSettings {
            v: ViewVersion,
            ok: self.problems.is_empty(),
            files: self.files.clone(),
            settings: settings.collect(),
            stop_hooks: stop_hooks.collect(),
            hooks: hooks.collect(),
            agents: self.agents.iter().map(|agent| agent_view(agent, self.delegates)).collect(),
            skipped: self.skipped.clone(),
            project_rules: rules.collect(),
            skills: skills.chain(skipped).collect(),
            trust: self.trust_view(),
            problems: problems.collect(),
            warnings: self.warnings.clone(),
            notes: self.notes.clone(),
        }
    }

    fn trust_view(&self) -> ProjectTrust {
        let requests = self.project.requests.iter().map(|request| TrustRequest {
            source: request.place.clone(),
            what: request.what.clone(),
            body: request.body.clone(),
            file: request.file.clone(),
        });
        ProjectTrust {
            state: match &self.trust {
                None => TrustWord::Unknown,
                Some(TrustState::NotNeeded) => TrustWord::NotNeeded,
                Some(TrustState::Trusted { .. }) => TrustWord::Trusted,
                Some(TrustState::Needed(_)) => TrustWord::Needed,
            },
            folder: shown(&self.project.folder),
            requests: requests.collect(),
        }
    }
}

fn agent_view(agent: &Agent, is_offered: bool) -> CheckedAgent {
    let goal = agent.condition.as_ref();
    CheckedAgent {
        name: agent.name.clone(),
        description: agent.description.clone(),
        model: agent.model.clone(),
        program: agent.external().map(External::command),
        profile: agent.external().and_then(|external| external.profile.clone()),
        tools: agent.tools.clone(),
        priority: agent.priority,
        max_turns: agent.max_turns,
        budget: agent.budget,
        ask_timeout_ms: agent.ask_timeout_ms,
        isolation: agent.isolation,
        stop_hooks: agent.stop_hooks.clone(),
        goal: goal.map(|condition| CheckedGoal { condition: condition.clone(), judge: agent.judge.clone() }),
        offered: is_offered,
        source: agent.source.to_string(),
    }
}
