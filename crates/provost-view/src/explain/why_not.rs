//! Why a hook wasn't asked, as far as the run's log and its policy show.

use provost_event::{AgentPolicy, HookPoint, HookPolicy, ToolIdentity};

use super::calls::{Calls, Counts};
use super::hooks::HookCounts;
use super::reach::{matcher_means, pattern_means};
use super::say::RuleUse;
use super::stop_hooks::no_stop_request;

/// What is known of a hook.
pub(super) struct HookFacts<'a> {
    pub(super) hook: &'a HookPolicy,
    pub(super) policy: &'a AgentPolicy,
    pub(super) counts: HookCounts,
    pub(super) calls: &'a Calls,
    /// How often the agent tried to stop.
    pub(super) stop_requests: u64,
    /// Where hooks are asked whether the agent may stop.
    pub(super) stop_point: HookPoint,
    /// Whether hooks of its hook point are being asked at the end of the log.
    pub(super) is_asking: bool,
}

impl HookFacts<'_> {
    pub(super) fn standing(&self) -> RuleUse {
        match self.unreachable() {
            Some(why) if self.counts.consulted == 0 => RuleUse::unreachable(why),
            _ => RuleUse::of(self.counts.consulted, || self.why_not()),
        }
    }

    /// Why it can't be asked in any run of this policy. Hooks of the embedding program may be asked whatever their
    /// matchers say.
    fn unreachable(&self) -> Option<String> {
        let Self { hook, policy, .. } = self;
        if !is_about_calls(hook.point) || hook.program.is_none() {
            return None;
        }
        if self.calls.tools(|_| true).is_empty() {
            return Some("the agent has no tools".to_owned());
        }
        let has = |means: &dyn Fn(&ToolIdentity) -> bool| !self.calls.tools(means).is_empty();
        let matcher = hook.matcher.as_deref().unwrap_or_default();
        if !has(&|tool| matcher_means(matcher, tool).unwrap_or(true)) {
            return Some(format!("the agent has no tool `{matcher}`"));
        }
        let condition = hook.condition.as_deref().unwrap_or("*");
        if !has(&|tool| pattern_means(condition, tool)) {
            return Some(format!("the agent has no tool that `{condition}` speaks of"));
        }
        let asks = policy.hooks.iter().any(|hook| hook.point == HookPoint::PreToolCall);
        let is_idle = hook.point == HookPoint::Approval && policy.permissions.is_open() && !asks;
        is_idle.then(|| "nothing asks for consent".to_owned())
    }

    fn why_not(&self) -> String {
        if self.is_asking {
            return "it is being asked".to_owned();
        }
        let counts = self.counts;
        match counts.questions() {
            0 => self.never_came(),
            _ if is_about_calls(self.hook.point) && self.called().made == 0 => self.no_call("made"),
            all if counts.decided_before == all => "a hook before it decided each time".to_owned(),
            all if counts.dropped == all => "the run was interrupted before it could be asked".to_owned(),
            _ if counts.not_meant == 0 => "the run was interrupted, or a hook before it decided".to_owned(),
            _ => self.not_meant(),
        }
    }

    fn not_meant(&self) -> String {
        let HookCounts { not_meant, .. } = self.counts;
        let filter = match (&self.hook.matcher, &self.hook.condition) {
            (Some(_), Some(_)) => "its matcher and its `if`",
            (None, Some(_)) => "its `if`",
            (Some(_) | None, None) => "its matcher",
        };
        let thing = match self.hook.point {
            point if is_about_calls(point) => "tool call",
            _ => "such question",
        };
        match not_meant {
            1 => format!("{filter} didn't meet the one {thing}"),
            _ => format!("{filter} met none of {not_meant} {thing}s"),
        }
    }

    /// The calls that it may match.
    fn called(&self) -> Counts {
        self.calls.of(|tool| self.may_mean(tool))
    }

    fn may_mean(&self, tool: &ToolIdentity) -> bool {
        let means = |matcher: &str| matcher_means(matcher, tool).unwrap_or(true);
        let by_matcher = self.hook.matcher.as_deref().is_none_or(means);
        by_matcher && self.hook.condition.as_deref().is_none_or(|pattern| pattern_means(pattern, tool))
    }

    fn no_call(&self, what: &str) -> String {
        let tools = self.calls.in_words(|tool| self.may_mean(tool));
        format!("no {tools} call was {what}")
    }

    /// Why there was no such question.
    fn never_came(&self) -> String {
        use HookPoint as M;
        let called = self.called();
        let words = match self.hook.point {
            M::PreToolCall | M::PostToolBatch if called.made == 0 => return self.no_call("made"),
            M::PreToolCall | M::PostToolBatch => return self.missed(),
            M::PostToolCall | M::PostToolSuccess | M::PostToolFailure if called.run == 0 => {
                return self.no_call("run");
            }
            M::PostToolSuccess if called.run == called.failed => "each tool call that was run failed",
            M::PostToolFailure if called.failed == 0 => "no tool call that was run failed",
            M::PostToolCall | M::PostToolSuccess | M::PostToolFailure => return self.missed(),
            M::Approval => "no tool call needed consent",
            M::Notification => "nothing waited for a person, and the agent hasn't ended",
            M::Stop if self.stop_point != M::Stop => {
                "it is a sub-agent: hooks of subagent_stop are asked there"
            }
            M::SubagentStop if self.stop_point != M::SubagentStop => "it isn't a sub-agent",
            M::Stop | M::SubagentStop => return no_stop_request(self.stop_requests),
            M::Spawn | M::ChildEnd => "it asked for no other agent",
            M::SubagentStart => "it isn't a sub-agent",
            M::TurnEnd if self.stop_requests == 0 => "the agent never wanted to stop",
            M::PreCompact | M::PostCompact => "the conversation was never shortened",
            M::Abort => "nothing stopped the agent before its work was done",
            M::StopFailure => "the agent didn't fail",
            M::SessionEnd => "the agent hasn't come to its end",
            _ => "the run never came to this point",
        };
        words.to_owned()
    }

    fn missed(&self) -> String {
        match self.hook.matcher {
            Some(_) => "its matcher met no tool call".to_owned(),
            None => "the run was stopped before it came to this point".to_owned(),
        }
    }
}

/// Whether hooks of `point` are asked about one tool call.
const fn is_about_calls(point: HookPoint) -> bool {
    use HookPoint as M;
    matches!(point, M::PreToolCall | M::Approval | M::PostToolCall | M::PostToolSuccess | M::PostToolFailure)
}
