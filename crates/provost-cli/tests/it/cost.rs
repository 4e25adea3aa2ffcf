//! Spending, summed up from the runs' logs.

use std::path::Path;

use expect_test::{Expect, expect};
use provost_event::{
    ActorKey, AgentPolicy, BudgetCharged, Certainty, Entry, MicroDollars, ModelPolicy, Record, RunId,
    RunPolicy, RunStarted, Seq, SessionId, SessionStarted, Timestamp, Usage,
};

use crate::support::{Scene, json, line_in, sealed, until};

const OPUS: &str = "anthropic/claude-opus-4-5";
const HAIKU: &str = "anthropic/claude-haiku-4-5";
const OWN: &str = "ours/qwen";

/// A run's log as in an export.
struct Log {
    run: RunId,
    records: Vec<Record>,
    /// How the root agent's log begins.
    root: Record,
}

impl Log {
    fn new(run: &str, goal: &str, root_model: &str, at: &str) -> Self {
        let agent = AgentPolicy::new(ModelPolicy::new(root_model, 1_000), "/w".into());
        let policy = RunPolicy { spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) };
        let run = run.parse().unwrap();
        let started = SessionStarted {
            goal: goal.to_owned(),
            images: Vec::new(),
            policy: policy.agent.clone(),
            parent: None,
            depth: 0,
            call: None,
            agent: None,
            worktree: None,
            fork: None,
            reminder_id: String::new(),
        };
        let root = Record {
            actor: SessionId::root(run).into(),
            seq: Seq(1),
            at: instant(at),
            elapsed: provost_event::Elapsed::default(),
            entry: started.into(),
        };
        let log = Self { run, records: Vec::new(), root };
        log.with(at, RunStarted { goal: goal.to_owned(), policy, baseline: None })
    }

    fn with(mut self, at: &str, entry: impl Into<Entry>) -> Self {
        self.records.push(Record {
            actor: ActorKey::Run(self.run),
            seq: Seq(self.records.len() as u64 + 1),
            at: instant(at),
            elapsed: provost_event::Elapsed::default(),
            entry: entry.into(),
        });
        self
    }

    /// A call of an agent to a model, with its tokens: input, cached, written, output, and the reasoning among the
    /// output.
    fn paid(self, at: &str, (agent, model): (u32, &str), tokens: [u64; 5], cost: Option<u64>) -> Self {
        let [input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens] = tokens;
        let charged = BudgetCharged {
            session: SessionId { run: self.run, agent },
            call: u32::try_from(self.records.len()).unwrap(),
            turn: 1,
            model: model.to_owned(),
            usage: Usage {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens,
                reasoning_tokens,
                certainty: Certainty::Reported,
            },
            cost: cost.map(MicroDollars),
            purpose: provost_event::Purpose::Turn,
        };
        self.with(at, charged)
    }

    fn text(&self) -> String {
        let lines = self.records.iter().chain([&self.root]);
        lines.map(|record| record.to_line().unwrap() + "\n").collect()
    }

    #[track_caller]
    fn import(&self, scene: &Scene) {
        import(scene, &self.text());
    }
}

fn instant(at: &str) -> Timestamp {
    let at = at.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    Timestamp(at.try_into().unwrap())
}

#[track_caller]
fn import(scene: &Scene, text: &str) {
    scene.write("run.jsonl", &sealed(text));
    let imported = scene.provost(&["import", scene.path("run.jsonl").to_str().unwrap()]);
    assert_eq!(imported.status, 0, "{imported:?}");
}

/// Two runs; one had two agents and worked past midnight, the other called a model of unknown price.
fn spent() -> Scene {
    let scene = Scene::new();
    Log::new("00000000000a", "Repair the parser\nand its tests", OPUS, "2026-11-01T20:00Z")
        .paid("2026-11-01T21:00Z", (0, OPUS), [1_200, 20_000, 3_000, 400, 100], Some(44_750))
        .paid("2026-11-01T23:30Z", (1, HAIKU), [500, 0, 0, 50, 0], Some(750))
        .paid("2026-11-02T10:00Z", (0, OPUS), [10, 24_000, 0, 2_000, 1_500], Some(62_050))
        .import(&scene);
    Log::new("00000000000b", "Write the manual", OWN, "2026-11-02T10:59Z")
        .paid("2026-11-02T11:00Z", (0, OWN), [9_000, 0, 0, 700, 0], None)
        .paid("2026-11-02T11:01Z", (0, OWN), [9_500, 0, 0, 100, 0], None)
        .paid("2026-11-02T11:02Z", (0, OPUS), [200_000, 0, 0, 0, 0], Some(1_000_000))
        .import(&scene);
    scene
}

