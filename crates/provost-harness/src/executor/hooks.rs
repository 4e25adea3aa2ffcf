//! Calls the hooks of a hook point.

use std::sync::Arc;

use provost_engine::{Actor, CallDetails, Consult, ConsultDetails};
use provost_event::{HookDecision, HookPolicy, HookReport, HookSubject, OnFailure, Record, Seq, SessionId};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::log_file::Informed;
use crate::hooks::Dispatch;
use crate::known::Opening;
use crate::{HookQuestion, HookQuestionSubject, read_actor};

impl HarnessExecutor {
    /// Calls the policy's hooks at the trigger's hook points, each within its time limit.
    pub(super) async fn ask_hooks(&self, consult: &Consult, cancel: &CancellationToken) -> Vec<HookReport> {
        let opening = match self.known.opening(self.home(), consult.session).await {
            Ok(opening) => opening,
            Err(error) => return nobody_asked(consult, &error.to_string()).into_iter().collect(),
        };
        let hooks = &*opening.policy.hooks;
        if !hooks.iter().any(|hook| hook.is_asked(&consult.about, opening.agent.parent)) {
            return Vec::new();
        }
        let records = self.results(consult).await;
        let consult = self.with_priority(consult).await;
        let question = question(HookQuestionSubject::Consult(consult.clone()), &opening, records);
        let programs = Informed::new(self, consult.session);
        self.dispatch(hooks, &programs, &question, cancel).all().await
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
    async fn with_priority(&self, consult: &Consult) -> Consult {
        let mut consult = consult.clone();
        let run = consult.session.run;
        if let (HookSubject::Spawn { .. }, ConsultDetails::Call(CallDetails { wanted: Some(wanted), .. })) =
            (&consult.about, &mut consult.details)
            && let Some(name) = &wanted.agent
        {
            let run = read_actor(self.home(), run.into()).await.ok();
            let policy = run.as_ref().and_then(|run| match run {
                Actor::Run(state) => state.policy(),
                Actor::Session(_) => None,
            });
            let configured = policy.and_then(|policy| policy.agents.iter().find(|agent| agent.name == *name));
            wanted.priority = configured.map(|agent| agent.priority);
        }
        consult
    }

    /// The results of tool calls that the question refers to, as far as they can be read.
    async fn results(&self, consult: &Consult) -> Vec<Arc<Record>> {
        let places = match &consult.details {
            ConsultDetails::Result { finished, .. } => vec![*finished],
            ConsultDetails::Batch { calls } => calls.iter().map(|(_, finished)| *finished).collect(),
            _ => Vec::new(),
        };
        let mut results = Vec::with_capacity(places.len());
        for place in places {
            results.extend(self.entry_at(consult.session, place).await);
        }
        results
    }

    async fn entry_at(&self, session: SessionId, place: Seq) -> Option<Arc<Record>> {
        let before = Seq(place.0.saturating_sub(1));
        let read = self.home().read(session.into(), before, 1).await;
        if let Err(error) = &read {
            tracing::warn!(%session, seq = %place, %error, "a result that hooks are asked about can't be read");
        }
        read.ok()?.into_iter().find(|record| record.seq == place)
    }
}

pub(super) fn question(
    subject: HookQuestionSubject,
    opening: &Opening,
    records: Vec<Arc<Record>>,
) -> Arc<HookQuestion> {
    Arc::new(HookQuestion {
        subject,
        workspace: opening.workspace.clone(),
        agent: opening.agent.clone(),
        model: opening.policy.model.clone(),
        transcript_path: None,
        root_transcript_path: None,
        records,
    })
}

/// The report if even the hooks are unknown: a denial where a hook without an answer denies.
fn nobody_asked(consult: &Consult, why: &str) -> Option<HookReport> {
    let moment = consult.about.moments().first().copied()?;
    let why = format!("the hooks can't be asked: {why}");
    Some(HookReport {
        hook: "hooks".to_owned(),
        moment,
        decision: match OnFailure::default_at(moment) {
            OnFailure::Deny => HookDecision::Deny(why),
            OnFailure::Continue => HookDecision::Failed(why),
        },
        reminders: Vec::new(),
        note: None,
        duration_us: 0,
    })
}
