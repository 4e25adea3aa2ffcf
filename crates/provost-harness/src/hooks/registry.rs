//! The registry of typed hooks: built once, then frozen.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{HookContract, HookDecision, HookMoment, HookPolicy, HookReport, OnFailure};
use tokio_util::sync::CancellationToken;

use super::action::HookAction as _;
use super::input::HookInput as _;
use super::reminders::Asked;
use super::{DEFAULT_TIMEOUT, Dispatch, Hook, HookEvent};
use crate::{Clock, HookQuestion, NoHookPrograms};

/// How a hook is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOptions {
    /// Whose it is: its name in the policy and in the log, unique among all hooks of a run. Who decides at several
    /// moments gives each of its hooks a name of its own, such as `guard.before` and `guard.after`.
    pub owner: String,
    /// How long it may take, to the millisecond. One that answers without waiting is never too late.
    pub timeout: Duration,
    /// What it means when it gives no answer; `None`: [`OnFailure::default_at`] its moment.
    pub on_failure: Option<OnFailure>,
    /// Whether it is lent a [`TaskReminders`](super::TaskReminders); only
    /// [`PreLlmRequest`](super::PreLlmRequest) hooks can be.
    pub may_remind: bool,
}

impl HookOptions {
    /// A hook of `owner` with 5 s to answer, that fails as its moment has it and reminds of nothing.
    pub fn new(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), timeout: DEFAULT_TIMEOUT, on_failure: None, may_remind: false }
    }
}

/// Why a registry can't be frozen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookRegistryError {
    /// Who decided couldn't be told from the log.
    #[error("two hooks are called `{owner}`")]
    Doubled {
        /// The name.
        owner: String,
    },
    /// It has no name.
    #[error("a hook at `{}` has no name", moment.name())]
    Unnamed {
        /// Its moment.
        moment: HookMoment,
    },
}

/// Collects hooks. They are asked in the order in which they are registered.
#[derive(Default)]
pub struct HookRegistryBuilder {
    hooks: Vec<(HookPolicy, Arc<dyn AnyHook>)>,
}

/// Typed hooks: frozen, and cheap to share.
///
/// A run's policy names its hooks when it starts. What a registry is when a run is opened again doesn't change that:
/// hooks that the policy names and the registry lacks give no answer, and others aren't asked.
#[derive(Clone, Default)]
pub struct HookRegistry(Arc<Frozen>);

#[derive(Default)]
struct Frozen {
    policies: Vec<HookPolicy>,
    hooks: HashMap<String, (HookMoment, Arc<dyn AnyHook>)>,
}

impl HookRegistryBuilder {
    /// Registers `hook` for the event `E`.
    #[must_use]
    pub fn on<E: HookEvent>(mut self, options: HookOptions, hook: impl Hook<E>) -> Self {
        let policy = HookPolicy {
            name: options.owner,
            moment: E::MOMENT,
            matcher: None,
            condition: None,
            program: None,
            contract: HookContract::Provost,
            timeout_ms: u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX),
            on_failure: options.on_failure.unwrap_or_else(|| OnFailure::default_at(E::MOMENT)),
            may_remind: options.may_remind,
        };
        self.hooks.push((policy, Arc::new(Typed { hook, event: PhantomData })));
        self
    }

    /// Makes the registry.
    ///
    /// # Errors
    /// When two hooks have the same owner, be it at different moments, or one has none.
    pub fn freeze(self) -> Result<HookRegistry, HookRegistryError> {
        let mut names = BTreeSet::new();
        for (policy, _) in &self.hooks {
            if policy.name.is_empty() {
                return Err(HookRegistryError::Unnamed { moment: policy.moment });
            }
            if !names.insert(&policy.name) {
                return Err(HookRegistryError::Doubled { owner: policy.name.clone() });
            }
        }
        let policies = self.hooks.iter().map(|(policy, _)| policy.clone()).collect();
        let hooks = self.hooks.into_iter().map(|(policy, hook)| (policy.name, (policy.moment, hook)));
        Ok(HookRegistry(Arc::new(Frozen { policies, hooks: hooks.collect() })))
    }
}

impl HookRegistry {
    /// A registry to be.
    #[must_use]
    pub fn builder() -> HookRegistryBuilder {
        HookRegistryBuilder::default()
    }

    /// Its hooks as a policy names them, in the order in which they are asked.
    #[must_use]
    pub fn policies(&self) -> Vec<HookPolicy> {
        self.0.policies.clone()
    }

    /// Asks those of its hooks whose moment `question` is about, as a run does that has no other hooks: in order,
    /// up to the first that decides something, each within its time by `clock`. A harness does this by itself.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns at once; who hasn't answered by then is reported as failed. Dropping the
    /// future ends the asking too.
    pub async fn ask(
        &self,
        question: &Arc<HookQuestion>,
        clock: &dyn Clock,
        cancel: &CancellationToken,
    ) -> Vec<HookReport> {
        let hooks = &self.0.policies;
        Dispatch { hooks, registry: self, programs: &NoHookPrograms, question, clock, cancel }.all().await
    }

    /// The hook that `policy` names.
    pub(super) fn get(&self, policy: &HookPolicy) -> Option<&dyn AnyHook> {
        let (moment, hook) = self.0.hooks.get(&policy.name)?;
        (*moment == policy.moment).then_some(&**hook)
    }
}

impl fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.policies.iter().map(|policy| &policy.name)).finish()
    }
}

impl fmt::Debug for HookRegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hooks.iter().map(|(policy, _)| &policy.name)).finish()
    }
}

/// A hook of any event.
#[async_trait]
pub(super) trait AnyHook: Send + Sync {
    /// Its decision; `None` if the question can't be read as one about its event.
    async fn ask(&self, asked: &Asked) -> Option<HookDecision>;
}

struct Typed<E, H> {
    hook: H,
    event: PhantomData<fn() -> E>,
}

#[async_trait]
impl<E: HookEvent, H: Hook<E>> AnyHook for Typed<E, H> {
    async fn ask(&self, asked: &Asked) -> Option<HookDecision> {
        let input = E::Input::of(asked)?;
        Some(self.hook.decide(input).await.decision())
    }
}
