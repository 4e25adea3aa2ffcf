//! Another segment of a run that is suspended or has ended.

use provost_engine::{Event, RunEvent};
use provost_event::{ActorKey, Budget, Entry, LifecycleEntry, ResumeCause, Resumed};

use super::Harness;
use crate::{HarnessError, ResumeRequest};

impl Harness {
    /// Begins another segment of a suspended or ended run; limits in `budget` and `turns_max` replace the existing
    /// ones. An active run stays unchanged.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn resume(
        &mut self,
        by: &str,
        budget: Budget,
        turns_max: Option<u32>,
    ) -> Result<(), HarnessError> {
        self.resume_with(ResumeRequest { by: by.to_owned(), budget, turns_max, text: None }).await
    }

    /// As [`Harness::resume`], with a message to the root agent.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn resume_with(&mut self, request: ResumeRequest) -> Result<(), HarnessError> {
        if self.outcome.is_none() {
            return Ok(());
        }
        self.observers.0.begin();
        let ResumeRequest { by, budget, turns_max, text } = request;
        let event = Event::Run(RunEvent::Resume { agent: None, by, budget, turns_max, text });
        let backend = self.deps.backend.clone();
        let key = ActorKey::from(self.run);
        let head = backend.post(key, event, None).await?.head;
        // The run may have ended meanwhile: that end isn't the end of what was resumed.
        let seen = self.seen.get(&key).copied().unwrap_or_default();
        let unseen = usize::try_from(head.0.saturating_sub(seen.0)).unwrap_or(usize::MAX);
        for record in backend.read(key, seen, unseen).await? {
            if let Entry::Lifecycle(LifecycleEntry::Resumed(Resumed {
                cause: ResumeCause::Asked { .. },
                ..
            })) = &record.entry
            {
                self.resumed = record.seq;
                self.outcome = None;
            }
        }
        Ok(())
    }
}
