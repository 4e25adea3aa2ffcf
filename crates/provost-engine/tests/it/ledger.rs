//! Budgets of a tree: random calls against a model that keeps a list of them and adds it up each time.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use provost_engine::{ExecutionTracker, FINAL_SUMMARY_TOKENS, Ledger, Refusal, ReserveRequest, Uncertain};
use provost_event::{
    Budget, BudgetCharged, BudgetReserved, Certainty, Dimension, Exhausted, LongPrice, MicroDollars, Price,
    Purpose, SessionId, Usage,
};

use crate::world::RUN;

const DEPTH_MAX: usize = 4;
/// The shortest useful answer.
const USEFUL: u32 = 256;
/// Numbers of agents that were never admitted.
const STRANGERS: u32 = 1_000;

/// Agents and calls are given by their index among the existing ones.
#[derive(Debug, Clone, Copy)]
enum Op {
    Admit {
        parent: usize,
        budget: Budget,
    },
    Readmit {
        agent: usize,
        budget: Budget,
    },
    Reserve {
        agent: usize,
        request: Request,
    },
    ReserveByStranger {
        request: Request,
    },
    /// For a call that has or had a reservation.
    ReserveAgain {
        call: usize,
        request: Request,
    },
    Settle {
        call: usize,
        took: Took,
    },
    SettleUnknown {
        agent: usize,
        took: Took,
    },
}

#[derive(Debug, Clone, Copy)]
struct Request {
    input: u64,
    output: u32,
    keeps_back: bool,
    price: Option<Price>,
    /// Only judges' calls count for the judges' part.
    purpose: Purpose,
    /// The judges' part of each limit, in percent.
    percent: u8,
    /// Tokens that a call with a reserve leaves for a judge.
    kept_tokens: u64,
    kept_cost: MicroDollars,
    turn: u32,
}

impl Request {
    /// Judges are called at the end: they leave nothing for later.
    fn keeps_back(&self) -> bool {
        self.keeps_back && !self.is_judges()
    }

    fn is_judges(&self) -> bool {
        self.purpose == Purpose::Judge
    }

    /// The part of `limit` that judges may use.
    fn part(&self, limit: u64) -> u64 {
        limit * u64::from(self.percent) / 100
    }
}

/// The provider's report, in percent of the request.
#[derive(Debug, Clone, Copy)]
struct Took {
    percent: u64,
    turn: u32,
    certainty: Certainty,
}

const fn price(input: u64, output: u64, cache_write: u64, long: Option<LongPrice>) -> Price {
    Price {
        input: MicroDollars(input),
        output: MicroDollars(output),
        cache_read: MicroDollars(input / 10),
        cache_write: MicroDollars(cache_write),
        long,
    }
}

const LONG: LongPrice = LongPrice { above_tokens: 300, input_percent: 200, output_percent: 150 };
const PRICES: [Option<Price>; 6] = [
    None,
    Some(price(1_000_000, 1_000_000, 0, None)),
    Some(price(3_000_000, 15_000_000, 3_750_000, None)),
    Some(price(1_250_001, 9_999_999, 0, Some(LONG))),
    Some(price(1_000_000, 0, 0, None)),
    Some(price(0, 0, 0, None)),
];

fn one_of<T: Copy, const N: usize>(all: [T; N], byte: u8) -> T {
    all[usize::from(byte) % N]
}

fn budget(tokens: u8, money: u8) -> Budget {
    let of = |byte: u8, each: u64| (!byte.is_multiple_of(3)).then(|| u64::from(byte) * each);
    let turns = (tokens ^ money).is_multiple_of(7).then(|| u32::from(money % 6));
    Budget { tokens: of(tokens, 40), money: of(money, 80).map(MicroDollars), wall_time_ms: None, turns }
}

