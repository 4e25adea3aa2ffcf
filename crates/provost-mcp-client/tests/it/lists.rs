//! Many tools: what they cost, and how they are found.

use provost_mcp_client::{Pins, TOOL_SEARCH, ToolDefinition};
use serde_json::{Value, json};

use crate::stage::Stage;

fn many(count: usize) -> Vec<ToolDefinition> {
    let kinds = ["create", "list", "read", "update", "delete"];
    let things = ["issue", "pull_request", "branch", "release", "review_comment"];
    let tool = |index: usize| ToolDefinition {
        name: format!("{}_{}_{}", kinds[index % 5], things[index / 5 % 5], index / 25),
        title: None,
        description: format!("{} something in a project of the tracker, number {index}", kinds[index % 5]),
        input_schema: json!({ "type": "object", "properties": { "id": { "type": "string", "description": "Which one." } } }),
        output_schema: None,
        annotations: Value::Null,
    };
    (0..count).map(tool).collect()
}

fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base().unwrap().encode_ordinary(text).len()
}

#[tokio::test]
async fn two_hundred_and_fifty_tools_cost_less_than_two_thousand_tokens() {
    let stage = Stage::new(&json!({}));
    let pins = Pins::new("evil", &stage.setup.written, many(250));
    let agent = stage.agreed_to(&pins);
    assert_eq!(agent.catalog.specs().len(), 250);
    let shown = agent.catalog.offered(6_000);
    assert_eq!(shown.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), [TOOL_SEARCH]);
    let search = &shown[0];
    let cost = tokens(&search.description) + tokens(search.input_schema.text());
    assert!(cost <= 2_000, "{cost} tokens by o200k");
    let few = agent.catalog.offered(1_000_000);
    assert_eq!(few.len(), 250, "below the threshold all are shown");
}

#[tokio::test]
async fn a_search_gives_the_agent_the_tools_that_fit() {
    let stage = Stage::new(&json!({}));
    let pins = Pins::new("evil", &stage.setup.written, many(100));
    let agent = stage.agreed_to(&pins);
    let output = agent.call(TOOL_SEARCH, json!({ "query": "create a pull request" })).await;
    let names = output.tools.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names.len(), 5);
    assert!(names[..4].iter().all(|name| name.starts_with("mcp__evil__create_pull_request_")), "{names:?}");
    assert!(output.text.starts_with("You have these tools from your next turn on:"), "{}", output.text);
    let named =
        agent.call(TOOL_SEARCH, json!({ "names": ["mcp__evil__read_branch_0", "list_issue_1"] })).await;
    let names = named.tools.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names, ["mcp__evil__list_issue_1", "mcp__evil__read_branch_0"]);
    let none = agent.call(TOOL_SEARCH, json!({ "query": "zzz" })).await;
    assert!(none.tools.is_empty() && none.text.starts_with("No tool fits"), "{}", none.text);
    assert!(agent.call(TOOL_SEARCH, json!({})).await.status.is_error());
}

#[tokio::test]
async fn a_server_that_is_always_loaded_is_shown_in_full_beside_the_search() {
    let mut stage = Stage::new(&json!({}));
    stage.setup.always_load = true;
    let pins = Pins::new("evil", &stage.setup.written, many(100));
    let agent = stage.agreed_to(&pins);
    assert_eq!(agent.catalog.offered(10).len(), 100, "nothing is left to search for");
}

#[tokio::test]
async fn only_the_tools_that_the_settings_offer_are_there() {
    let mut stage = Stage::new(&json!({}));
    stage.setup.tools = vec!["read_issue_0".to_owned()];
    let pins = Pins::new("evil", &stage.setup.written, many(100));
    let agent = stage.agreed_to(&pins);
    assert_eq!(agent.catalog.specs().len(), 1);
}
