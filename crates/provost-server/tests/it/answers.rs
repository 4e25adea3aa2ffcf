//! Questions, their answers, and what becomes of the run.

use provost_event::{CallQuestion, Json, ToolSpec};
use provost_harness::{ResumeRun, Tool, ToolContext, ToolOutput, Work};

use crate::stage::Stage;

const ASKS: &str =
    "answers: [{ tools: [{ shell: { command: echo published } }] }, { text: 'Done. VERDICT: PASS' }]";

#[tokio::test]
async fn a_question_says_who_answered_it_and_how() {
    let mut stage = Stage::new().await;
    let agent = stage.agent(ASKS).builtin_tools().ask("shell");
    let path = stage.asks(1, "publish it", agent).await;
    let asked = stage.get(&path).await.json();
    assert_eq!((&asked["is_open"], &asked["answer"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(asked["question"]["tool"], "shell");
    assert_eq!(stage.post(&path, "{\"answer\":\"deny\",\"reason\":\"not today\"}").await.status, 200);
    let asked = stage.get(&path).await.json();
    assert_eq!((&asked["is_open"], &asked["answer"]["by"]), (&false.into(), &"ann".into()));
    let text = asked["answer"]["text"].as_str().unwrap();
    assert!(text.starts_with("denied (not today) by ann, ") && text.ends_with(" UTC"), "{text}");
    let late = stage.post(&path, "{\"answer\":\"allow\"}").await;
    assert!(late.detail().starts_with("it has its answer: denied (not today) by ann"), "{late:?}");
    for path in [path.replace("/0/", "/x/"), format!("{path}9")] {
        assert_eq!(stage.get(&path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn an_answer_takes_up_a_run_whose_process_is_gone() {
    let mut stage = Stage::new().await;
    let agent = stage.agent(ASKS).builtin_tools().ask("shell");
    let path = stage.asks(1, "publish it", agent).await;
    stage.abandon();
    assert_eq!(stage.post(&path, "{\"answer\":\"allow\"}").await.status, 200);
    let started = stage.around.started.lock().unwrap();
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0].1, Work::Resume(ResumeRun::default()));
}

#[tokio::test]
async fn an_answer_starts_nothing_where_a_process_works_on_the_run() {
    let mut stage = Stage::new().await;
    let agent = stage.agent(ASKS).builtin_tools().ask("shell");
    let path = stage.asks(1, "publish it", agent).await;
    assert_eq!(stage.post(&path, "{\"answer\":\"allow\"}").await.status, 200);
    assert!(stage.around.started.lock().unwrap().is_empty());
}

/// A tool that asks which branch, and answers with what it was given.
struct Asking(ToolSpec);

impl Asking {
    fn new() -> Self {
        let schema = Json::parse("{\"type\":\"object\"}".to_owned()).unwrap();
        Self(ToolSpec::new("mcp__s__delete", "Deletes a branch.", schema))
    }
}

#[async_trait::async_trait]
impl Tool for Asking {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, context: &ToolContext) -> ToolOutput {
        match &context.answer {
            Some(answer) => {
                let given = answer.content.as_ref().map(|content| content.text().to_owned());
                std::fs::write(context.workspace.join("given"), given.unwrap_or_default()).unwrap();
                ToolOutput::ok("deleted")
            }
            None => {
                let schema = serde_json::json!({ "type": "object", "required": ["branch", "how"], "properties": {
                    "branch": { "type": "string", "title": "Branch" },
                    "how": { "type": "string", "enum": ["merged", "all"], "default": "merged" },
                    "times": { "type": "integer", "minimum": 1 } } });
                let asks = Box::new(CallQuestion {
                    message: "The MCP server s asks: Which <branch>?".to_owned(),
                    schema: Json::of(&schema).unwrap(),
                    state: Json::empty_object(),
                });
                ToolOutput { asks: Some(asks), ..ToolOutput::ok("") }
            }
        }
    }
}

const DELETES: &str = "answers: [{ tools: [{ mcp__s__delete: {} }] }, { text: 'Done. VERDICT: PASS' }]";

#[tokio::test]
async fn what_a_tool_asks_is_answered_with_fields_that_fit() {
    let mut stage = Stage::new().await;
    let path = stage.asks(1, "delete it", stage.agent(DELETES).tool(Asking::new())).await;
    let agreed = stage.post(&path, "{\"answer\":\"allow\"}").await;
    assert_eq!(
        (agreed.status, agreed.detail().contains("the tool asks for branch")),
        (409, true),
        "{agreed:?}"
    );
    for (fields, why) in [
        ("{}", "branch (Branch): must be given"),
        ("{\"branch\":1}", "branch (Branch): must be a text"),
        ("{\"branch\":\"main\",\"how\":\"none\"}", "how: must be one of merged, all"),
        ("{\"branch\":\"main\",\"times\":0}", "times: must be a whole number of at least 1"),
        ("{\"branch\":\"main\",\"more\":0}", "more: there is no such field"),
    ] {
        let refused = stage.post(&path, &format!("{{\"answer\":\"fields\",\"fields\":{fields}}}")).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.detail().contains(why), "{refused:?}");
    }
    assert_eq!(stage.get(&path).await.json()["is_open"], true, "the question stays open");
    let given = stage.post(&path, "{\"answer\":\"fields\",\"fields\":{\"branch\":\"main\"}}").await;
    assert_eq!(given.status, 200, "{given:?}");
    stage.finished().await;
    let given = std::fs::read_to_string(stage.path("given")).unwrap();
    assert_eq!(given, r#"{"branch":"main","how":"merged"}"#);
}

#[tokio::test]
async fn the_page_has_the_fields_that_a_tool_asks_for() {
    let mut stage = Stage::new().await;
    stage.asks(1, "delete it", stage.agent(DELETES).tool(Asking::new())).await;
    let inbox = stage.get("/inbox").await.body;
    let form = inbox.split("data-answers").nth(1).unwrap_or_else(|| panic!("{inbox}"));
    let form = form.split("</form>").next().unwrap();
    for part in [
        "Branch (required)",
        "name=\"branch\" data-kind=\"text\"",
        "<option value=\"merged\" selected>merged</option>",
        "name=\"times\" data-kind=\"json\"",
        "data-answer=\"once\"",
        "data-answer=\"deny\"",
    ] {
        assert!(form.contains(part), "{part} isn't in {form}");
    }
    assert!(!form.contains("data-answer=\"run\"") && !form.contains("data-answer=\"always\""), "{form}");
    assert!(
        inbox.contains("Which &lt;branch&gt;?") && !inbox.contains("something else next time"),
        "{inbox}"
    );
}
