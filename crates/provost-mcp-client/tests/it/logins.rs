//! Logins at addresses: made in a browser or without one, kept, renewed, refused, ended.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use provost_event::ToolStatus;
use provost_harness::NoSandbox;
use provost_mcp_client::{Login, LoginRequest, PendingLogin, Reach, inspect};
use serde_json::{Map, Value, json};

use crate::locked::{Locked, browse, sent_to};
use crate::stage::Stage;

async fn begun(stage: &Stage) -> PendingLogin {
    PendingLogin::begin(&stage.setup, &LoginRequest::default()).await.unwrap()
}

/// What a HEAD request at an address is answered.
fn looked_at(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = std::net::TcpStream::connect(host).unwrap();
    write!(connection, "HEAD /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

async fn refused(stage: &Stage) -> String {
    match PendingLogin::begin(&stage.setup, &LoginRequest::default()).await {
        Ok(pending) => panic!("a login has begun at {}", pending.address()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_login_in_a_browser_is_kept_for_the_user_alone_and_authorizes_calls() {
    for config in [json!({}), json!({ "secret": "s3cr3t" })] {
        let locked = Locked::new(&config);
        let without = locked.stage().inspected().await.unwrap_err();
        assert!(without.contains("the user must log in there: `provost mcp login evil`"), "{without}");
        let stage = locked.logged_in().await;
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&locked.login_file()), 0o600);
        assert_eq!(mode(locked.login_file().parent().unwrap()), 0o700);
        let asked = locked.record("authorize").remove(0);
        assert_eq!(asked["code_challenge_method"], "S256");
        assert_eq!(asked["resource"], format!("{}/mcp", locked.origin()));
        assert_eq!(asked["scope"], "tools");
        let agent = stage.agreed().await;
        assert_eq!(agent.call("a", json!({})).await.text, "done");
        assert!(locked.record("mcp").iter().any(|line| line["with_token"] == true));
    }
}

#[tokio::test]
async fn a_token_that_expires_is_renewed_once_for_all_who_need_it() {
    let locked = Locked::new(&json!({ "expires_in": 2 }));
    let first = locked.logged_in().await.agreed().await;
    let second = locked.stage().agreed_as(&first).await;
    first.call("a", json!({})).await;
    second.call("a", json!({})).await;
    let before = locked.kept();
    let renewals = locked.record("token").len();
    locked.configure(&json!({ "expires_in": 3600 }));
    crate::stage::until("the token expires", || {
        Login::read(&first.stage.setup).unwrap().unwrap().expires_at.unwrap().0 < crate::stage::now_ms()
    })
    .await;
    let (one, other) = tokio::join!(first.call("a", json!({})), second.call("a", json!({})));
    assert_eq!((one.text.as_str(), other.text.as_str()), ("done", "done"));
    assert_ne!(locked.kept()["access_token"], before["access_token"]);
    let renewed = locked.record("token").split_off(renewals);
    assert!(renewed.iter().all(|line| line["grant"] == "refresh_token"), "{renewed:?}");
    assert!(renewed.iter().all(|line| line["resource"] == format!("{}/mcp", locked.origin())));
}

#[tokio::test]
async fn a_login_that_is_over_is_said_and_nothing_is_unknown() {
    let locked = Locked::new(&json!({}));
    let agent = locked.logged_in().await.agreed().await;
    agent.call("a", json!({})).await;
    locked.configure(&json!({ "expires": true, "forgets": true }));
    let output = agent.call("a", json!({})).await;
    assert_eq!(output.status, ToolStatus::Error, "{output:?}");
    assert!(output.text.contains("`provost mcp login evil`"), "{}", output.text);
    let asked = locked.record("token").len();
    agent.call("a", json!({})).await;
    assert!(locked.record("token").len() <= asked + 1, "it isn't asked again and again");
}

#[tokio::test]
async fn a_call_that_needs_more_scope_names_it() {
    let locked = Locked::new(&json!({ "needs": "tools:write" }));
    let agent = locked.logged_in().await.agreed().await;
    let output = agent.call("a", json!({})).await;
    assert_eq!(output.status, ToolStatus::Error);
    assert!(output.text.contains("`provost mcp login evil --scope tools:write`"), "{}", output.text);
    let request = LoginRequest { scopes: vec!["tools:write".to_owned()], ..LoginRequest::default() };
    let pending = PendingLogin::begin(&agent.stage.setup, &request).await.unwrap();
    let address = sent_to(pending.address());
    pending.by_address(&address).await.unwrap();
    assert_eq!(agent.call("a", json!({})).await.text, "done");
}

#[tokio::test]
async fn a_server_that_lets_anyone_in_is_asked_for_its_tools_before_scopes_are_chosen() {
    let locked = Locked::new(&json!({ "lets_in": true, "challenge_scope": "tools:read" }));
    let stage = locked.logged_in().await;
    assert_eq!(locked.record("authorize").remove(0)["scope"], "tools:read");
    assert_eq!(stage.agreed().await.call("a", json!({})).await.text, "done");
}

#[tokio::test]
async fn without_a_browser_the_address_is_pasted() {
    let locked = Locked::new(&json!({}));
    let stage = locked.stage();
    let pending = begun(&stage).await;
    let address = sent_to(pending.address());
    assert!(address.starts_with("http://127.0.0.1:") && address.contains("/callback?"), "{address}");
    pending.by_address(&format!(" {address}\n")).await.unwrap();
    assert!(Login::read(&stage.setup).unwrap().unwrap().renews);
    let other = begun(&stage).await;
    let error = other.by_address(&address).await.unwrap_err().to_string();
    assert!(error.contains("isn't the address to which the browser was sent by this login"), "{error}");
}

#[tokio::test]
async fn what_isnt_the_answer_to_this_login_ends_nothing() {
    let locked = Locked::new(&json!({}));
    let stage = locked.stage();
    let pending = begun(&stage).await;
    let address = pending.address().to_owned();
    let browser = tokio::task::spawn_blocking(move || {
        let right = sent_to(&address);
        let origin = right.split_once("/callback").unwrap().0;
        let forged = browse(&format!("{origin}/callback?code=mine&state=guessed"));
        assert!(forged.contains("isn't the answer"), "{forged}");
        browse(&format!("{origin}/elsewhere"));
        assert!(looked_at(&right).starts_with("HTTP/1.1 405"), "what looks where a link leads is no answer");
        // Another site that has its name lead to this machine.
        let named = right.replace("127.0.0.1", "localhost");
        assert!(browse(&named).contains("isn't the answer"));
        browse(&right)
    });
    pending.by_browser(Duration::from_secs(20)).await.unwrap();
    assert!(browser.await.unwrap().contains("You are logged in"));
}

#[tokio::test]
async fn a_refusal_and_a_forged_issuer_end_the_login_without_a_token() {
    let forged = "https://evil.example";
    for (config, expected) in [
        (json!({ "refuses": true }), "the authorization server answered access_denied (<b>not you</b>)"),
        (json!({ "iss": forged }), "issuer mismatch"),
    ] {
        let locked = Locked::new(&config);
        let stage = locked.stage();
        let pending = begun(&stage).await;
        let address = pending.address().to_owned();
        let browser = tokio::task::spawn_blocking(move || browse(&address));
        let error = pending.by_browser(Duration::from_secs(20)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let shown = browser.await.unwrap();
        assert!(!shown.contains("<b>") && !shown.contains("You are logged in"), "{shown}");
        assert_eq!(Login::read(&stage.setup).unwrap(), None);
    }
}

#[tokio::test]
async fn an_authorization_server_that_cant_be_trusted_is_never_opened() {
    for (config, expected) in [
        (json!({ "authorize": "javascript:alert(1)" }), "isn't https"),
        (json!({ "authorize": "file:///etc/passwd" }), "isn't https"),
        (json!({ "token": "ftp://h/" }), "isn't https"),
        (json!({ "issuer": "https://other.example" }), "issuer mismatch"),
        (json!({ "resource": "https://bank.example/mcp" }), "unusable"),
        (json!({ "no_registration": true }), "oauth_client_id"),
    ] {
        let error = refused(&Locked::new(&config).stage()).await;
        assert!(error.contains(expected), "{config}: {error}");
    }
}

#[tokio::test]
async fn a_login_counts_only_at_the_address_where_it_was_made() {
    let locked = Locked::new(&json!({}));
    let mut stage = locked.logged_in().await;
    // The same server under another address: the settings were changed.
    if let Reach::Http { url, .. } = &mut stage.setup.reach {
        *url = url.replace("127.0.0.1", "localhost");
    }
    assert_eq!(Login::read(&stage.setup).unwrap(), None);
    let error = stage.inspected().await.unwrap_err();
    assert!(error.contains("must log in"), "{error}");
    let given = locked.record("mcp").iter().filter(|line| line["given"] == true).count();
    assert_eq!(given, 0, "no token was sent there");
}

#[tokio::test]
async fn a_login_isnt_taken_to_another_authorization_server() {
    let locked = Locked::new(&json!({}));
    let stage = locked.logged_in().await;
    locked.configure(&json!({ "at": "/other", "expires": true }));
    let asked = locked.record("token").len();
    let error = stage.inspected().await.unwrap_err();
    assert!(error.contains("must log in"), "{error}");
    assert_eq!(locked.record("token").len(), asked, "no token was sent there");
}

#[tokio::test]
async fn a_token_in_what_the_server_says_goes_no_further() {
    let locked = Locked::new(&json!({ "echoes": true }));
    let agent = locked.logged_in().await.agreed().await;
    let output = agent.call("a", json!({})).await;
    let token = locked.kept()["access_token"].as_str().unwrap().to_owned();
    assert!(output.text.contains(&token));
    assert!(!agent.secrets.redact(&output.text).contains(&token), "what is kept of it has no token");
    locked.configure(&json!({ "describes": true }));
    let seen = agent.stage.inspected().await.unwrap();
    assert!(seen.pins.tools.is_empty() && seen.refused[0].why.contains("the user's login"), "{seen:?}");
    assert!(!format!("{:?}", agent.stage.setup).contains(&token));
}

#[tokio::test]
async fn what_a_trial_of_a_tool_shows_has_no_token() {
    let locked = Locked::new(&json!({ "echoes": true }));
    let stage = locked.logged_in().await;
    let seen =
        inspect(&stage.setup, &(Arc::new(NoSandbox) as _), None, Some(("a", Map::new()))).await.unwrap();
    assert_eq!(seen.called.unwrap().unwrap(), "you sent Bearer [secret]");
}

#[tokio::test]
async fn a_token_that_cant_be_sent_makes_no_login() {
    for (config, why) in [
        (json!({ "access": "" }), "is empty"),
        (json!({ "access": "a\r\nX-Evil: 1" }), "characters that none may have"),
        (json!({ "token_type": "mac" }), "isn't one to send as it is"),
    ] {
        let locked = Locked::new(&config);
        let stage = locked.stage();
        let pending = begun(&stage).await;
        let address = sent_to(pending.address());
        let error = pending.by_address(&address).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!locked.login_file().exists());
    }
}

#[tokio::test]
async fn a_scope_that_is_none_is_named_before_anything_is_asked() {
    let locked = Locked::new(&json!({}));
    for scope in ["", " ", "a b", "a\"b", "\u{1b}[31m", "é"] {
        let request = LoginRequest { scopes: vec![scope.to_owned()], ..LoginRequest::default() };
        let error = PendingLogin::begin(&locked.stage().setup, &request).await.err().unwrap().to_string();
        assert!(error.contains("is no scope") && !error.contains('\u{1b}'), "{error}");
    }
    assert!(locked.record("metadata").is_empty());
}

#[tokio::test]
async fn a_login_that_others_may_read_is_taken_from_them_and_a_pipe_is_none() {
    let locked = Locked::new(&json!({}));
    let stage = locked.logged_in().await;
    let file = locked.login_file();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Login::read(&stage.setup).unwrap().is_some());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(Login::read(&stage.setup).unwrap_err().to_string().contains("it isn't a file"));
}

#[tokio::test]
async fn the_end_of_a_login_is_told_to_the_authorization_server() {
    let locked = Locked::new(&json!({}));
    let stage = locked.logged_in().await;
    assert_eq!(Login::end(&stage.setup).await.unwrap(), Some(true));
    assert_eq!(locked.record("revoke").remove(0)["known"], Value::Bool(true));
    assert_eq!(Login::end(&stage.setup).await.unwrap(), None);
    assert!(!locked.login_file().exists());
}

#[tokio::test]
async fn a_file_that_isnt_a_login_is_named_without_what_it_holds() {
    let locked = Locked::new(&json!({}));
    let stage = locked.logged_in().await;
    std::fs::write(locked.login_file(), "{\"access_token\": \"canary\"").unwrap();
    let error = stage.inspected().await.unwrap_err();
    assert!(error.contains("isn't a login") && !error.contains("canary"), "{error}");
    assert_eq!(Login::end(&stage.setup).await.unwrap(), Some(false));
}

#[tokio::test]
async fn a_login_is_renewed_where_it_was_made_when_the_address_names_no_authorization_server_anymore() {
    let locked = Locked::new(&json!({ "expires_in": 1 }));
    let stage = locked.logged_in().await;
    let before = locked.kept();
    locked.configure(&json!({ "hides": true }));
    crate::stage::until("the token expires", || {
        Login::read(&stage.setup).unwrap().unwrap().expires_at.unwrap().0 < crate::stage::now_ms()
    })
    .await;
    assert_eq!(stage.agreed().await.call("a", json!({})).await.text, "done");
    assert_ne!(locked.kept()["refresh_token"], before["refresh_token"]);
    let asked = locked.record("token");
    assert!(asked.iter().all(|line| line["path"] == "/tokens/token"), "{asked:?}");
}

#[tokio::test]
async fn an_authorization_server_that_answers_nonsense_gives_no_login_and_its_answer_isnt_shown() {
    let error = refused(&Locked::new(&json!({ "nonsense": "metadata" })).stage()).await;
    assert!(error.contains("none published usable metadata") && !error.contains("html"), "{error}");
    let locked = Locked::new(&json!({ "nonsense": "token" }));
    let stage = locked.stage();
    let pending = begun(&stage).await;
    let address = sent_to(pending.address());
    let error = pending.by_address(&address).await.unwrap_err().to_string();
    assert!(error.contains("token exchange failed") && !error.contains("canary"), "{error}");
    assert!(!locked.login_file().exists());
}
