//! A backend reduced to one session: its log, its open effects, and its last budget request.

use std::collections::VecDeque;

use provost_engine::{Actor, EffectRequest, Event, Now, ReserveRequest, RunEvent, SessionEvent};
use provost_event::{
    ActorKey, ConversationEntry, Elapsed, Entry, LifecycleEntry, ModelEntry, Outcome, Record, RunPolicy, Seq,
    Timestamp,
};

use super::long_stage::{RUN, SESSION};

pub(crate) struct SessionFixture {
    run: Actor,
    session: Actor,
    /// The session's log.
    pub(crate) log: Vec<Record>,
    /// The last budget request.
    pub(crate) wished: Option<ReserveRequest>,
    open: VecDeque<EffectRequest>,
    now_ms: u64,
}

impl SessionFixture {
    pub(crate) fn start(goal: String, policy: RunPolicy) -> Self {
        let mut desk = Self {
            run: Actor::new(RUN.into()),
            session: Actor::new(SESSION.into()),
            log: Vec::new(),
            wished: None,
            open: VecDeque::new(),
            now_ms: 1_000_000,
        };
        desk.tell_run(RunEvent::Start { goal, images: Vec::new(), policy: Box::new(policy), baseline: None });
        desk
    }

    pub(crate) fn tell_run(&mut self, event: RunEvent) {
        self.post(RUN.into(), event.into());
    }

    pub(crate) fn tell_session(&mut self, event: SessionEvent) {
        self.post(SESSION.into(), event.into());
    }

    fn post(&mut self, to: ActorKey, event: Event) {
        let mut posts = VecDeque::from([(to, event)]);
        while let Some((to, event)) = posts.pop_front() {
            if let Event::Run(RunEvent::Reserve(wish)) = &event {
                let mut wish = wish.clone();
                if let Actor::Session(session) = &self.session {
                    wish.input_tokens = session.window_tokens(wish.purpose);
                }
                self.wished = Some(wish);
            }
            self.now_ms += 1;
            let now = Now { at: Timestamp(self.now_ms), elapsed: Elapsed(self.now_ms), entropy: self.now_ms };
            let is_session = matches!(to, ActorKey::Session(_));
            let actor = if is_session { &mut self.session } else { &mut self.run };
            let step = actor.decide(event, now);
            if is_session {
                self.open.retain(|open| !step.closed.contains(&open.seq));
                self.open.extend(step.effects);
                for entry in step.entries {
                    let seq = Seq(self.log.len() as u64 + 1);
                    self.log.push(Record { actor: to, seq, at: now.at, elapsed: Elapsed::default(), entry });
                }
            }
            posts.extend(step.messages.into_iter().map(|message| (message.to, message.event)));
        }
    }

    /// The oldest open effect.
    pub(crate) fn next(&mut self) -> Option<EffectRequest> {
        self.open.pop_front()
    }

    /// The outcome of its suspension or end, if there is one.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.log.last()?.entry {
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => Some(&paused.outcome),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => Some(&ended.outcome),
            _ => None,
        }
    }

    /// The last entries, one a line, for failure messages.
    pub(crate) fn story(&self) -> String {
        let line = |record: &Record| match &record.entry {
            Entry::Model(ModelEntry::Called(called)) => {
                format!("{} model called: {:?}", record.seq, called.purpose)
            }
            Entry::Model(ModelEntry::Retried(retry)) => format!("{} retry: {:?}", record.seq, retry.cause),
            Entry::Conversation(ConversationEntry::Compacted(made)) => format!(
                "{} compacted: {:?}, {} tokens to {}, through {}, lines through {}, cut through {}",
                record.seq,
                made.how,
                made.tokens_before,
                made.tokens_after,
                made.through,
                made.lines_through,
                made.cut_through
            ),
            entry => format!("{} {}", record.seq, entry.kind()),
        };
        let newest = self.log.iter().skip(self.log.len().saturating_sub(40));
        newest.map(line).collect::<Vec<_>>().join("\n")
    }

    /// The log in its stored form.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.log.iter().map(|record| record.to_line().unwrap()).collect()
    }
}
