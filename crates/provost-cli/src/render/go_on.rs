//! How a run goes on after any end: the command, with what makes a difference.

use provost_engine::{AgentState, AgentStatus, RunState, StepTracker};
use provost_event::{Dimension, ErrorClass, Outcome, PauseReason, RunId, RunPolicy, TroubleCause};

use super::safe::visible;
use crate::commands::{in_shell_words, lacking};

/// The placeholder for a model's name.
const ANOTHER_MODEL: &str = "--model NAME";

/// What makes a difference: words behind the command, and why.
#[derive(Default)]
struct Difference {
    words: String,
    why: String,
}

impl Difference {
    fn words(words: impl Into<String>) -> Self {
        Self { words: words.into(), why: String::new() }
    }

    fn why(why: impl Into<String>) -> Self {
        Self { words: String::new(), why: why.into() }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }
}

/// The command with which the run goes on, and what makes a difference in brackets. `None` where nothing is left
/// to do.
pub(crate) fn go_on_with(run: RunId, state: &RunState, outcome: &Outcome) -> Option<String> {
    let is_flow = state.flow().is_some();
    let is_over = match outcome {
        Outcome::Completed { .. } => state.flow().is_some_and(StepTracker::is_done),
        // Its conversation is the program's own, and that is gone.
        Outcome::Failed { class, .. } => *class == ErrorClass::ProgramGone,
        _ => false,
    };
    if is_over {
        return None;
    }
    let Difference { words, why } = difference(state, outcome, is_flow);
    let mut command = format!("provost resume {run}");
    let limits = lacking(run, state, outcome).join(" ");
    for more in [limits, words, if why.is_empty() { why } else { format!(" ({why})") }] {
        if !more.is_empty() {
            command.push(' ');
            command.push_str(&more);
        }
    }
    Some(command)
}

/// The command with which a run that has ended does something else: the same, or a fork of the last agent of a
/// workflow whose steps are all done. `None` where there is none.
pub(crate) fn ask_again(run: RunId, state: &RunState, outcome: &Outcome) -> Option<String> {
    if let Some(command) = go_on_with(run, state, outcome) {
        return Some(command);
    }
    let is_native = |agent: &AgentStatus<'_>| {
        let Some(policy) = state.policy() else { return false };
        let named = policy.flow.iter().flat_map(|flow| &flow.steps).find(|step| step.name == agent.name);
        let named = named.and_then(|step| step.agent.as_ref());
        let own = named.and_then(|name| policy.agents.iter().find(|one| one.name == *name));
        own.map_or(&policy.agent, |own| &own.agent).external.is_none()
    };
    let has_begun = |agent: &AgentStatus<'_>| !matches!(agent.standing, AgentState::Queued);
    let agents = state.agents().filter(|agent| agent.parent.is_none() && has_begun(agent));
    let last = agents.filter(is_native).map(|agent| agent.session).last()?;
    state.flow().map(|_| format!("provost fork {last} \"and now …\""))
}

fn difference(state: &RunState, outcome: &Outcome, is_flow: bool) -> Difference {
    let with_settings = || state.policy().map_or_else(|| "--with-settings".to_owned(), with_settings);
    match outcome {
        Outcome::Completed { .. } if is_flow => of_failure(ErrorClass::StepFailed),
        Outcome::Completed { .. } => Difference::words("\"and now …\""),
        Outcome::Blocked { reasons } => after_checks(state, reasons).unwrap_or_default(),
        Outcome::Paused { why: PauseReason::Model(trouble) } if trouble.class == ErrorClass::Refusal => {
            Difference::words("\"what to do otherwise\"").because("or --model NAME")
        }
        Outcome::Paused { why: PauseReason::Model(trouble) } => of_trouble(trouble.cause()),
        Outcome::Paused { why: PauseReason::StepFailed { reason, .. } } => {
            of_step(state, reason).unwrap_or_default()
        }
        Outcome::Paused { why: PauseReason::WorkspaceGone { .. } } => {
            Difference::why("once the folder is back")
        }
        Outcome::BudgetExhausted(_) | Outcome::Paused { .. } | Outcome::Cancelled { .. } => {
            Difference::default()
        }
        Outcome::Aborted { hook, .. } => {
            let hook = visible(hook);
            let why = format!(
                "hook {hook} is asked again; once it is changed in the settings: {}",
                with_settings()
            );
            if is_flow {
                Difference::why(why)
            } else {
                Difference::words("\"what to do otherwise\"").because(why)
            }
        }
        Outcome::Failed { class: ErrorClass::StepFailed, message } => {
            of_step(state, message).unwrap_or_else(|| of_failure(ErrorClass::StepFailed))
        }
        Outcome::Failed { class, .. } => of_failure(*class),
    }
}

/// What makes a difference where a model gave no answer that can be used.
fn of_trouble(cause: TroubleCause) -> Difference {
    match cause {
        TroubleCause::ModelUnknown | TroubleCause::Request => Difference::words(ANOTHER_MODEL),
        TroubleCause::Provider
        | TroubleCause::Key
        | TroubleCause::Quota
        | TroubleCause::Address
        | TroubleCause::Answer => Difference::default(),
    }
}