impl Op {
    /// Random bytes as an operation; a strategy for operations takes far longer.
    fn of(bytes: u64) -> Self {
        let [kind, place, a, b, c, d, e, ..] = bytes.to_le_bytes();
        let place = usize::from(place);
        let request = Request {
            input: u64::from(a) * 3,
            output: one_of([0, 1, 100, USEFUL, 257, 600, 2_000], b),
            keeps_back: c.is_multiple_of(2),
            price: one_of(PRICES, c / 2),
            purpose: one_of([Purpose::Turn, Purpose::Judge, Purpose::Summary, Purpose::FinalSummary], d),
            percent: one_of([0, 1, 20, 50, 100], d / 4),
            kept_tokens: one_of([0, 100, 3_000], e),
            kept_cost: MicroDollars(one_of([0, 250, 9_000], e / 3)),
            turn: u32::from(e % 4),
        };
        let took = Took {
            percent: one_of([0, 10, 50, 99, 100, 100, 400], a),
            turn: u32::from(b % 8),
            certainty: one_of([Certainty::Reported, Certainty::Estimated, Certainty::Unconfirmed], c),
        };
        match kind % 32 {
            0..5 => Self::Admit { parent: place, budget: budget(a, b) },
            5..7 => Self::Readmit { agent: place, budget: budget(a, b) },
            7..18 => Self::Reserve { agent: place, request },
            18 => Self::ReserveByStranger { request },
            19..21 => Self::ReserveAgain { call: place, request },
            21..31 => Self::Settle { call: place, took },
            _ => Self::SettleUnknown { agent: place, took },
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Agent {
    number: u32,
    parent: Option<u32>,
    budget: Budget,
}

/// A call, with or without a reservation.
#[derive(Debug, Clone)]
struct Call {
    agent: u32,
    number: u32,
    set_aside: Option<(u64, MicroDollars, u32)>,
    request: Request,
    output: u32,
}

#[derive(Debug)]
struct Charge {
    agent: u32,
    turn: u32,
    tokens: u64,
    cost: MicroDollars,
    is_judges: bool,
    is_turn: bool,
    certainty: Certainty,
}

/// Lists of the agents and calls, and of what happened.
#[derive(Default)]
struct Naive {
    agents: Vec<Agent>,
    calls: Vec<Call>,
    charges: Vec<Charge>,
    run_budget: Budget,
}

impl Naive {
    fn find(&self, agent: u32) -> Option<&Agent> {
        self.agents.iter().find(|known| known.number == agent)
    }

    /// An agent and those above it, itself first.
    fn chain(&self, agent: u32) -> impl Iterator<Item = &Agent> {
        std::iter::successors(self.find(agent), |link| self.find(link.parent?))
    }

    /// Whether what `agent` does counts for `whom`; `None` is the run, for which everything counts.
    fn counts(&self, agent: u32, whom: Option<u32>) -> bool {
        whom.is_none_or(|whom| self.chain(agent).any(|link| link.number == whom))
    }

    fn own_turns(&self, agent: u32) -> u32 {
        self.charges
            .iter()
            .filter(|charge| charge.agent == agent && charge.is_turn)
            .map(|charge| charge.turn)
            .max()
            .unwrap_or(0)
    }

    fn opens_turn(&self, agent: u32, request: Request) -> bool {
        request.purpose == Purpose::Turn && request.turn > self.own_turns(agent)
    }

    fn spent(&self, whom: Option<u32>) -> ExecutionTracker {
        let mut sum = self.taken(|agent, _| self.counts(agent, whom));
        let agents = self.agents.iter().filter(|agent| self.counts(agent.number, whom));
        sum.turns = agents.map(|agent| self.own_turns(agent.number)).sum();
        sum
    }

    /// The usage of the calls that `counts` selects, by their agent and whether they are judges'.
    fn taken(&self, counts: impl Fn(u32, bool) -> bool) -> ExecutionTracker {
        let mut sum = ExecutionTracker::default();
        for charge in self.charges.iter().filter(|charge| counts(charge.agent, charge.is_judges)) {
            sum.tokens += charge.tokens;
            sum.cost += charge.cost;
        }
        let calls = self.calls.iter().filter(|call| counts(call.agent, call.request.is_judges()));
        for (tokens, cost, turns) in calls.filter_map(|call| call.set_aside) {
            sum.turns_set_aside += turns;
            sum.tokens_set_aside += tokens;
            sum.cost_set_aside += cost;
        }
        sum
    }

    /// The limits that apply to an agent, with their owners: its own, those above it, the run's.
    fn limits(&self, agent: u32) -> Vec<(Option<u32>, Budget)> {
        let chain = self.chain(agent).map(|link| (Some(link.number), link.budget));
        chain.chain([(None, self.run_budget)]).collect()
    }

    /// The first limit that a call with an answer of this length would exceed, if any.
    fn breaks(&self, agent: u32, request: Request, output: u32) -> Option<Refusal> {
        let mut limits = self.limits(agent);
        let run = limits.pop();
        let all = limits.into_iter().map(|(by, budget)| (by, budget, self.spent(by), false));
        // The judges' part belongs to the run, and is checked just before its limit.
        let share = request.is_judges().then(|| {
            let money = self.run_budget.money.map(|limit| MicroDollars(request.part(limit.0)));
            let tokens = self.run_budget.tokens.map(|limit| request.part(limit));
            let share = Budget { tokens, money, wall_time_ms: None, turns: None };
            (None, share, self.taken(|_, is_judges| is_judges), true)
        });
        let run = run.map(|(by, budget)| (by, budget, self.spent(by), false));
        let mut all = all.chain(share).chain(run);
        all.find_map(|(by, budget, spent, is_judges)| {
            let opens = !is_judges && self.opens_turn(agent, request);
            let exhausted = breaks_one(budget, spent, (request, opens), output)?;
            Some(Refusal { exhausted, by, is_judges })
        })
    }
}

/// The limit of one budget that a call with an answer of this length would exceed.
fn breaks_one(
    budget: Budget,
    spent: ExecutionTracker,
    (request, opens): (Request, bool),
    output: u32,
) -> Option<Exhausted> {
    let turns = spent.turns + spent.turns_set_aside;
    if let Some(limit) = budget.turns.filter(|limit| opens && turns >= *limit) {
        return Some(Exhausted::new(Dimension::Turns, turns.into(), limit.into()));
    }
    let (times, words) = if request.keeps_back() { (2, u64::from(FINAL_SUMMARY_TOKENS)) } else { (1, 0) };
    let kept = |kept: u64, limit: u64| if request.keeps_back() { kept.min(request.part(limit)) } else { 0 };
    let tokens = times * (request.input + u64::from(output)) + words;
    if let Some(limit) = budget.tokens
        && spent.tokens + spent.tokens_set_aside + tokens + kept(request.kept_tokens, limit) > limit
    {
        return Some(Exhausted::new(Dimension::Tokens, spent.tokens, limit));
    }
    if let (Some(MicroDollars(limit)), Some(price)) = (budget.money, request.price) {
        let final_summary = if request.keeps_back() { worst(price, request.input, words) } else { 0 };
        let answers = worst_output(price, request.input, times * u64::from(output));
        let money = worst(price, request.input, 0) + final_summary + answers;
        if spent.cost.0 + spent.cost_set_aside.0 + money + kept(request.kept_cost.0, limit) > limit {
            return Some(Exhausted::new(Dimension::Money, spent.cost.0, limit));
        }
    }
    None
}

/// A refusal without owner and reason: only the numbers are compared.
fn bare(refusal: Refusal) -> Refusal {
    let Exhausted { dimension, used, limit, .. } = refusal.exhausted;
    Refusal { exhausted: Exhausted::new(dimension, used, limit), ..refusal }
}

/// Micro-dollars if all input is written to the cache, where that costs more.
fn worst(price: Price, input: u64, output: u64) -> u64 {
    let usage = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
    let written = Usage { cache_write_tokens: input, input_tokens: 0, ..usage };
    price.cost(usage).0.max(price.cost(written).0)
}

/// Micro-dollars of the answer alone.
fn worst_output(price: Price, input: u64, output: u64) -> u64 {
    let price = Price { input: MicroDollars(0), long: None, ..price.for_prompt(input) };
    price.cost(Usage { output_tokens: output, ..Usage::default() }).0
}

const fn session(agent: u32) -> SessionId {
    SessionId { run: RUN, agent }
}

#[derive(Default)]
struct Both {
    ledger: Ledger,
    naive: Naive,
    /// The number last given to an agent or a call.
    last: u32,
}

impl Both {
    fn next_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    fn agent(&self, place: usize) -> u32 {
        self.naive.agents.get(place % (self.naive.agents.len() + 1)).map_or(0, |agent| agent.number)
    }

    /// An agent that isn't admitted before its first call has no parent.
    fn hear_of(&mut self, agent: u32) {
        if self.naive.find(agent).is_none() {
            self.naive.agents.push(Agent { number: agent, parent: None, budget: Budget::default() });
        }
    }

    fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Admit { parent, budget } => self.admit(parent, budget),
            Op::Readmit { agent, budget } => self.readmit(agent, budget),
            Op::Reserve { agent, request } => {
                let (agent, number) = (self.agent(agent), self.next_number());
                return self.reserve(agent, number, request);
            }
            Op::ReserveByStranger { request } => {
                let number = self.next_number();
                return self.reserve(STRANGERS + number, number, request);
            }
            Op::ReserveAgain { call, request } => {
                let calls = &self.naive.calls;
                let Some(call) = calls.get(call % calls.len().max(1)) else { return Ok(()) };
                return self.reserve(call.agent, call.number, request);
            }
            Op::Settle { call, took } => {
                let calls = &self.naive.calls;
                if let Some(call) = calls.get(call % calls.len().max(1)).cloned() {
                    self.settle(&call, took);
                }
            }
            Op::SettleUnknown { agent, took } => {
                let request = Request {
                    input: 70,
                    output: 30,
                    keeps_back: false,
                    price: PRICES[1],
                    purpose: Purpose::Judge,
                    percent: 100,
                    kept_tokens: 0,
                    kept_cost: MicroDollars(0),
                    turn: 0,
                };
                let (agent, number) = (self.agent(agent), u32::MAX);
                self.settle(&Call { agent, number, set_aside: None, request, output: 30 }, took);
            }
        }
        Ok(())
    }

    fn admit(&mut self, parent: usize, budget: Budget) {
        let number = self.next_number();
        let parent = self.agent(parent);
        self.hear_of(parent);
        if self.naive.chain(parent).count() < DEPTH_MAX {
            self.naive.agents.push(Agent { number, parent: Some(parent), budget });
            self.ledger.admit(number, Some(parent), budget);
        }
    }

    /// It keeps its parent, whichever is passed.
    fn readmit(&mut self, agent: usize, budget: Budget) {
        let number = self.agent(agent);
        if let Some(known) = self.naive.agents.iter_mut().find(|known| known.number == number) {
            known.budget = budget;
            self.ledger.admit(number, Some(number), budget);
        }
    }

    fn reserve(&mut self, agent: u32, number: u32, request: Request) -> Result<(), TestCaseError> {
        let asked = ReserveRequest {
            ends_work: false,
            judges_percent: request.percent,
            kept_cost: request.kept_cost,
            kept_tokens: request.kept_tokens,
            thinking_tokens: 0,
            session: session(agent),
            call: number,
            input_tokens: request.input,
            output_tokens_max: request.output,
            price: request.price,
            keeps_back: request.keeps_back(),
            purpose: request.purpose,
            turn: request.turn,
            model: String::new(),
            estimated_tokens: 0,
            is_counted: true,
            external: None,
        };
        let told = self.ledger.fitting_output(self.naive.run_budget, &asked);
        let Ok(output) = told else {
            let refused = self.naive.breaks(agent, request, request.output.min(USEFUL));
            prop_assert_eq!(told.err().map(bare), refused);
            return Ok(());
        };
        prop_assert!(output <= request.output && output >= request.output.min(USEFUL));
        prop_assert_eq!(self.naive.breaks(agent, request, output), None);
        let is_longest = output == request.output || self.naive.breaks(agent, request, output + 1).is_some();
        prop_assert!(is_longest, "a longer answer than {} would fit", output);
        self.set_aside(agent, number, request, output)
    }

    fn set_aside(
        &mut self,
        agent: u32,
        number: u32,
        request: Request,
        output: u32,
    ) -> Result<(), TestCaseError> {
        let tokens = request.input + u64::from(output);
        let cost = request.price.map_or(0, |price| worst(price, request.input, u64::from(output)));
        let cost = MicroDollars(cost);
        self.hear_of(agent);
        let same = |call: &&Call| (call.agent, call.number) == (agent, number);
        let is_again = self.naive.calls.iter().any(|call| same(&call) && call.set_aside.is_some());
        self.naive.calls.retain(|call| !same(&call));
        let opens = self.naive.opens_turn(agent, request);
        self.ledger.reserve(&BudgetReserved {
            purpose: request.purpose,
            session: session(agent),
            call: number,
            tokens,
            cost,
            output_tokens_max: output,
            turn: request.turn,
            estimated_tokens: 0,
        });
        let set_aside = Some((tokens, cost, u32::from(opens)));
        self.naive.calls.push(Call { agent, number, set_aside, request, output });
        prop_assert_eq!(self.ledger.reserved_output(session(agent), number, request.purpose), Some(output));
        let others = [Purpose::Turn, Purpose::Judge].into_iter().filter(|other| *other != request.purpose);
        for other in others {
            prop_assert_eq!(self.ledger.reserved_output(session(agent), number, other), None);
        }
        for (by, budget) in self.naive.limits(agent) {
            let spent = by.map_or(Some(self.ledger.run()), |agent| self.ledger.spent(agent));
            let spent = spent.expect("it is known");
            let turns = spent.turns + spent.turns_set_aside;
            prop_assert!(!opens || is_again || budget.turns.is_none_or(|limit| turns <= limit));
            let tokens = spent.tokens + spent.tokens_set_aside;
            prop_assert!(budget.tokens.is_none_or(|limit| tokens <= limit));
            let money = spent.cost + spent.cost_set_aside;
            // A call with an unknown price is made all the same.
            prop_assert!(request.price.is_none() || budget.money.is_none_or(|limit| money <= limit));
        }
        Ok(())
    }

    fn settle(&mut self, call: &Call, took: Took) {
        let part = |all: u64| all * took.percent / 100;
        let usage = Usage {
            input_tokens: part(call.request.input),
            output_tokens: part(u64::from(call.output)),
            certainty: took.certainty,
            ..Usage::default()
        };
        let (agent, number) = (call.agent, call.number);
        let cost = call.request.price.map(|price| price.cost(usage));
        self.hear_of(agent);
        self.ledger.charge(&BudgetCharged {
            session: session(agent),
            call: number,
            turn: took.turn,
            model: String::new(),
            usage,
            cost,
            purpose: Purpose::Turn,
        });
        let tokens = usage.total();
        let cost = cost.unwrap_or_default();
        let same = |known: &&mut Call| (known.agent, known.number) == (agent, number);
        let known = self.naive.calls.iter_mut().find(same);
        let was_set_aside = known.and_then(|known| known.set_aside.take()).is_some();
        let is_judges = call.request.is_judges() && was_set_aside;
        let is_turn = !was_set_aside || call.request.purpose == Purpose::Turn;
        self.naive.charges.push(Charge {
            agent,
            turn: took.turn,
            tokens,
            cost,
            is_judges,
            is_turn,
            certainty: took.certainty,
        });
    }

    fn check(&self, agent: u32) -> Result<(), TestCaseError> {
        if self.naive.find(agent).is_none() {
            prop_assert_eq!(self.ledger.spent(agent), None);
            return Ok(());
        }
        let spent = self.naive.spent(Some(agent));
        prop_assert_eq!(self.ledger.spent(agent), Some(&spent));
        prop_assert_eq!(self.ledger.own_turns(agent), self.naive.own_turns(agent));
        Ok(())
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        for agent in &self.naive.agents {
            self.check(agent.number)?;
        }
        let (ledger, run) = (&self.ledger, self.naive.spent(None));
        prop_assert_eq!(*ledger.run(), run);
        prop_assert_eq!((ledger.tokens, ledger.cost, ledger.turns()), (run.tokens, run.cost, run.turns));
        // Each charge counts for the limits whatever its certainty, and for the amounts of its own certainty.
        for (part, certainty) in
            [(ledger.estimated, Certainty::Estimated), (ledger.unconfirmed, Certainty::Unconfirmed)]
        {
            let charges = self.naive.charges.iter().filter(|charge| charge.certainty == certainty);
            let sum = charges.fold(Uncertain::default(), |sum, charge| {
                sum.plus(Uncertain { tokens: charge.tokens, cost: charge.cost })
            });
            prop_assert_eq!(part, sum);
        }
        Ok(())
    }

    /// Serializes the ledger and continues with the deserialized one.
    fn read_back(&mut self) -> Result<(), TestCaseError> {
        let text = serde_json::to_string(&self.ledger).expect("JSON");
        let read = serde_json::from_str::<Ledger>(&text).expect("a ledger");
        prop_assert_eq!(&read, &self.ledger);
        self.ledger = read;
        Ok(())
    }

    /// At the end all reservations can be released.
    fn settle_all(&mut self) -> Result<(), TestCaseError> {
        for call in self.naive.calls.clone() {
            if call.set_aside.is_some() {
                self.settle(&call, Took { percent: 10, turn: 1, certainty: Certainty::Unconfirmed });
            }
        }
        let agents = self.naive.agents.iter().filter_map(|agent| self.ledger.spent(agent.number));
        for spent in agents.chain([self.ledger.run()]) {
            let set_aside = (spent.tokens_set_aside, spent.cost_set_aside, spent.turns_set_aside);
            prop_assert_eq!(set_aside, (0, MicroDollars(0), 0));
        }
        Ok(())
    }
}

/// The number of cases, unless the variable sets another.
fn cases() -> u32 {
    std::env::var("PROVOST_LEDGER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10_000)
}

#[test]
fn no_call_is_granted_that_a_budget_above_it_could_not_pay_for() {
    let sequence = (any::<(u8, u8)>(), proptest::collection::vec(any::<u64>().prop_map(Op::of), 0..=40));
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let told = TestRunner::new(config).run(&sequence, |((tokens, money), ops)| {
        let mut both = Both::default();
        let run = budget(tokens, money);
        both.naive.run_budget = Budget {
            tokens: run.tokens.map(|tokens| tokens * 2),
            money: run.money,
            wall_time_ms: None,
            turns: None,
        };
        for (place, op) in ops.into_iter().enumerate() {
            both.apply(op)?;
            both.check(both.agent(place))?;
        }
        both.check_all()?;
        both.read_back()?;
        both.settle_all()?;
        both.check_all()
    });
    told.unwrap_or_else(|problem| panic!("{problem}"));
}

fn request(purpose: Purpose, percent: u8, kept_tokens: u64) -> ReserveRequest {
    ReserveRequest {
        session: session(0),
        call: 1,
        input_tokens: 1_000,
        output_tokens_max: 1_000,
        price: None,
        keeps_back: purpose == Purpose::Turn,
        thinking_tokens: 0,
        kept_tokens,
        kept_cost: MicroDollars::default(),
        judges_percent: percent,
        ends_work: true,
        purpose,
        turn: 1,
        model: String::new(),
        estimated_tokens: 1_000,
        is_counted: true,
        external: None,
    }
}

fn tokens(limit: u64) -> Budget {
    Budget { tokens: Some(limit), ..Budget::default() }
}

#[test]
fn judges_have_a_part_of_the_run_s_limit_and_none_of_an_agent_s() {
    let mut ledger = Ledger::default();
    // 20 % of 9,000 are 1,800: 800 besides the request.
    let judge = request(Purpose::Judge, 20, 0);
    assert_eq!(ledger.fitting_output(tokens(9_000), &judge), Ok(800));
    let refused = ledger.fitting_output(tokens(6_000), &judge).expect_err("256 tokens are the least");
    let exhausted = Exhausted::new(Dimension::Tokens, 0, 1_200);
    assert_eq!(bare(refused), Refusal { exhausted, by: None, is_judges: true });
    // An agent's own limit applies to its judges in full.
    ledger.admit(0, None, tokens(1_900));
    assert_eq!(ledger.fitting_output(Budget::default(), &judge), Ok(900));
    // Without a limit of the run there is no part of it.
    ledger.admit(0, None, Budget::default());
    assert_eq!(ledger.fitting_output(Budget::default(), &judge), Ok(1_000));
}

#[test]
fn other_calls_keep_back_what_a_judge_needs_and_no_more_than_the_judges_part() {
    let ledger = Ledger::default();
    let fits =
        |limit, percent, kept| ledger.fitting_output(tokens(limit), &request(Purpose::Turn, percent, kept));
    // The request twice, 512 for the final summary, and the answer twice.
    assert_eq!(fits(4_512, 100, 0), Ok(1_000));
    assert_eq!(fits(4_511, 100, 0), Ok(999));
    assert_eq!(fits(5_512, 100, 1_000), Ok(1_000));
    assert_eq!(fits(5_511, 100, 1_000), Ok(999));
    // Judges may only use a tenth of 5,000.
    assert_eq!(fits(5_000, 10, 1_000), Ok(994));
    assert_eq!(fits(5_000, 0, 1_000), Ok(1_000));
    // The final summary keeps nothing back.
    let words = request(Purpose::FinalSummary, 100, 1_000);
    assert_eq!(ledger.fitting_output(tokens(2_000), &words), Ok(1_000));
}

#[test]
fn what_no_provider_has_reported_is_told_apart() {
    let session = SessionId::root(RUN);
    let mut ledger = Ledger::default();
    ledger.reserve(&BudgetReserved {
        turn: 1,
        estimated_tokens: 0,
        session,
        call: 1,
        tokens: 700,
        cost: MicroDollars(90),
        output_tokens_max: 200,
        purpose: Purpose::Turn,
    });
    let (usage, cost) = ledger.unconfirmed_usage(session, 1, Purpose::Turn).unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, cost), (500, 200, MicroDollars(90)));
    let charge = |call, usage, cost| BudgetCharged {
        session,
        call,
        turn: 1,
        model: "a/b".to_owned(),
        usage,
        cost: Some(MicroDollars(cost)),
        purpose: Purpose::Turn,
    };
    ledger.charge(&charge(1, usage, 90));
    let estimated = Usage { input_tokens: 30, certainty: Certainty::Estimated, ..Usage::default() };
    ledger.charge(&charge(2, estimated, 7));
    ledger.charge(&charge(3, Usage { input_tokens: 5, ..Usage::default() }, 1));
    assert_eq!((ledger.tokens, ledger.cost), (735, MicroDollars(98)));
    assert_eq!((ledger.unconfirmed.tokens, ledger.unconfirmed.cost), (700, MicroDollars(90)));
    assert_eq!((ledger.estimated.tokens, ledger.estimated.cost), (30, MicroDollars(7)));
}
