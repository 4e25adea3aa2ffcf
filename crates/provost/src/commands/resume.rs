//! `provost resume`: a run goes on from its log.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use provost_engine::{Actor, RunEvent, RunState, Standing, StepStanding};
use provost_event::{
    ActorKey, Budget, Dimension, Exhausted, GoalState, LimitOwner, MicroDollars, Outcome, RunId, RunPolicy,
    SessionId, Shortfall,
};
use provost_harness::{Harness, Home as _, Models, RemadeWorktree, ResumeRequest, RunQuery, read_actor};
use provost_llm::resolve;

use super::exec::in_shell_words;
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
use crate::render::{Progress, amount, duration, enough_more};
use crate::reports::reporting;
use crate::settings::{Request, Scope, Settings, load};
use crate::signals::Signals;
use crate::watcher::Watcher;
use crate::wiring::{
    Around, Chosen, Judges, Place, Programs, Variables, choose_again, frozen_models, models_of,
    outage_max_ms, programs_of, providers, variables, words,
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
    let given = Given::read(&Request { flags: &flags, ..request }, &args.text)?;
    let place = Place::new(settings, &folders);
    let home = place.open()?;
    let run = find(&home, &args.run).await?;
    mark(Some(run));
    tell_of_unread("");
    let state = run_state(&home, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let folder = policy_of(&state)?.agent.workspace.clone();
    let root = read_actor(&*home, ActorKey::from(SessionId::root(run))).await?;
    let more = given.added_to(run, &state, &root)?;
    let tuning = Tuning::of(&args, &state, (settings, &variables))?;
    let models = models(&state, judges(&root), &given, (settings, &variables), &tuning)?;
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
    let (was_suspended, mut more) = (state.outcome().is_some(), more);
    if was_suspended {
        // Until it was opened somebody else may have gone on with it.
        let now = run_state(&home, run).await?.unwrap_or(state);
        more = given.added_to(run, &now, &root).inspect_err(|_| watcher.close())?;
    }
    if matches!(progress, Progress::Plain | Progress::Attended | Progress::Live) && !args.shown.quiet {
        more.said.iter().for_each(|line| crate::output::tell(line));
    }
    let runs = home.list(RunQuery { max: usize::MAX }).await?;
    tell(&others_at_work(&runs, &folder, Some(run)));
    for RemadeWorktree { agent, path, branch, commit } in harness.remade_worktrees() {
        let path = path.display();
        crate::output::tell(&format!(
            "the worktree {path} of agent {agent} was gone: made again, on branch {branch} at commit {commit}"
        ));
    }
    tuning.tell(&harness).await?;
    match (was_suspended, given.text) {
        (true, text) => {
            let (by, budget, turns_max) = (BY.to_owned(), more.budget, more.turns_max);
            harness.resume_with(ResumeRequest { by, budget, turns_max, text }).await?;
        }
        // It goes on by itself as soon as it is opened.
        (false, Some(text)) => {
            let say = RunEvent::Say { agent: 0, text, by: BY.to_owned() };
            home.post(run.into(), say.into(), None).await?;
        }
        (false, None) => {}
    }
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
        let wanted = (args.model.as_deref(), args.effort.as_deref());
        let Some(chosen) = choose_again(wanted, now, (settings, variables))? else {
            return Ok(Self { model: None, replaced: None, outage_max_ms });
        };
        let name = &chosen.policy.name;
        let allows_unpriced = state.policy().is_some_and(|policy| policy.allow_unpriced);
        if chosen.policy.price.is_none() && state.budget().money.is_some() && !allows_unpriced {
            let what = format!("--model: the run limits money, but the price of {name} isn't known");
            return Err(Refusal::new(what, "state it in [models.\"NAME\"] of your own settings file").into());
        }
        let replaced = (*name != now.name).then(|| now.name.clone());
        Ok(Self { model: Some(chosen), replaced, outage_max_ms })
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

/// What is given to the next segment.
struct Given {
    budget: Budget,
    flags: Vec<&'static str>,
    text: Option<String>,
}

/// The limits that the next segment has, and what is said of them.
struct More {
    budget: Budget,
    turns_max: Option<u32>,
    said: Vec<String>,
}

impl Given {
    /// Has the reader of settings look at the flags, and takes what they alone have set.
    fn read(request: &Request<'_>, text: &[String]) -> anyhow::Result<Self> {
        let settings = load(request)?.0.settled()?.settings;
        let flags = request.flags.iter().map(|(flag, _)| *flag).collect::<Vec<_>>();
        let has = |flag: &str| flags.contains(&flag);
        let budget = Budget {
            tokens: settings.budget.tokens.filter(|_| has("--tokens")),
            money: settings.budget.money.filter(|_| has("--usd")),
            wall_time_ms: settings.budget.wall_time_ms.filter(|_| has("--wall-time")),
            turns: settings.budget.turns.filter(|_| has("--max-turns")),
        };
        let text = Some(text.join(" ").trim().to_owned()).filter(|text| !text.is_empty());
        Ok(Self { budget, flags, text })
    }

    /// The limits of the next segment of `run`: what it has, and what is given besides.
    ///
    /// # Errors
    /// [`Refusal`] when `run` can't go on so; nothing of it has been touched then.
    fn added_to(&self, run: RunId, state: &RunState, root: &Actor) -> Result<More, Refusal> {
        if self.text.is_some() && state.flow().is_some() {
            let what = format!("run {run} is a workflow, and no one agent stands for it");
            return Err(Refusal::new(what, format!("provost resume {run}, without a text")));
        }
        let Some(outcome) = state.outcome() else {
            return if self.flags.is_empty() {
                Ok(More { budget: Budget::default(), turns_max: None, said: Vec::new() })
            } else {
                Err(Refusal::new(
                    format!(
                        "run {run} was interrupted and goes on with its own limits; {} can't change them",
                        self.flags.join(", ")
                    ),
                    format!("`provost resume {run}` goes on; when it is suspended the limits can be changed"),
                ))
            };
        };
        if state.flow().is_some_and(|flow| flow.iter().all(|(_, standing)| *standing == StepStanding::Done)) {
            let what = format!("all steps of run {run} are done");
            return Err(Refusal::new(what, format!("`provost show {run}` shows them")));
        }
        let refused = match outcome {
            Outcome::BudgetExhausted(exhausted) => Some(*exhausted),
            _ => None,
        };
        let meters = self.meters(state, refused);
        for meter in &meters {
            let refused = refused.filter(|exhausted| exhausted.dimension == meter.dimension);
            let next = refused.map(|exhausted| NextCall::of(exhausted, root)).unwrap_or_default();
            meter.refuse(run, refused.is_some(), next, self.text.as_deref())?;
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
            .or_else(|| Some(own).filter(|own| given > 0 && *own > state.turns_max()));
        let said = meters.iter().filter(|meter| meter.given > 0).map(Meter::said).collect();
        Ok(More { budget, turns_max, said })
    }

    /// Each dimension that has a limit, or is given one. Turns are the root agent's where its own limit was reached,
    /// and those of all agents otherwise.
    fn meters(&self, state: &RunState, refused: Option<Exhausted>) -> Vec<Meter> {
        let (budget, ledger) = (state.budget(), state.ledger());
        let meter = |dimension, flag, before: Option<u64>, used: u64, given: Option<u64>| Meter {
            dimension,
            owner: LimitOwner::Run,
            flag,
            before,
            used,
            given: given.unwrap_or_default(),
        };
        let money = |money: Option<MicroDollars>| money.map(|money| money.0);
        let given_turns = self.budget.turns.map(u64::from);
        let is_own =
            refused.is_some_and(|one| one.dimension == Dimension::Turns && one.owner == LimitOwner::Agent);
        let turns = if is_own {
            let before = Some(u64::from(state.turns_max()));
            let own = meter(Dimension::Turns, "--max-turns", before, own_turns(state).into(), given_turns);
            Meter { owner: LimitOwner::Agent, ..own }
        } else {
            let before = budget.turns.map(u64::from);
            meter(Dimension::Turns, "--max-turns", before, ledger.turns().into(), given_turns)
        };
        let all = [
            turns,
            meter(Dimension::Tokens, "--tokens", budget.tokens, ledger.tokens, self.budget.tokens),
            meter(Dimension::Money, "--usd", money(budget.money), ledger.cost.0, money(self.budget.money)),
            meter(
                Dimension::WallTime,
                "--wall-time",
                budget.wall_time_ms,
                state.active_ms(),
                self.budget.wall_time_ms,
            ),
        ];
        all.into_iter().filter(|meter| meter.limit().is_some()).collect()
    }
}

/// What the next call takes of a limit that was reached; 0 where that isn't known.
#[derive(Clone, Copy, Default)]
struct NextCall {
    needs: u64,
    /// Kept besides it, for the final summary and for judges.
    kept: u64,
}

impl NextCall {
    fn of(exhausted: Exhausted, root: &Actor) -> Self {
        match (exhausted.shortfall, root) {
            (Some(Shortfall { needs, summary, judges, .. }), _) => {
                Self { needs, kept: summary.saturating_add(judges) }
            }
            (None, Actor::Session(root)) if exhausted.dimension == Dimension::Tokens => {
                Self { needs: root.next_call_tokens(), kept: 0 }
            }
            (None, _) => Self::default(),
        }
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
            said.push_str(&format!(", and {} are kept for what comes last", shown(dimension, self.kept)));
        }
        said
    }
}

fn own_turns(state: &RunState) -> u32 {
    state.agents().find(|agent| agent.session.agent == 0).map_or(0, |root| root.turns)
}

/// One dimension of a run's limits.
struct Meter {
    dimension: Dimension,
    owner: LimitOwner,
    flag: &'static str,
    /// The limit up to now, if there was one.
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
            None => (self.given > 0).then(|| self.used.saturating_add(self.given)),
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

    /// Says so where nothing is left, or not what the next call needs: the run would be suspended again at once.
    /// `is_refused` where it came to this limit; `call` is what the next one takes.
    fn refuse(
        &self,
        run: RunId,
        is_refused: bool,
        call: NextCall,
        text: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(limit) = self.limit() else { return Ok(()) };
        let has_more = self.given > 0 || !is_refused;
        if has_more && self.used.saturating_add(call.all().max(1)) <= limit {
            return Ok(());
        }
        let left = shown(self.dimension, limit.saturating_sub(self.used));
        let next = call.said(self.dimension);
        let (used, limit) = (shown(self.dimension, self.used), shown(self.dimension, limit));
        let what = if self.given > 0 {
            format!("{} isn't enough for run {run}: limit {limit}, used {used}, {left} left{next}", self.flag)
        } else {
            format!("run {run} has {left} left: limit {limit}, used {used}{next}")
        };
        let example = self.example(call);
        let text = text.map(|text| format!(" {}", in_shell_words(&[text.to_owned()]))).unwrap_or_default();
        Err(Refusal::new(what, format!("provost resume {run}{text} {} {example}", self.flag)))
    }

    /// An amount to add that takes further.
    fn example(&self, call: NextCall) -> String {
        let limit = self.before.unwrap_or_default();
        let more = enough_more(limit, self.used, self.used.saturating_add(call.all()));
        match self.dimension {
            Dimension::Tokens | Dimension::Turns => more.to_string(),
            Dimension::Money => {
                let cents = more.div_ceil(10_000);
                format!("{}.{:02}", cents / 100, cents % 100)
            }
            Dimension::WallTime => format!("{}s", more.div_ceil(1_000)),
        }
    }
}

fn shown(dimension: Dimension, used: u64) -> String {
    match dimension {
        Dimension::Tokens => format!("{} tokens", amount(used)),
        Dimension::Turns if used == 1 => "1 turn".to_owned(),
        Dimension::Turns => format!("{used} turns"),
        Dimension::Money => MicroDollars(used).to_string(),
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
    more: &Given,
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

/// Nobody is asked about a goal that was cleared; that of a run which was cancelled or aborted is verified anew.
fn judges(root: &Actor) -> Judges {
    let goal = match root {
        Actor::Session(session) => session.goal(),
        Actor::Run(_) => None,
    };
    let was_stopped = match root {
        Actor::Session(session) => {
            matches!(session.standing(), Standing::Rests(Outcome::Cancelled { .. } | Outcome::Aborted { .. }))
        }
        Actor::Run(_) => false,
    };
    let is_cleared = goal.is_some_and(|goal| goal.state == GoalState::Aborted) && !was_stopped;
    if is_cleared { Judges::Spared } else { Judges::Needed }
}