/// What makes a difference where a run couldn't go on.
fn of_failure(class: ErrorClass) -> Difference {
    match class {
        ErrorClass::ContextTooLong | ErrorClass::ContextExhausted => {
            Difference::words(ANOTHER_MODEL).because("one with a larger window")
        }
        ErrorClass::InvalidRequest | ErrorClass::NotFound | ErrorClass::Refusal | ErrorClass::NoAnswer => {
            Difference::words(ANOTHER_MODEL).because("another model may answer")
        }
        ErrorClass::Unauthorized | ErrorClass::Forbidden => {
            Difference::why("once the key is valid; or --model NAME")
        }
        ErrorClass::QuotaUsedUp => Difference::why("once there is quota; or --model NAME"),
        ErrorClass::Redirected => Difference::why("once the provider's address is right; or --model NAME"),
        ErrorClass::Transport
        | ErrorClass::Cut
        | ErrorClass::Stalled
        | ErrorClass::Silent
        | ErrorClass::RateLimited
        | ErrorClass::Overloaded
        | ErrorClass::Server
        | ErrorClass::MalformedResponse => Difference::why("once the provider works; or --model NAME"),
        ErrorClass::OutputCap => Difference::why("the answer is continued; or --model NAME"),
        ErrorClass::Workspace => Difference::why("once the folder can be made"),
        ErrorClass::StepFailed => Difference::why("tries the steps again that failed or were skipped"),
        ErrorClass::ScriptMismatch => Difference::why("once the script is right; or --model NAME"),
        ErrorClass::Storage => Difference::why("once the store can be read and written"),
        ErrorClass::Program => Difference::why("starts the program again"),
        ErrorClass::Unanswered => {
            Difference::why("starts the program again: attend to it, or answer its questions")
        }
        ErrorClass::Aborted | ErrorClass::ProgramGone => Difference::default(),
    }
}

/// How a workflow goes on whose step was blocked by its checks.
fn of_step(state: &RunState, why: &str) -> Option<Difference> {
    let (_, reason) = why.split_once("blocked: ")?;
    after_checks(state, &[reason.to_owned()])
}

/// How a run goes on that its checks hold back: a check that was changed since counts only with the new settings.
fn after_checks(state: &RunState, reasons: &[String]) -> Option<Difference> {
    let policy = state.policy()?;
    let agents = policy.agents.iter().map(|agent| &agent.agent);
    let of_steps = policy.flow.iter().flat_map(|flow| &flow.steps).flat_map(|step| &step.stop_hooks);
    let checks = std::iter::once(&policy.agent).chain(agents).flat_map(|agent| &agent.stop_hooks);
    let checks = checks.chain(of_steps);
    let names = checks.map(|check| check.name.as_str()).collect::<Vec<_>>();
    let begins = |start: &str| reasons.iter().any(|reason| reason.starts_with(start));
    let with_settings = with_settings(policy);
    // The reason says that a check can't be run; else it is the check's own.
    if let Some(name) = names.iter().find(|name| begins(&format!("the check `{name}` "))) {
        let place = match policy.flow.as_ref().and_then(|flow| flow.file.as_ref()) {
            Some(file) => format!("{} or the settings", visible(&file.display().to_string())),
            None => "the settings".to_owned(),
        };
        let why = format!("after the check `{name}` is repaired in {place}");
        return Some(Difference::words(with_settings).because(why));
    }
    let holds_back = names.iter().any(|name| begins(&format!("{name}: ")));
    holds_back
        .then(|| Difference::why(format!("{with_settings} takes checks that were changed in the settings")))
}

/// The flags that take the current settings, from the file that the run was started with where one was named.
fn with_settings(policy: &RunPolicy) -> String {
    let file = policy.flags.iter().find(|given| given.flag == "--config");
    let file = file.map(|file| ["--config".to_owned(), file.value.clone()]).into_iter().flatten();
    in_shell_words(&file.chain(["--with-settings".to_owned()]).collect::<Vec<_>>())
}

/// The smallest limit with which the next call is made.
#[derive(Clone, Copy)]
pub(crate) struct LeastLimit {
    pub(crate) limit: u64,
    /// Whether a final summary is part of it: before an agent's first answer none is kept.
    pub(crate) has_summary: bool,
}

/// An amount to add to a limit. For tokens and money: with which the next call, another one and a final summary have
/// room, rounded up to two digits. As much as the limit where that need isn't known, and for turns and time, of which
/// one call needs little.
pub(crate) fn enough_more(dimension: Dimension, limit: u64, used: u64, least: LeastLimit) -> u64 {
    let LeastLimit { limit: least, has_summary } = least;
    let needs = least.saturating_sub(used.max(limit));
    let of_calls = matches!(dimension, Dimension::Tokens | Dimension::Money);
    if !of_calls || needs == 0 {
        return limit.max(used.saturating_sub(limit).saturating_add(needs)).max(1);
    }
    let calls =
        used.saturating_add(least.saturating_sub(used).saturating_mul(if has_summary { 2 } else { 3 }));
    let more = calls.saturating_sub(limit);
    let unit = 10_u64.pow(more.checked_ilog10().unwrap_or_default().saturating_sub(1));
    more.div_ceil(unit).saturating_mul(unit)
}

/// The amount as `--usd` takes it, with at least two decimals.
pub(crate) fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = text.trim_end_matches('0');
    let decimals = short.rsplit('.').next().map_or(0, str::len);
    format!("{short}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_has_room_for_three_calls() {
        let least = |limit, has_summary| LeastLimit { limit, has_summary };
        let money = enough_more(Dimension::Money, 120_000, 118_000, least(131_500, true));
        assert_eq!((money, dollars(money).as_str()), (25_000, "0.025"));
        let first = enough_more(Dimension::Tokens, 2_000, 0, least(3_450, false));
        assert_eq!(first, 8_400, "the next call, another one and a final summary, rounded up");
        assert_eq!(enough_more(Dimension::Tokens, 9_000, 2_378, least(9_836, true)), 8_300, "rounded up");
        assert_eq!(
            enough_more(Dimension::Tokens, 9_000, 9_500, least(9_500, true)),
            9_000,
            "the need isn't known"
        );
        assert_eq!(enough_more(Dimension::Turns, 5, 5, least(6, true)), 5);
    }
}
