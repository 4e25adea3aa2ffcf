//! The registry of typed hooks: built once, then frozen.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, HookReport, HookSetup, OnFailure};
use tokio_util::sync::CancellationToken;

use super::event::{HookAction as _, HookInput as _};
use super::reminders::HookInvocation;
use super::{DEFAULT_TIMEOUT, Dispatch, Hook, HookEvent};
use crate::{Clock, HookQuestion, NoHookPrograms};

/// How a hook is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOptions {
    /// Its name in the policy and in the log, unique among all hooks of a run. An owner with several hooks gives
    /// each its own name, such as `guard.before` and `guard.after`.
    pub owner: String,
    /// Its timeout, to the millisecond. A hook that answers without waiting never times out.
    pub timeout: Duration,
    /// What happens when it gives no answer; `None`: [`OnFailure::default_at`] its hook point.
    pub on_failure: Option<OnFailure>,
    /// Whether it gets a [`TaskReminders`](super::TaskReminders); only for [`PreLlmRequest`](super::PreLlmRequest)
    /// hooks.
    pub may_remind: bool,
    /// The only configured sub-agents that it is called for; `None`: all agents of a run, the root included.
    pub only_agents: Option<Vec<String>>,
}

impl HookOptions {
    /// A hook of `owner` with a timeout of 5 s, the default failure handling of its hook point, and no
    /// reminders, for all agents.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            timeout: DEFAULT_TIMEOUT,
            on_failure: None,
            may_remind: false,
            only_agents: None,
        }
    }
}

/// Why a registry can't be frozen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookRegistryError {
    /// Two hooks have the same name, so that the log couldn't tell which one decided.
    #[error("two hooks are called `{owner}`")]
    Doubled {
        /// The name.
        owner: String,
    },
    /// A hook has no name.
    #[error("a hook at `{}` has no name", point.name())]
    Unnamed {
        /// Its hook point.
        point: HookPoint,
    },
}

/// Collects hooks. They are called in registration order.
#[derive(Default)]
pub struct HookRegistryBuilder {
    hooks: Vec<Registered>,
}

struct Registered {
    policy: HookPolicy,
    only_agents: Option<Vec<String>>,
    hook: Arc<dyn AnyHook>,
}

/// Typed hooks: immutable, and cheap to share.
///
/// A run's policy names its hooks when it starts. A different registry at a later opening doesn't change that:
/// hooks that the policy names and the registry lacks give no answer, and others aren't called.
#[derive(Clone, Default)]
pub struct HookRegistry(Arc<Frozen>);

#[derive(Default)]
struct Frozen {
    policies: Vec<HookPolicy>,
    /// The sub-agents of those hooks that aren't called for all agents, by the hook's name.
    only_agents: HashMap<String, Vec<String>>,
    hooks: HashMap<String, (HookPoint, Arc<dyn AnyHook>)>,
}

impl HookRegistryBuilder {
    /// Registers `hook` for the event `E`.
    #[must_use]
    pub fn on<E: HookEvent>(mut self, options: HookOptions, hook: impl Hook<E>) -> Self {
        let policy = HookPolicy {
            name: options.owner,
            point: E::POINT,
            matcher: None,
            condition: None,
            program: None,
            contract: HookContract::Provost,
            timeout_ms: u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX),
            on_failure: options.on_failure.unwrap_or_else(|| OnFailure::default_at(E::POINT)),
            may_remind: options.may_remind,
            setup: HookSetup::default(),
        };
        let hook = Arc::new(Typed { hook, event: PhantomData });
        self.hooks.push(Registered { policy, only_agents: options.only_agents, hook });
        self
    }

    /// Creates the registry.
    ///
    /// # Errors
    /// When two hooks have the same owner, even at different hook points, or one has none.
    pub fn freeze(self) -> Result<HookRegistry, HookRegistryError> {
        let mut names = BTreeSet::new();
        for Registered { policy, .. } in &self.hooks {
            if policy.name.is_empty() {
                return Err(HookRegistryError::Unnamed { point: policy.point });
            }
            if !names.insert(&policy.name) {
                return Err(HookRegistryError::Doubled { owner: policy.name.clone() });
            }
        }
        let mut frozen = Frozen::default();
        for Registered { policy, only_agents, hook } in self.hooks {
            if let Some(agents) = only_agents {
                frozen.only_agents.insert(policy.name.clone(), agents);
            }
            frozen.hooks.insert(policy.name.clone(), (policy.point, hook));
            frozen.policies.push(policy);
        }
        Ok(HookRegistry(Arc::new(frozen)))
    }
}

impl HookRegistry {
    /// A new registry builder.
    #[must_use]
    pub fn builder() -> HookRegistryBuilder {
        HookRegistryBuilder::default()
    }

    /// Its hooks as a policy names them, in call order.
    #[must_use]
    pub fn policies(&self) -> Vec<HookPolicy> {
        self.0.policies.clone()
    }

    /// Its hooks for the configured sub-agent `agent`, or for the root and its copies, in call order.
    #[must_use]
    pub fn policies_of(&self, agent: Option<&str>) -> Vec<HookPolicy> {
        let is_for = |policy: &&HookPolicy| match self.0.only_agents.get(&policy.name) {
            None => true,
            Some(agents) => agent.is_some_and(|agent| agents.iter().any(|one| one == agent)),
        };
        self.0.policies.iter().filter(is_for).cloned().collect()
    }

    /// Calls its hooks at the hook points of `question`, as a run without other hooks does: in order, up to the
    /// first that decides, each within its timeout by `clock`. A harness does this by itself.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns at once; hooks without an answer by then are reported as failed. Dropping
    /// the future cancels the calls too.
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
        let (point, hook) = self.0.hooks.get(&policy.name)?;
        (*point == policy.point).then_some(&**hook)
    }
}

impl fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.policies.iter().map(|policy| &policy.name)).finish()
    }
}

impl fmt::Debug for HookRegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hooks.iter().map(|hook| &hook.policy.name)).finish()
    }
}

/// A hook of any event.
#[async_trait]
pub(super) trait AnyHook: Send + Sync {
    /// Its decision; `None` if the question isn't one about its event.
    async fn ask(&self, asked: &HookInvocation) -> Option<HookDecision>;
}

struct Typed<E, H> {
    hook: H,
    event: PhantomData<fn() -> E>,
}

#[async_trait]
impl<E: HookEvent, H: Hook<E>> AnyHook for Typed<E, H> {
    async fn ask(&self, asked: &HookInvocation) -> Option<HookDecision> {
        let input = E::Input::of(asked)?;
        Some(self.hook.decide(input).await.decision())
    }
}