#[track_caller]
fn check(scene: &Scene, zone: &str, args: &[&str], expected: Expect) {
    let output = scene.command(&[&["cost"], args].concat()).env("TZ", zone).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    expected.assert_eq(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn models_stand_with_the_dearest_first_and_a_total() {
    check(
        &spent(),
        "UTC",
        &[],
        expect![[r#"
            MODEL                       CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
            anthropic/claude-opus-4-5       3  201.2k   44.0k     3.0k    2.4k       1.6k      $1.10
            anthropic/claude-haiku-4-5      1     500       0        0      50          0    $0.0008
            ours/qwen                       2   18.5k       0        0     800          0          ?
            total                           6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
}

#[test]
fn one_run_is_shown_by_agent_and_model() {
    let scene = spent();
    check(
        &scene,
        "UTC",
        &["00000000000a"],
        expect![[r#"
        AGENT  MODEL                       CALLS  INPUT  CACHED  WRITTEN  OUTPUT  REASONING     COST
        0      anthropic/claude-opus-4-5       2   1.2k   44.0k     3.0k    2.4k       1.6k    $0.10
        1      anthropic/claude-haiku-4-5      1    500       0        0      50          0  $0.0008
        total                                  3   1.7k   44.0k     3.0k    2.4k       1.6k    $0.10
    "#]],
    );
    check(
        &scene,
        "UTC",
        &["last", "--global"],
        expect![[r#"
            AGENT  MODEL                      CALLS   INPUT  CACHED  WRITTEN  OUTPUT       COST
            0      anthropic/claude-opus-4-5      1  200.0k       0        0       0      $1.00
            0      ours/qwen                      2   18.5k       0        0     800          ?
            total                                 3  218.5k       0        0     800  $1.00 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
}

#[test]
fn runs_are_told_by_their_goals_and_agents_by_their_runs() {
    let scene = spent();
    check(
        &scene,
        "UTC",
        &["--by", "run"],
        expect![[r#"
        RUN           CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST  GOAL
        00000000000b      3  218.5k       0        0     800          0  $1.00 + ?  Write the manual
        00000000000a      3    1.7k   44.0k     3.0k    2.4k       1.6k      $0.10  Repair the parser …
        total             6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]],
    );
    check(
        &scene,
        "UTC",
        &["--by", "agent"],
        expect![[r#"
        AGENT           CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
        00000000000b.0      3  218.5k       0        0     800          0  $1.00 + ?
        00000000000a.0      2    1.2k   44.0k     3.0k    2.4k       1.6k      $0.10
        00000000000a.1      1     500       0        0      50          0    $0.0008
        total               6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]],
    );
    check(
        &scene,
        "UTC",
        &["--by", "run,agent,run"],
        expect![[r#"
        RUN           AGENT  CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST  GOAL
        00000000000b  0          3  218.5k       0        0     800          0  $1.00 + ?  Write the manual
        00000000000a  0          2    1.2k   44.0k     3.0k    2.4k       1.6k      $0.10  Repair the parser …
        00000000000a  1          1     500       0        0      50          0    $0.0008  Repair the parser …
        total                    6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]],
    );
}

#[test]
fn days_are_those_of_the_users_time_zone() {
    let scene = spent();
    check(
        &scene,
        "UTC",
        &["--by", "day"],
        expect![[r#"
            DAY         CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
            2026-11-01      2    1.7k   20.0k     3.0k     450        100    $0.0455
            2026-11-02      4  218.5k   24.0k        0    2.8k       1.5k  $1.06 + ?
            total           6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
    check(
        &scene,
        "EET-2",
        &["--by", "day"],
        expect![[r#"
            DAY         CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
            2026-11-01      1    1.2k   20.0k     3.0k     400        100    $0.0448
            2026-11-02      5  219.0k   24.0k        0    2.8k       1.5k  $1.06 + ?
            total           6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
    check(
        &scene,
        "no such zone",
        &["--by", "day,model"],
        expect![[r#"
            DAY         MODEL                       CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
            2026-11-01  anthropic/claude-opus-4-5       1    1.2k   20.0k     3.0k     400        100    $0.0448
            2026-11-01  anthropic/claude-haiku-4-5      1     500       0        0      50          0    $0.0008
            2026-11-02  anthropic/claude-opus-4-5       2  200.0k   24.0k        0    2.0k       1.5k      $1.06
            2026-11-02  ours/qwen                       2   18.5k       0        0     800          0          ?
            total                                       6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
    check(
        &scene,
        "",
        &["--by", "model", "--by", "day"],
        expect![[r#"
            MODEL                       DAY         CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
            anthropic/claude-opus-4-5   2026-11-01      1    1.2k   20.0k     3.0k     400        100    $0.0448
            anthropic/claude-opus-4-5   2026-11-02      2  200.0k   24.0k        0    2.0k       1.5k      $1.06
            anthropic/claude-haiku-4-5  2026-11-01      1     500       0        0      50          0    $0.0008
            ours/qwen                   2026-11-02      2   18.5k       0        0     800          0          ?
            total                                       6  220.2k   44.0k     3.0k    3.2k       1.6k  $1.10 + ?
            ? calls of unknown price (2): their tokens are counted, their cost isn't
        "#]],
    );
}

#[test]
fn named_time_zones_are_known_where_the_system_has_them() {
    if Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        let scene = spent();
        let day = |zone: &str| {
            let output = scene.command(&["cost", "--by", "day"]).env("TZ", zone).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(day("Asia/Tokyo"), day("JST-9"));
        assert_ne!(day("Asia/Tokyo"), day("UTC"));
    }
}

#[test]
fn since_leaves_out_what_came_before() {
    let scene = spent();
    check(
        &scene,
        "UTC",
        &["--since", "2026-11-02", "--by", "day"],
        expect![[r#"
        DAY         CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
        2026-11-02      4  218.5k   24.0k        0    2.8k       1.5k  $1.06 + ?
        total           4  218.5k   24.0k        0    2.8k       1.5k  $1.06 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]],
    );
    check(
        &scene,
        "EET-2",
        &["--since", "2026-11-02", "--by", "day"],
        expect![[r#"
        DAY         CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST
        2026-11-02      5  219.0k   24.0k        0    2.8k       1.5k  $1.06 + ?
        total           5  219.0k   24.0k        0    2.8k       1.5k  $1.06 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]],
    );
    check(
        &scene,
        "UTC",
        &["--since", "2026-11-02T11:01:00Z", "last", "--global"],
        expect![[r#"
        AGENT  MODEL                      CALLS   INPUT  CACHED  WRITTEN  OUTPUT       COST
        0      anthropic/claude-opus-4-5      1  200.0k       0        0       0      $1.00
        0      ours/qwen                      1    9.5k       0        0     100          ?
        total                                 2  209.5k       0        0     100  $1.00 + ?
        ? calls of unknown price (1): their tokens are counted, their cost isn't
    "#]],
    );
    check(
        &scene,
        "EET-2",
        &["--since", "2099-12-31"],
        expect![[r#"
        nothing was spent: no model was called since 2099-12-31 00:00 EET
    "#]],
    );
}

#[test]
fn since_counts_back_from_now() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let old = Log::new("00000000000a", "old", OPUS, "1970-01-02T00:00Z");
    old.paid("1970-01-02T00:00Z", (0, OPUS), [1; 5], Some(1)).import(&scene);
    scene.provost(&["run", "new"]);
    for (since, calls) in [("7d", 1), ("1000y", 2)] {
        let whole = json(&scene.provost(&["cost", "--json", "--since", since]).stdout);
        assert_eq!(whole["total"]["calls"], calls, "{since}");
    }
}

#[test]
fn json_has_the_exact_numbers() {
    let scene = spent();
    let args = ["--json", "--by", "day,run,agent,model", "--since", "2026-11-02T10:30Z"];
    check(
        &scene,
        "UTC",
        &args,
        expect![[r#"
            {"v":1,"by":["day","run","agent","model"],"run":null,"since_ms":1793615400000,"groups":[{"day":"2026-11-02","run":"00000000000b","goal":"Write the manual","agent":0,"session":"00000000000b.0","name":"","model":"anthropic/claude-opus-4-5","calls":1,"unknown_price_calls":0,"input_tokens":200000,"cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":0,"reasoning_tokens":0,"cost_micro_usd":1000000,"estimated_tokens":0,"estimated_cost_micro_usd":0,"unconfirmed_tokens":0,"unconfirmed_cost_micro_usd":0},{"day":"2026-11-02","run":"00000000000b","goal":"Write the manual","agent":0,"session":"00000000000b.0","name":"","model":"ours/qwen","calls":2,"unknown_price_calls":2,"input_tokens":18500,"cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":800,"reasoning_tokens":0,"cost_micro_usd":0,"estimated_tokens":0,"estimated_cost_micro_usd":0,"unconfirmed_tokens":0,"unconfirmed_cost_micro_usd":0}],"total":{"calls":3,"unknown_price_calls":2,"input_tokens":218500,"cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":800,"reasoning_tokens":0,"cost_micro_usd":1000000,"estimated_tokens":0,"estimated_cost_micro_usd":0,"unconfirmed_tokens":0,"unconfirmed_cost_micro_usd":0},"reserved_tokens":0,"reserved_cost_micro_usd":0}
        "#]],
    );
    let whole = json(&scene.provost(&["cost", "--json"]).stdout);
    assert_eq!(whole["total"]["cost_micro_usd"], 1_107_550);
    assert_eq!(
        (&whole["by"], &whole["run"], &whole["since_ms"]),
        (&json("[\"model\"]"), &json("null"), &json("null"))
    );
    let one = json(&scene.provost(&["cost", "--json", "last", "--global"]).stdout);
    assert_eq!(one["run"], "00000000000b");
    assert_eq!(json(&Scene::new().provost(&["cost", "--json"]).stdout)["total"]["calls"], 0);
}

#[test]
fn calls_without_a_model_count_for_the_root_agents() {
    let scene = Scene::new();
    let log = Log::new("00000000000a", "old", HAIKU, "2026-11-01T20:00Z");
    let log = log.paid("2026-11-01T21:00Z", (0, ""), [70, 0, 0, 5, 0], Some(95));
    let text = log.text();
    assert!(!text.contains("\"model\":\"\""));
    import(&scene, &text);
    check(
        &scene,
        "UTC",
        &[],
        expect![[r#"
            MODEL                       CALLS  INPUT  CACHED  WRITTEN  OUTPUT       COST
            anthropic/claude-haiku-4-5      1     70       0        0       5  $0.000095
            total                           1     70       0        0       5  $0.000095
        "#]],
    );
}

#[test]
fn long_logs_are_read_to_their_end() {
    let scene = Scene::new();
    let log = Log::new("00000000000a", "long", OPUS, "2026-11-01T20:00Z");
    let calls = |log: Log, _| log.paid("2026-11-01T21:00Z", (0, OPUS), [1; 5], Some(1));
    (0..2_500).fold(log, calls).import(&scene);
    let total = &json(&scene.provost(&["cost", "--json"]).stdout)["total"];
    assert_eq!((&total["calls"], &total["cost_micro_usd"]), (&2_500.into(), &2_500.into()));
}

#[test]
fn attempts_that_failed_count() {
    let scene = Scene::scripted(
        "
answers:
  - fault: { class: cut, message: gone, usage: { input: 700, output: 9 } }
  - text: done
    usage: { input: 1000, cache_read: 20, cache_write: 30, output: 40 }
",
    );
    assert_eq!(scene.provost(&["run", "go"]).status, 0);
    let total = &json(&scene.provost(&["cost", "--json"]).stdout)["total"];
    assert_eq!(
        *total,
        json(
            r#"{"calls":2,"unknown_price_calls":0,"estimated_tokens":0,"estimated_cost_micro_usd":0,"unconfirmed_tokens":0,"unconfirmed_cost_micro_usd":0,"input_tokens":1700,"cache_read_tokens":20,
                "cache_write_tokens":30,"output_tokens":49,"reasoning_tokens":0,"cost_micro_usd":0}"#
        )
    );
}

#[test]
fn runs_that_are_going_on_are_in_it() {
    let scene = Scene::scripted(
        "
answers:
  - tools: [{ shell: { command: 'echo up > up; sleep 600' } }]
    usage: { input: 10, output: 1 }
",
    );
    let running = scene.start(&["run", "go"]);
    line_in(&scene.path("work/up"));
    until("its call is paid", || {
        let total = &json(&scene.provost(&["cost", "--json"]).stdout)["total"];
        (total["calls"] == 1 && total["input_tokens"] == 10).then_some(())
    });
    running.signal("INT");
    assert_eq!(running.end().status, 130);
}

/// As after going back to an older Provost.
#[test]
fn a_log_that_cant_be_read_is_told_and_keeps_no_other_from_counting() {
    let scene = spent();
    let store = rusqlite::Connection::open(scene.path("state/provost.db")).unwrap();
    let newer = "UPDATE entries SET v = 99 WHERE seq = 3 AND actor = (SELECT id FROM actors WHERE key = ?1)";
    let changed = store.execute(newer, ["00000000000a"]).unwrap();
    assert_eq!(changed, 1);
    drop(store);
    let told = scene.provost(&["cost", "--by", "run"]);
    assert_eq!(told.status, 1);
    expect![[r#"
        RUN           CALLS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING       COST  GOAL
        00000000000b      3  218.5k       0        0     800          0  $1.00 + ?  Write the manual
        00000000000a      1    1.2k   20.0k     3.0k     400        100    $0.0448  Repair the parser …
        total             4  219.7k   20.0k     3.0k    1.2k        100  $1.04 + ?
        ? calls of unknown price (2): their tokens are counted, their cost isn't
    "#]]
    .assert_eq(&told.stdout);
    expect![[r#"
        error: not all that was spent is in it: the log of 00000000000a can't be read at entry 3: written in format 99; this Provost reads up to 1: use a newer one
    "#]].assert_eq(&told.stderr);
}

#[test]
fn nothing_spent_is_said_in_words() {
    let scene = Scene::new();
    check(
        &scene,
        "UTC",
        &[],
        expect![[r#"
        no runs yet; start one with `provost run "GOAL"`
    "#]],
    );
    Log::new("00000000000a", "just begun", OPUS, "2026-11-01T20:00Z").import(&scene);
    check(
        &scene,
        "UTC",
        &[],
        expect![[r#"
        nothing was spent: no model was called
    "#]],
    );
    check(
        &scene,
        "UTC",
        &["last", "--global"],
        expect![[r#"
        nothing was spent: no model was called
    "#]],
    );
}

#[test]
fn wrong_words_are_answered_with_the_right_ones() {
    let scene = spent();
    let said = |args: &[&str]| {
        let refused = scene.provost(&[&["cost"], args].concat());
        assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{args:?}");
        refused.stderr
    };
    expect![[r#"
        error: --since: `yesterday` is no time
        hint: write a time back such as 7d or 12h, `today`, or a day such as 2026-11-01, with a time of day if need be: 2026-11-01T12:00
    "#]].assert_eq(&said(&["--since", "yesterday"]));
    expect![[r#"
        error: invalid value 'modle' for '--by <GROUP>'
          [possible values: model, agent, purpose, run, segment, day]

          tip: a similar value exists: 'model'

        For more information, try '--help'.
    "#]]
    .assert_eq(&said(&["--by", "day,modle"]));
    expect![[r#"
        error: there is no run `zzzz`
        hint: `provost ps --all` lists them
    "#]]
    .assert_eq(&said(&["zzzz"]));
    expect![[r#"
        error: 2 runs begin with `0000`:
            00000000000b Write the manual
            00000000000a Repair the parser …
        hint: write more of the id
    "#]]
    .assert_eq(&said(&["0000"]));
}
