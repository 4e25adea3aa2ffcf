//! The limits of the next segment: what is left of those that the run has, and what is added to them.

use std::collections::BTreeMap;

use provost_config::{Request, load};
use provost_engine::{RunState, StepStatus};
use provost_event::{
    Budget, Dimension, Exhausted, LimitOwner, MicroDollars, Outcome, RunId, RunPolicy, Shortfall,
};

use super::steps;
use crate::cli::ResumeArgs;
use crate::commands::in_shell_words;
use crate::exit::Refusal;
use crate::render::{LeastLimit, ask_again, dollars, duration, enough_more, plural};

const TURNS: &str = "--max-turns";

/// What is given to the next segment.
pub(super) struct Given {
    pub(super) budget: Budget,
    pub(super) flags: Vec<&'static str>,
    pub(super) text: Option<String>,
    /// The arguments of `resume` that a hint repeats.
    called_with: Vec<String>,
}

/// The limits of the next segment, and the notes on them.
pub(super) struct More {
    pub(super) budget: Budget,
    pub(super) turns_max: Option<u32>,
    pub(super) said: Vec<String>,
}

impl Given {
    /// Has the reader of settings look at the flags, and takes what they alone have set.
    pub(super) fn read(request: &Request<'_>, args: &ResumeArgs) -> anyhow::Result<Self> {
        let settings = load(request)?.0.settled()?.settings;
        let flags = request.flags.iter().map(|given| given.flag).collect::<Vec<_>>();
        let has = |flag: &str| flags.contains(&flag);
        let budget = Budget {
            tokens: settings.budget.tokens.filter(|_| has("--tokens")),
            money: settings.budget.money.filter(|_| has("--usd")),
            wall_time_ms: settings.budget.wall_time_ms.filter(|_| has("--wall-time")),
            turns: settings.budget.turns.filter(|_| has("--max-turns")),
        };
        let text = Some(args.text.join(" ").trim().to_owned()).filter(|text| !text.is_empty());
        Ok(Self { budget, flags, text, called_with: called_with(args) })
    }

    /// The command that has `run` go on, with `more` besides what was given now.
    fn command(&self, run: RunId, text: Option<&str>, more: &[String]) -> String {
        let words = ["provost".to_owned(), "resume".to_owned(), run.to_string()].into_iter();
        let words = words.chain(self.called_with.iter().cloned()).chain(text.map(str::to_owned));
        in_shell_words(&words.chain(more.iter().cloned()).collect::<Vec<_>>())
    }

    /// The limits of the next segment of `run`, which `policy` binds then: what it has, and what is given besides.
    ///
    /// # Errors
    /// [`Refusal`] when `run` can't go on so; nothing of it has been touched then.
    pub(super) fn added_to(
        &self,
        run: RunId,
        (state, policy): (&RunState, &RunPolicy),
    ) -> Result<More, Refusal> {
        if let Some(outcome) = state.outcome()
            && state.flow().is_some_and(|flow| flow.iter().all(|(_, standing)| *standing == StepStatus::Done))
        {
            let what = format!("all steps of run {run} are done");
            let hint = ask_again(run, state, outcome).unwrap_or_else(|| format!("provost show {run}"));
            return Err(Refusal::new(what, hint));
        }
        if self.text.is_some() && state.flow().is_some() {
            let what = format!("run {run} is a workflow, and no one agent stands for it");
            return Err(Refusal::new(what, format!("`{}` goes on with it", self.command(run, None, &[]))));
        }
        let Some(outcome) = state.outcome() else {
            return if self.flags.is_empty() {
                Ok(More { budget: Budget::default(), turns_max: None, said: Vec::new() })
            } else {
                Err(Refusal::new(
                    format!(
                        "run {run} isn't suspended and goes on with its own limits; {} can't change them",
                        self.flags.join(", ")
                    ),
                    format!(
                        "`provost pause {run}` suspends it, or `provost resume {run}` goes on if its process is gone; when it is suspended the limits can be changed"
                    ),
                ))
            };
        };
        let refused = exhausted_in(outcome);
        let meters = meters((state, policy), &self.budget, refused);
        let lacks = meters.iter().map(|meter| meter.lack(run, refused)).collect::<Vec<_>>();
        if let Some(Lack { what, .. }) = lacks.iter().flatten().next() {
            let amount = |(meter, lack): (&Meter, &Option<Lack>)| match lack {
                Some(lack) => Some(lack.more),
                None => Some(meter.given).filter(|given| *given > 0),
            };
            let amounts = meters.iter().zip(&lacks);
            let words = amounts.filter_map(|one| {
                Some([flag_of(one.0.dimension).to_owned(), in_flag(one.0.dimension, amount(one)?)])
            });
            let words = words.flatten().collect::<Vec<_>>();
            return Err(Refusal::new(what, self.command(run, self.text.as_deref(), &words)));
        }
        let limit_of = |dimension: Dimension, owner: LimitOwner| {
            let is_it =
                |meter: &&Meter| meter.dimension == dimension && meter.owner == owner && meter.given > 0;
            meters.iter().find(is_it).and_then(Meter::limit)
        };
        let count = |turns: u64| u32::try_from(turns).unwrap_or(u32::MAX);
        let of_run = |dimension: Dimension| limit_of(dimension, LimitOwner::Run);
        let budget = Budget {
            tokens: of_run(Dimension::Tokens),
            money: of_run(Dimension::Money).map(MicroDollars),
            wall_time_ms: of_run(Dimension::WallTime),
            turns: of_run(Dimension::Turns).map(count),
        };
        // The root agent's own limit doesn't keep it from what the run is given.
        let given = u64::from(self.budget.turns.unwrap_or_default());
        let own = count(u64::from(own_turns(state)).saturating_add(given));
        let turns_max = limit_of(Dimension::Turns, LimitOwner::Agent)
            .map(count)
            .or_else(|| Some(own).filter(|own| given > 0 && *own > state.turns_max_under(policy)));
        let said = meters.iter().filter(|meter| meter.given > 0).map(Meter::said).collect();
        Ok(More { budget, turns_max, said })
    }
}

