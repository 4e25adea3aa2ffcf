//! A goal's judge whose key the provider refuses.

use crate::model_server::{ModelServer, refusal};
use crate::support::{Done, Scene, done};

const YES: &str = r#"{\"achieved\":true,\"reasoning\":\"it is there\",\"confidence\":1}"#;

fn verdict() -> String {
    let body = format!(
        "data: {{\"model\":\"big\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{YES}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

fn with_key(scene: &Scene, args: &[&str]) -> Done {
    done(&scene.command(args).env("MINE_API_KEY", "sk-secret-key").output().unwrap())
}

#[test]
fn a_refused_key_of_a_judge_suspends_the_run_at_once_and_is_named() {
    let refused = refusal(401, r#"{"error":{"message":"the key has expired"}}"#);
    let server = ModelServer::plain(vec![refused, verdict()]);
    let scene = Scene::scripted("answers: [{ text: It is done. }]");
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let provider = format!("[providers.mine]\nbase_url = \"{url}\"\nfree = true\n");
    scene.write("home/.config/provost/config.toml", &provider);
    let scene = scene.with_settings("[goal]\ncondition = \"it is there\"\njudge = \"mine/big\"\n");
    let run = with_key(&scene, &["run", "make it"]);
    assert_eq!(run.status, 4, "{run:?}");
    let cause = "the key has expired";
    for words in [cause, "the key comes from MINE_API_KEY", "set a valid key, then resume"] {
        assert!(run.stderr.contains(words), "`{words}` isn't in {}", run.stderr);
        let shown = scene.provost(&["show", "last"]).stdout;
        assert!(shown.contains(words), "`{words}` isn't in {shown}");
    }
    assert_eq!(server.requests().len(), 1, "a refused key isn't tried again");
    // Only the verification is made again.
    let resumed = with_key(&scene, &["resume", "last"]);
    assert!(resumed.status == 0 && resumed.stderr.contains("completed, verified"), "{resumed:?}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(resumed.stdout, "It is done.\n");
}
