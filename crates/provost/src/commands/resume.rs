//! `provost resume`: a run goes on from its log.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use provost_engine::{Actor, RunState};
use provost_event::{
    ActorKey, Budget, Dimension, Exhausted, GoalState, Outcome, RunId, RunPolicy, SessionId,
};
use provost_harness::{Harness, Home as _, Models, RunQuery, read_actor};
use provost_llm::resolve;

use super::find::find;
use super::run::{others_at_work, tell};
use super::{current_dir, mark};
use crate::asking::{Asking, who_asks};
use crate::cli::ResumeArgs;
use crate::drive::{BY, Wish, Work, run_state};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::observers::observers;
use crate::questions::open_in;
use crate::render::{Progress, amount, duration};
use crate::reports::reporting;
use crate::settings::{Request, Scope, Settings, effort, load};
use crate::signals::Signals;
use crate::watcher::Watcher;
use crate::wiring::{
    Around, Chosen, Judges, Place, Programs, Variables, frozen_models, is_program, models_of, outage_max_ms,
    programs_of, providers, variables, with_absolute_paths, words,
};

pub(super) async fn resume(args: ResumeArgs) -> anyhow::Result<Exit> {
    let (folder, variables) = (current_dir()?, variables());
    let flags = args.budget.given();
    let file = args.config.as_deref();
    let request = Request { scope: Scope::User, folder: &folder, file, variables: &variables, flags: &[] };
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let settings = &settled.settings;
    let observers = observers(&settled, &folder, &variables)?;
    let more = More::read(&Request { flags: &flags, ..request })?;
    let place = Place::new(settings, &folders);
    let home = place.open()?;
    let run = find(&home, &args.run).await?;
    mark(Some(run));
    tell_of_unread("");
    let state = run_state(&home, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    may_go_on(run, &state, &more)?;
    let folder = policy_of(&state)?.agent.workspace.clone();
    let root = read_actor(&*home, ActorKey::from(SessionId::root(run))).await?;
    let tuning = Tuning::of(&args, &state, (settings, &variables))?;
    let models = models(&state, judges(&root), &more, (settings, &variables), &tuning)?;
    let programs = Programs::of(policy_of(&state)?, &settled, &variables)?;
    let wish = if state.outcome().is_none() { Wish::Outlived } else { Wish::None };
    let signals = Signals::listen().context("can't listen for Ctrl-C")?;
    let progress = Progress::choose(args.shown);
    let heads = HashMap::from([(run.into(), state.head()), (SessionId::root(run).into(), root.head())]);
    let asks = who_asks(progress);
    let view = reporting(progress.view(Some(&state)), settings, None);
    let watcher = Arc::new(Watcher::new(view, asks, heads));
    let around = Around::new(settings, &variables, (watcher.clone(), observers), programs);
    let opened = place.harness(home.clone(), models, around).open(run).await;
    let mut harness = opened.inspect_err(|_| watcher.close())?;
    if state.outcome().is_some() {
        // Until it was opened somebody else may have gone on with it.
        let now = run_state(&home, run).await?.unwrap_or(state);
        may_go_on(run, &now, &more).inspect_err(|_| watcher.close())?;
    }
    let runs = home.list(RunQuery { max: usize::MAX }).await?;
    tell(&others_at_work(&runs, &folder, Some(run)));
    tuning.tell(&harness).await?;
    harness.resume(BY, more.budget, more.turns_max).await?;
    // By now a rest is over, and with it the time that was left before.
    for question in open_in(&home, run).await? {
        watcher.opened(question);
    }
    let asking = Asking { home: home.clone(), watcher: watcher.clone(), asks, user_file: folders.user_file };
    let observed = place.observers();
    Work { home, harness, observed, watcher, asking, signals, shown: args.shown, progress, wish }
        .finish()
        .await
}

/// Which model is asked from here on, and how long outages are waited out, where that changes.
struct Tuning {
    model: Option<Chosen>,
    /// The model that is asked no longer.
    replaced: Option<String>,
    outage_max_ms: Option<u64>,
}

impl Tuning {
    fn of(
        args: &ResumeArgs,
        state: &RunState,
        (settings, variables): (&Settings, &Variables),
    ) -> anyhow::Result<Self> {
        let now = state.model().context("the run's log doesn't begin with its policy")?;
        let wait_ms = outage_max_ms(settings);
        let outage_max_ms = (wait_ms != state.outage_max_ms()).then_some(wait_ms);
        if args.model.is_none() && args.effort.is_none() {
            return Ok(Self { model: None, replaced: None, outage_max_ms });
        }
        if is_program(&now.name) {
            let what = "the run's agent is a program, which chooses its model itself";
            return Err(Refusal::new(what, "leave out --model and --effort").into());
        }
        let name = match &args.model {
            Some(name) => with_absolute_paths(name, &current_dir()?),
            None => now.name.clone(),
        };
        let (model, mut policy) = resolve(&name, &providers(settings, variables)).map_err(|error| {
            Refusal::new(format!("--model: {}", words(&error)), "`provost models` lists them")
        })?;
        let allows_unpriced = state.policy().is_some_and(|policy| policy.allow_unpriced);
        if policy.price.is_none() && state.budget().money.is_some() && !allows_unpriced {
            let what = format!("--model: the run limits money, but the price of {name} isn't known");
            return Err(Refusal::new(what, "state it in [models.\"NAME\"] of your own settings file").into());
        }
        policy.effort = match &args.effort {
            Some(word) => Some(effort(word)),
            None => now.effort,
        };
        policy.output_tokens_max = policy.output_tokens_max.min(now.output_tokens_max);
        policy.fallbacks = now.fallbacks.iter().filter(|one| one.name != name).cloned().collect();
        let replaced = (name != now.name).then(|| now.name.clone());
        Ok(Self { model: Some(Chosen { model, policy }), replaced, outage_max_ms })
    }

    /// Has the run know.
    async fn tell(&self, harness: &Harness) -> anyhow::Result<()> {
        let model = self.model.as_ref().map(|chosen| chosen.policy.clone());
        if model.is_some() || self.outage_max_ms.is_some() {
            harness.retune(model, self.outage_max_ms, BY).await?;
        }
        Ok(())
    }
}

/// Limits that the flags change.
struct More {
    budget: Budget,
    turns_max: Option<u32>,
    flags: Vec<&'static str>,
}

impl More {
    /// Has the reader of settings look at the flags, and takes what they alone have set.
    fn read(request: &Request<'_>) -> anyhow::Result<Self> {
        let settings = load(request)?.0.settled()?.settings;
        let flags = request.flags.iter().map(|(flag, _)| *flag).collect::<Vec<_>>();
        let has = |flag: &str| flags.contains(&flag);
        let budget = Budget {
            tokens: settings.budget.tokens.filter(|_| has("--tokens")),
            money: settings.budget.money.filter(|_| has("--usd")),
            wall_time_ms: settings.budget.wall_time_ms.filter(|_| has("--wall-time")),
        };
        let turns_max = has("--max-turns").then_some(settings.limits.turns_max);
        Ok(Self { budget, turns_max, flags })
    }
}

/// Says why `run` can't go on, before anything of it is touched.
fn may_go_on(run: RunId, state: &RunState, more: &More) -> Result<(), Refusal> {
    match state.outcome() {
        Some(outcome) if outcome.is_final() => Err(Refusal::new(
            format!("run {run} has ended: {outcome}"),
            format!("`provost show {run}` shows it; start another with `provost run`"),
        )),
        Some(Outcome::BudgetExhausted(exhausted)) => enough(run, *exhausted, more),
        Some(_) => Ok(()),
        None if more.flags.is_empty() => Ok(()),
        None => Err(Refusal::new(
            format!(
                "run {run} was interrupted and goes on with its own limits; {} can't change them",
                more.flags.join(", ")
            ),
            format!("`provost resume {run}` goes on; at its next rest the limits can be changed"),
        )),
    }
}

/// More than what is used up must be given, or the run would rest again at once.
fn enough(run: RunId, exhausted: Exhausted, more: &More) -> Result<(), Refusal> {
    let Exhausted { dimension, used, limit } = exhausted;
    let least = used.max(limit);
    let (flag, given, example) = match dimension {
        Dimension::Tokens => ("--tokens", more.budget.tokens, least.saturating_mul(2).to_string()),
        Dimension::Turns => {
            ("--max-turns", more.turns_max.map(u64::from), least.saturating_mul(2).to_string())
        }
        Dimension::Money => {
            let dollars = least.saturating_mul(2).div_ceil(10_000);
            (
                "--usd",
                more.budget.money.map(|money| money.0),
                format!("{}.{:02}", dollars / 100, dollars % 100),
            )
        }
        Dimension::WallTime => {
            ("--wall-time", more.budget.wall_time_ms, format!("{}s", least.saturating_mul(2).div_ceil(1_000)))
        }
    };
    if given.is_some_and(|given| given > least) {
        return Ok(());
    }
    let what = match given {
        Some(_) => format!("{flag} gives run {run} nothing more: it has used {}", shown(dimension, least)),
        None => format!("run {run} needs more budget: {exhausted}"),
    };
    Err(Refusal::new(what, format!("provost resume {run} {flag} {example}")))
}

fn shown(dimension: Dimension, used: u64) -> String {
    match dimension {
        Dimension::Tokens => format!("{} tokens", amount(used)),
        Dimension::Turns => format!("{used} turns"),
        Dimension::Money => provost_event::MicroDollars(used).to_string(),
        Dimension::WallTime => duration(used),
    }
}

fn policy_of(state: &RunState) -> anyhow::Result<&RunPolicy> {
    state.policy().context("the run's log doesn't begin with its policy")
}

/// The models that the run was started with, reached with today's addresses and keys.
fn models(
    state: &RunState,
    judges: Judges,
    more: &More,
    (settings, variables): (&Settings, &Variables),
    tuning: &Tuning,
) -> anyhow::Result<Models> {
    let policy = policy_of(state)?;
    let unpriced = models_of(policy).chain(programs_of(policy)).find(|model| model.price.is_none());
    if let Some(model) = unpriced.filter(|_| more.budget.money.is_some() && !policy.allow_unpriced) {
        let what = format!("--usd can't bind: the price of {} isn't known", model.name);
        return Err(Refusal::new(what, "limit tokens instead, with --tokens").into());
    }
    let replaced = tuning.replaced.as_deref();
    let mut models = frozen_models(policy, judges, replaced, (settings, variables))?;
    // One that was named at an earlier resume is no part of the policy.
    if let Some(now) = state.model().filter(|now| tuning.model.is_none() && models.get(&now.name).is_err()) {
        let hint = "resume with --model and another model";
        let made = resolve(&now.name, &providers(settings, variables));
        let (model, _) = made.map_err(|error| Refusal::new(words(&error), hint))?;
        models = models.with(now.name.clone(), model);
    }
    if let Some(Chosen { model, policy }) = &tuning.model {
        models = models.with(policy.name.clone(), model.clone());
    }
    Ok(models)
}

/// A goal of a run that can go on is aborted only by being cleared.
fn judges(root: &Actor) -> Judges {
    let goal = match root {
        Actor::Session(session) => session.goal(),
        Actor::Run(_) => None,
    };
    if goal.is_some_and(|goal| goal.state == GoalState::Aborted) { Judges::Spared } else { Judges::Needed }
}