const fn exhausted_in(outcome: &Outcome) -> Option<Exhausted> {
    match outcome {
        Outcome::BudgetExhausted(exhausted) => Some(*exhausted),
        _ => None,
    }
}

/// The flags with the amounts without which a suspended or ended run isn't resumed, or is suspended again at once.
pub(crate) fn lacking(run: RunId, state: &RunState, outcome: &Outcome) -> Vec<String> {
    let Some(policy) = state.policy() else { return Vec::new() };
    let refused = exhausted_in(outcome);
    let meters = meters((state, policy), &Budget::default(), refused);
    let lacks = meters.iter().filter_map(|meter| Some((meter.dimension, meter.lack(run, refused)?.more)));
    let mut amounts = BTreeMap::new();
    for (dimension, more) in lacks.chain(steps::lacking(state, policy)) {
        let amount = amounts.entry(dimension).or_insert(more);
        *amount = more.max(*amount);
    }
    let flagged = amounts.into_iter().map(|(dimension, more)| (flag_of(dimension), in_flag(dimension, more)));
    let mut flags = flagged.collect::<Vec<_>>();
    // A limit of the root agent alone refuses nothing, but its first call.
    let own = state.turns_max_under(policy);
    if state.flow().is_none() && own_turns(state) >= own && flags.iter().all(|(flag, _)| *flag != TURNS) {
        flags.insert(0, (TURNS, own.to_string()));
    }
    flags.into_iter().map(|(flag, amount)| format!("{flag} {amount}")).collect()
}

/// Each dimension that has a limit, or is given one. Turns are the root agent's where its own limit was reached, and
/// else those of all agents.
fn meters(
    (state, policy): (&RunState, &RunPolicy),
    given: &Budget,
    refused: Option<Exhausted>,
) -> Vec<Meter> {
    let in_force = state.policy().map(|policy| state.budget_under(policy)).unwrap_or_default();
    let budget = state.budget_under(policy);
    let ledger = state.ledger();
    let of_steps = steps::limited_dimensions(state);
    let meter = |dimension, used: u64| Meter {
        dimension,
        owner: LimitOwner::Run,
        is_of_steps: of_steps.contains(&dimension),
        in_force: limit_in(&in_force, dimension),
        before: limit_in(&budget, dimension),
        used,
        given: limit_in(given, dimension).unwrap_or_default(),
    };
    let is_own =
        refused.is_some_and(|one| one.dimension == Dimension::Turns && one.owner == LimitOwner::Agent);
    let turns = meter(Dimension::Turns, ledger.turns().into());
    let turns = if is_own {
        Meter {
            owner: LimitOwner::Agent,
            in_force: state.policy().map(|policy| state.turns_max_under(policy).into()),
            before: Some(state.turns_max_under(policy).into()),
            used: own_turns(state).into(),
            ..turns
        }
    } else {
        turns
    };
    let all = [
        turns,
        meter(Dimension::Tokens, ledger.tokens),
        meter(Dimension::Money, ledger.cost.0),
        meter(Dimension::WallTime, state.active_ms()),
    ];
    all.into_iter().filter(|meter| meter.limit().is_some()).collect()
}

/// The flag that adds to a limit.
const fn flag_of(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Turns => TURNS,
        Dimension::Tokens => "--tokens",
        Dimension::Money => "--usd",
        Dimension::WallTime => "--wall-time",
    }
}

/// An amount as its flag takes it. Milliseconds are rounded up to seconds.
fn in_flag(dimension: Dimension, amount: u64) -> String {
    match dimension {
        Dimension::Tokens | Dimension::Turns => amount.to_string(),
        Dimension::Money => dollars(amount),
        Dimension::WallTime => format!("{}s", amount.div_ceil(1_000)),
    }
}

/// What the next call takes of a limit that was reached; 0 where that isn't known.
#[derive(Clone, Copy, Default)]
struct NextCall {
    needs: u64,
    /// Kept besides it, for the final summary and for judges.
    kept: u64,
    /// Whether that includes a final summary.
    has_summary: bool,
}

