//! Sub-agents: agents that an agent can have work for it, each by a tool of its name.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{Budget, Isolation, Priority};
use provost_harness::hooks::{Hook, HookEvent, HookOptions, HookRegistryBuilder, from_fn};
use provost_harness::{ObserverEvent, ObserverOptions, Observers, observe_with};

use crate::ModelChoice;

type Hooking = Box<dyn FnOnce(HookRegistryBuilder) -> HookRegistryBuilder + Send>;
type Observing = Arc<dyn Fn(&ObserverEvent) + Send + Sync>;

/// An agent that another one can have work for it. It has the model, the tools (but none that start agents) and the
/// permissions of its parent, unless it is given less, and spends of the same budget.
pub struct SubAgent {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instructions: String,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) budget: Budget,
    pub(crate) priority: Priority,
    pub(crate) isolation: Isolation,
    pub(crate) max_turns: Option<u32>,
    pub(crate) ask_timeout: Option<Duration>,
    pub(crate) goal: Option<String>,
    hooks: Vec<Hooking>,
    observers: Vec<NamedObserver>,
}

/// An observer of a sub-agent.
struct NamedObserver {
    name: String,
    observe: Observing,
}

impl SubAgent {
    /// A sub-agent called `name`, which is also the name of its tool. `description` tells the agent above what it can
    /// be asked for.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            instructions: String::new(),
            model: None,
            tools: None,
            budget: Budget::default(),
            priority: Priority::default(),
            isolation: Isolation::default(),
            max_turns: None,
            ask_timeout: None,
            goal: None,
            hooks: Vec::new(),
            observers: Vec::new(),
        }
    }

    /// Sets its model.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets its part of the system prompt.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// Restricts it to these of its parent's tools.
    #[must_use]
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Limits what it and the agents below it may spend of the run's budget.
    #[must_use]
    pub const fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets its priority.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets where it works; in its parent's folder by default.
    #[must_use]
    pub const fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Limits its turns.
    #[must_use]
    pub const fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Limits how long its parent waits for it; then it is cancelled.
    #[must_use]
    pub const fn ask_timeout(mut self, timeout: Duration) -> Self {
        self.ask_timeout = Some(timeout);
        self
    }

    /// Sets what judges must confirm before it counts as done; they are those of the agent
    /// ([`AgentBuilder::judge`](crate::AgentBuilder::judge)).
    #[must_use]
    pub fn goal(mut self, condition: impl Into<String>) -> Self {
        self.goal = Some(condition.into());
        self
    }

    /// Adds a hook for this agent only; otherwise as [`AgentBuilder::hook`](crate::AgentBuilder::hook).
    #[must_use]
    pub fn hook<E: HookEvent>(
        self,
        name: impl Into<String>,
        decide: impl for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
    ) -> Self {
        self.hook_with(HookOptions::new(name), from_fn::<E>(decide))
    }

    /// Adds a hook for this agent only, with options.
    #[must_use]
    pub fn hook_with<E: HookEvent>(mut self, options: HookOptions, hook: impl Hook<E>) -> Self {
        let options = HookOptions { only_agents: Some(vec![self.name.clone()]), ..options };
        self.hooks.push(Box::new(move |registry| registry.on(options, hook)));
        self
    }

    /// Has `observe` called for each event of agents of this name, on a thread of its own; otherwise as
    /// [`AgentBuilder::observe`](crate::AgentBuilder::observe).
    #[must_use]
    pub fn observe(
        mut self,
        name: impl Into<String>,
        observe: impl Fn(&ObserverEvent) + Send + Sync + 'static,
    ) -> Self {
        self.observers.push(NamedObserver { name: name.into(), observe: Arc::new(observe) });
        self
    }

    /// Moves its hooks to `registry`.
    pub(crate) fn register_hooks(&mut self, registry: HookRegistryBuilder) -> HookRegistryBuilder {
        std::mem::take(&mut self.hooks).into_iter().fold(registry, |registry, add| add(registry))
    }

    /// Moves its observers to `observers`.
    pub(crate) fn register_observers(&mut self, observers: Observers) -> Observers {
        let agent: Arc<str> = self.name.as_str().into();
        std::mem::take(&mut self.observers).into_iter().fold(observers, |observers, own| {
            let agent = Arc::clone(&agent);
            observers.with(own.name, ObserverOptions::default(), move |_| {
                let agent = Arc::clone(&agent);
                let observe = Arc::clone(&own.observe);
                observe_with(move |event| {
                    if event.chain.agent_name.as_ref() == Some(&agent) {
                        observe(event);
                    }
                    Ok(())
                })
            })
        })
    }
}
