//! What the hooks decide about a message, if the run's settings make messages pass them: the sender is told when
//! they refuse.

use std::sync::Arc;

use futures::StreamExt as _;
use provost_event::{
    Block, ConversationEntry, Entry, GateEntry, HookDecision, HookReport, HookTrigger, HooksDecided, Record,
    Seq, SessionId, UserMessage,
};
use provost_harness::{Backend, BackendError};
use tokio::time::Instant;

use super::WAIT_MAX;

const READ_MAX: usize = 1_000;

/// A message to an agent.
pub(crate) struct SentMessage<'a> {
    pub(crate) to: SessionId,
    pub(crate) text: &'a str,
    pub(crate) by: &'a str,
    /// The last entry of the agent's log before the message.
    pub(crate) before: Seq,
}

/// What the hooks decided.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The agent receives it, or there are no hooks to ask.
    Heard,
    /// They have not answered yet.
    Waits,
    /// They refused: which one, and why.
    Refused { hook: String, why: String },
}

impl SentMessage<'_> {
    /// Reads what the hooks decide, and waits for that while `is_worked_on`, for as long as a run is watched.
    ///
    /// # Errors
    /// When the log can't be read.
    pub(super) async fn passed(
        &self,
        backend: &dyn Backend,
        is_worked_on: bool,
    ) -> Result<Passed, BackendError> {
        let records = backend.read(self.to.into(), self.before, READ_MAX).await?;
        let Some(asked) = records.iter().find(|record| self.is_asked_in(record)).map(|record| record.seq)
        else {
            return Ok(Passed::Heard);
        };
        let answered = async {
            let mut records = backend.subscribe(self.to.into(), asked);
            while let Some(record) = records.next().await {
                let record = record?;
                let Entry::Gate(GateEntry::HooksDecided(decided)) = &record.entry else { continue };
                if decided.asked == asked {
                    // Its consequences are committed with it.
                    let next = backend.read(self.to.into(), record.seq, 1).await?;
                    let is_heard = next.first().is_some_and(|record| self.is_heard_in(record));
                    return Ok(if is_heard { Passed::Heard } else { refused(decided) });
                }
            }
            Ok(Passed::Waits)
        };
        if !is_worked_on {
            return Ok(Passed::Waits);
        }
        tokio::time::timeout_at(Instant::now() + WAIT_MAX, answered).await.unwrap_or(Ok(Passed::Waits))
    }

    /// The error about a message that hooks refused, once the run that it resumed is suspended again or has ended;
    /// `None` where they let it pass, have not answered or weren't asked.
    ///
    /// # Errors
    /// When the log can't be read.
    pub(crate) async fn refusal(&self, backend: &dyn Backend) -> Result<Option<String>, BackendError> {
        let records = backend.read(self.to.into(), self.before, READ_MAX).await?;
        let asked = records.iter().find(|record| self.is_asked_in(record)).map(|record| record.seq);
        let answer = records.iter().enumerate().find_map(|(place, record)| match &record.entry {
            Entry::Gate(GateEntry::HooksDecided(decided)) if Some(decided.asked) == asked => {
                Some((place, decided))
            }
            _ => None,
        });
        let Some((place, decided)) = answer else { return Ok(None) };
        if records.get(place + 1).is_some_and(|record| self.is_heard_in(record)) {
            return Ok(None);
        }
        Ok(match refused(decided) {
            Passed::Refused { hook, why } => Some(unheard(&format!("run {}", self.to.run), &hook, &why)),
            Passed::Heard | Passed::Waits => None,
        })
    }

    fn is_asked_in(&self, record: &Arc<Record>) -> bool {
        matches!(&record.entry, Entry::Gate(GateEntry::HooksAsked(asked)) if matches!(
            &asked.about,
            HookTrigger::Prompt { text, by } if text == self.text && by == self.by
        ))
    }

    fn is_heard_in(&self, record: &Record) -> bool {
        let Entry::Conversation(ConversationEntry::UserMessage(UserMessage { content, by })) = &record.entry
        else {
            return false;
        };
        by == self.by && matches!(content.as_slice(), [Block::Text(text)] if text == self.text)
    }
}

/// The error about a message that a hook refused.
pub(super) fn unheard(who: &str, hook: &str, why: &str) -> String {
    format!("{who} doesn't get it: the hook {hook} refused: {why}")
}

fn refused(decided: &HooksDecided) -> Passed {
    let reason = |report: &HookReport| match &report.decision {
        HookDecision::Deny(why) | HookDecision::Abort(why) => Some(why.clone()),
        decision => decision.failure(),
    };
    let reason =
        |report: &HookReport| reason(report).map(|why| Passed::Refused { hook: report.hook.clone(), why });
    decided.reports.iter().find_map(reason).unwrap_or_else(|| Passed::Refused {
        hook: "hooks".to_owned(),
        why: "no reason was given".to_owned(),
    })
}