impl NextCall {
    fn of(exhausted: Exhausted) -> Self {
        let Some(Shortfall { needs, summary, judges, .. }) = exhausted.shortfall else {
            return Self::default();
        };
        Self { needs, kept: summary.saturating_add(judges), has_summary: summary > 0 }
    }

    const fn all(self) -> u64 {
        self.needs.saturating_add(self.kept)
    }

    fn said(self, dimension: Dimension) -> String {
        let mut said = String::new();
        if self.needs > 0 {
            said.push_str(&format!("; the next call needs about {}", shown(dimension, self.needs)));
        }
        if self.kept > 0 {
            let is_counted = matches!(dimension, Dimension::Tokens | Dimension::Turns);
            let are = if is_counted && self.kept != 1 { "are" } else { "is" };
            said.push_str(&format!(", and {} {are} kept for what comes last", shown(dimension, self.kept)));
        }
        said
    }
}

fn limit_in(budget: &Budget, dimension: Dimension) -> Option<u64> {
    match dimension {
        Dimension::Tokens => budget.tokens,
        Dimension::Money => budget.money.map(|money| money.0),
        Dimension::WallTime => budget.wall_time_ms,
        Dimension::Turns => budget.turns.map(u64::from),
    }
}

/// What of `args` decides what binds the run, as it was written.
fn called_with(args: &ResumeArgs) -> Vec<String> {
    let file = args.config.as_ref().map(|file| ["--config".to_owned(), file.display().to_string()]);
    let goal = args.goal.as_ref().map(|goal| ["--goal".to_owned(), goal.clone()]);
    let flags = [(args.with_settings, "--with-settings"), (args.no_goal, "--no-goal")];
    let flags = flags.into_iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| flag.to_owned());
    file.into_iter().chain(goal).flatten().chain(flags).collect()
}

fn own_turns(state: &RunState) -> u32 {
    state.agents().find(|agent| agent.session.agent == 0).map_or(0, |root| root.turns)
}

/// One dimension of a run's limits.
struct Meter {
    dimension: Dimension,
    owner: LimitOwner,
    /// A step's own limit in this dimension is raised by what is given: the run gets no limit by that if it has none.
    is_of_steps: bool,
    /// The limit up to now, if there was one.
    in_force: Option<u64>,
    /// The limit to which is added: that of the current settings where they are taken.
    before: Option<u64>,
    used: u64,
    /// What is added to it.
    given: u64,
}

impl Meter {
    /// The limit of the next segment. Where there was none, what is given counts from what is used.
    fn limit(&self) -> Option<u64> {
        match self.before {
            Some(before) => Some(before.saturating_add(self.given)),
            None => (self.given > 0 && !self.is_of_steps).then(|| self.used.saturating_add(self.given)),
        }
    }

    fn said(&self) -> String {
        let limit = self.limit().unwrap_or_default();
        let name = match self.dimension {
            Dimension::Tokens => "tokens",
            Dimension::Money => "money",
            Dimension::Turns => "turns",
            Dimension::WallTime => "time",
        };
        format!(
            "{name}: limit now {}, used {}",
            shown(self.dimension, limit),
            shown(self.dimension, self.used)
        )
    }

    /// What lacks where nothing is left, or less than the next call needs: the run would be suspended again at once.
    /// `refused` is the limit that suspended it, if one did.
    fn lack(&self, run: RunId, refused: Option<Exhausted>) -> Option<Lack> {
        let limit = self.limit()?;
        let refused = refused.filter(|exhausted| exhausted.dimension == self.dimension);
        let call = refused.map(NextCall::of).unwrap_or_default();
        // The current settings may have raised what was reached.
        let has_more = self.given > 0 || refused.is_none() || self.before > self.in_force;
        if has_more && self.used.saturating_add(call.all().max(1)) <= limit {
            return None;
        }
        let left = shown(self.dimension, limit.saturating_sub(self.used));
        let next = call.said(self.dimension);
        let used = shown(self.dimension, self.used);
        let limit = shown(self.dimension, limit);
        let what = if self.given > 0 {
            format!(
                "{} isn't enough for run {run}: limit {limit}, used {used}, {left} left{next}",
                flag_of(self.dimension)
            )
        } else {
            format!("run {run} has {left} left: limit {limit}, used {used}{next}")
        };
        let before = self.before.unwrap_or_default();
        let least = LeastLimit { limit: self.used.saturating_add(call.all()), has_summary: call.has_summary };
        Some(Lack { what, more: enough_more(self.dimension, before, self.used, least) })
    }
}

/// A limit that keeps a run from going on.
struct Lack {
    /// What is wrong.
    what: String,
    /// An amount to add with which it goes on.
    more: u64,
}

fn shown(dimension: Dimension, used: u64) -> String {
    match dimension {
        Dimension::Tokens => plural(used, "token"),
        Dimension::Turns => plural(used, "turn"),
        Dimension::Money => MicroDollars(used).to_string(),
        Dimension::WallTime => duration(used),
    }
}
