//! What requests are accepted, and what is said of those that aren't.

use crate::stage::Stage;

const DONE: &str = "answers: [{ text: 'Done. VERDICT: PASS' }]";

#[tokio::test]
async fn the_unix_socket_is_asked_by_any_name_and_loopback_by_its_own() {
    let stage = Stage::new().await;
    for host in ["localhost", "provost", ""] {
        let answered = stage.by_socket("GET", "/v1/runs", host, "").await;
        assert_eq!(answered.status, 200, "{host}: {answered:?}");
        assert_eq!(stage.exact("GET", "/v1/runs", host, "").await.status, 421, "{host}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_what_would() {
    let stage = Stage::new().await;
    let run = stage.ran(1, "x", stage.agent(DONE)).await;
    let said = format!("/v1/runs/{run}/say");
    let cases = [
        (
            "/v1/runs",
            "{\"goal\":\"x\",\"folder\":\"/\",\"limits\":{\"usd\":5}}",
            "limits.usd: integer `5` is given",
        ),
        (
            "/v1/runs",
            "{\"goal\":\"x\",\"folder\":\"/\",\"limits\":{\"usdd\":\"5\"}}",
            "limits.usdd: there is no such member, but `usd`",
        ),
        ("/v1/runs", "{\"folder\":\"/\"}", "goal: is missing"),
        (&said, "{\"text\":7}", "text: integer `7` is given, and a string is wanted"),
        (&said, "{\"text\":\"x\",\"agnt\":1}", "agnt: there is no such member, but `agent` or `text`"),
        (&said, "{", "the body isn't JSON: "),
        (&said, "[]", "the body must be an object"),
    ];
    for (path, body, expected) in cases {
        let answered = stage.post(path, body).await;
        assert_eq!(answered.status, 400, "{body}: {answered:?}");
        assert!(answered.detail().starts_with(expected), "{body}: {}", answered.detail());
    }
    for (path, expected) in [
        ("/v1/runs?limit=many", "limit: a whole number is wanted"),
        ("/v1/runs?status=odd", "status: `odd` isn't "),
        ("/v1/runs?stats=odd", "stats: there is no such member, but "),
    ] {
        let answered = stage.get(path).await;
        assert_eq!(answered.status, 400, "{path}: {answered:?}");
        assert!(answered.detail().starts_with(expected), "{path}: {}", answered.detail());
    }
}

#[tokio::test]
async fn one_agent_goes_on_only_where_a_process_works_on_the_run() {
    let stage = Stage::new().await;
    let run = stage.ran(1, "x", stage.agent(DONE)).await;
    let path = format!("/v1/runs/{run}/resume");
    let answered = stage.post(&path, "{\"agent\":1}").await;
    assert_eq!((answered.status, answered.detail().contains("without `agent`")), (409, true), "{answered:?}");
    let answered = stage.post(&path, "{\"agent\":1,\"text\":\"go\"}").await;
    assert_eq!(answered.status, 422, "{answered:?}");
    assert!(stage.around.started.lock().unwrap().is_empty());
}
