//! What can't work is refused when an agent is built.

use provost::prelude::*;
use provost::{AgentBuilder, Error, SessionStore};

use crate::script;

/// Adds something to a stock.
#[derive(Deserialize, JsonSchema)]
struct Put {
    /// How many.
    _number: u32,
}

fn builder() -> AgentBuilder {
    Agent::builder(script("answers: [{ text: ok }]"))
}

#[expect(clippy::expect_used, reason = "an agent that is built is the failure")]
fn refusal(builder: AgentBuilder) -> String {
    builder.build().err().expect("it is refused").to_string()
}

#[test]
fn what_can_never_work_is_refused_with_its_name() {
    let put = || tool(|_: Put| async { "put" });
    for (builder, words) in [
        (Agent::builder("nowhere/model"), "there is no provider for the model `nowhere/model`"),
        (builder().tool(put()).tool(put()), "two tools are called `put`"),
        (builder().tool(put()).sub_agent(SubAgent::new("put", "Puts.")), "two tools are called `put`"),
        (
            builder().deny("shel(rm *)"),
            "the permission `shel(rm *)` is about no tool of the agent; it has none",
        ),
        (builder().builtin_tools().deny("shell(rm *"), "shell(rm *"),
        (
            builder().builtin_tools().deny("shell(curl * | sh)"),
            "the permission `shell(curl * | sh)` is compared to each command of a line by itself",
        ),
        (builder().check("true").check("true"), "two stop hooks are called `true`"),
        (builder().sub_agent(SubAgent::new("x", "X.").tools(["shell"])), "`x` is to have the tool `shell`"),
        (builder().workspace("/nowhere/at/all"), "can't work in /nowhere/at/all"),
        (
            builder().judge(ModelChoice::own("scripted", script("answers: [{ text: other }]"))),
            "two models are called `scripted`",
        ),
    ] {
        let said = refusal(builder);
        assert!(said.contains(words), "{said}\nlacks\n{words}");
    }
}

#[tokio::test]
async fn a_budget_in_money_refuses_a_model_without_a_price_before_anything_runs() {
    let model = ModelChoice::own("own", script("answers: [{ text: ok }]"));
    let agent =
        Agent::builder(model.clone()).budget(Budget::default().dollars(1.0)).build().expect("an agent");
    let refused = agent.run("Say ok.").await.expect_err("it is refused");
    assert!(matches!(refused, Error::Harness(_)), "{refused}");
    assert!(refused.to_string().contains("the price of model `own` isn't known"), "{refused}");
    let allowed = Agent::builder(model).budget(Budget::default().dollars(1.0)).allow_unpriced().build();
    assert!(allowed.expect("an agent").run("Say ok.").await.expect("it runs").is_completed());
}

#[test]
fn a_tool_is_described_by_the_type_of_its_arguments() {
    let put = tool(|_: Put| async { "put" });
    assert_eq!(
        (put.spec().name.as_str(), put.spec().description.as_str()),
        ("put", "Adds something to a stock.")
    );
    let schema = put.spec().input_schema.text();
    assert!(
        schema.contains(r#""description":"How many.""#) && schema.contains(r#""required":["_number"]"#),
        "{schema}"
    );
}

#[test]
fn budgets_are_read_as_they_are_written() {
    let budget =
        Budget::default().tokens(5).dollars(0.05).turns(2).time(std::time::Duration::from_millis(1_500));
    assert_eq!((budget.tokens, budget.turns, budget.wall_time_ms), (Some(5), Some(2), Some(1_500)));
    let money = |dollars| Budget::default().dollars(dollars).money.map(|money| money.0);
    let expected = [Some(50_000), Some(290_000), Some(0), Some(0), Some(u64::MAX)];
    assert_eq!([0.05, 0.29, -1.0, f64::NAN, f64::INFINITY].map(money), expected);
}

#[test]
fn models_with_a_price_have_a_limit_unless_there_is_another() {
    let price = provost::Price { input: provost::MicroDollars(1), ..provost::Price::FREE };
    let priced =
        || Agent::builder(ModelChoice::own("priced", script("answers: [{ text: ok }]")).price(price));
    let money =
        |builder: AgentBuilder| builder.build().expect("an agent").policy().budget.money.map(|money| money.0);
    assert_eq!(money(priced()), Some(20_000_000));
    assert_eq!(money(priced().budget(Budget::default())), None);
    assert_eq!(money(builder()), None, "it costs nothing");
}

/// A store of one's own is anything that implements the port.
#[tokio::test]
async fn a_store_can_be_handed_in() {
    fn store() -> impl SessionStore {
        provost::MemoryStore::new()
    }
    let agent = builder().store(store()).build().expect("an agent");
    assert!(agent.run("Say ok.").await.expect("it runs").is_completed());
}
