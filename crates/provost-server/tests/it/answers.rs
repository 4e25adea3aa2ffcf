//! Questions, their answers, and what becomes of the run.

use provost_harness::{ResumeRun, Work};

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
