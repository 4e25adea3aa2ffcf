//! `provost models check`: one real call, over every kind of connection to a server, and the error messages.

use expect_test::{Expect, expect};

use crate::model_server::{Authority, ModelServer, READY, refusal};
use crate::support::Scene;

const USER_FILE: &str = "home/.config/provost/config.toml";

/// A scene whose provider `mine` is at `base_url`.
fn scene(base_url: &str) -> Scene {
    let scene = Scene::new();
    let price = "[models.\"mine/big\"]\ninput_usd = 1\noutput_usd = 2\n";
    scene.write(USER_FILE, &format!("[providers.mine]\nbase_url = \"{base_url}\"\n{price}"));
    scene
}

/// What `models check mine/big` prints, and its exit status.
fn checked(scene: &Scene, env: &[(&str, &str)]) -> (i32, String) {
    let mut command = scene.command(&["models", "check", "mine/big"]);
    let output = command.envs(env.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[track_caller]
fn check_refusal(status: u16, body: &str, expected: Expect) {
    let server = ModelServer::plain(vec![refusal(status, body)]);
    let scene = scene(&format!("http://127.0.0.1:{}/v1", server.port));
    let (exit, text) = checked(&scene, &[("MINE_API_KEY", "sk-secret-key")]);
    assert_eq!(exit, 1, "{text}");
    assert!(!text.contains("sk-secret"), "{text}");
    expected.assert_eq(&text.replace(&server.port.to_string(), "PORT"));
}

#[test]
fn a_model_that_answers_is_told_with_what_it_took() {
    let server = ModelServer::plain(vec![READY.to_owned()]);
    let scene = scene(&format!("http://127.0.0.1:{}", server.port));
    let (exit, text) = checked(&scene, &[("MINE_API_KEY", " sk-secret-key\n")]);
    expect![[r#"
        mine/big works
          it says    ready
          model      big-1
          took       TIME
          tokens     1,000,000 in, 2 out ($1.00)
    "#]]
    .assert_eq(&scene.stable(&text));
    assert_eq!(exit, 0);
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{requests:?}");
    assert!(requests[0].contains("authorization: Bearer sk-secret-key\r\n"), "{requests:?}");
}

#[test]
fn a_key_of_one_character_is_not_cut_out_of_words() {
    let body = r#"{"error":{"message":"The account is exhausted: an extra box is needed"}}"#;
    let server = ModelServer::plain(vec![refusal(402, body)]);
    let scene = scene(&format!("http://127.0.0.1:{}/v1", server.port));
    let (_, text) = checked(&scene, &[("MINE_API_KEY", "x")]);
    assert!(text.contains("The account is exhausted: an extra box is needed"), "{text}");
}

#[test]
fn check_warns_of_a_key_that_is_too_short_to_be_one() {
    let scene = scene("http://127.0.0.1:9/v1");
    scene.write("work/provost.toml", "[agent]\nmodel = \"mine/big\"\n");
    for (key, warns) in [("x", true), ("sk-1234", true), ("sk-secret-key", false)] {
        let mut command = scene.command(&["check"]);
        let output = command.env("MINE_API_KEY", key).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let warning = format!(
            "warning: the key of the provider mine (MINE_API_KEY) has {} {}: too short for a key, and not taken out of \
             what is shown and kept\n",
            key.len(),
            if key.len() == 1 { "character" } else { "characters" },
        );
        assert_eq!(text.contains(&warning), warns, "{text}");
        assert_eq!(output.status.code(), Some(0), "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_in_words() {
    check_refusal(
        401,
        r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
        expect![[r#"
            mine/big doesn't work: the provider refused the key
              it says    Incorrect API key provided
              status     401
              request    req_7
              address    http://127.0.0.1:PORT/v1
              try        look whether MINE_API_KEY holds the key of mine
        "#]],
    );
    check_refusal(
        404,
        r#"{"error":{"message":"The model `big` does not exist","code":"model_not_found"}}"#,
        expect![[r#"
            mine/big doesn't work: model or address not found
              it says    The model `big` does not exist
              status     404
              request    req_7
              address    http://127.0.0.1:PORT/v1
              try        look at the model's name and at [providers.mine] base_url (the provider may not know either)
        "#]],
    );
    check_refusal(
        429,
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
        expect![[r#"
            mine/big doesn't work: the quota is used up
              it says    You exceeded your current quota
              status     429
              request    req_7
              address    http://127.0.0.1:PORT/v1
              try        add credit or wait until it is renewed, then resume; or resume with --model
        "#]],
    );
    check_refusal(
        500,
        "<html>Internal</html>",
        expect![[r#"
        mine/big doesn't work: the provider failed
          it says    HTTP 500: <html>Internal</html>
          status     500
          request    req_7
          address    http://127.0.0.1:PORT/v1
          try        try again later; a run tries by itself
    "#]],
    );
}

#[test]
fn an_address_that_redirects_is_no_unknown_model() {
    let answer = "HTTP/1.1 302 Found\r\nlocation: https://elsewhere.test/login?next=secret\r\ncontent-length: 0\r\n\
                  connection: close\r\n\r\n";
    let server = ModelServer::plain(vec![answer.to_owned()]);
    let scene = scene(&format!("http://127.0.0.1:{}/v1", server.port));
    let (status, said) = checked(&scene, &[("MINE_API_KEY", "k-12345678")]);
    assert_eq!(status, 1, "{said}");
    for words in ["the base URL redirects", "https://elsewhere.test;", "set [providers.mine] base_url"] {
        assert!(said.contains(words), "{said}");
    }
    let mut run = scene.command(&["run", "look", "--model", "mine/big"]);
    let run = crate::support::done(&run.env("MINE_API_KEY", "k-12345678").output().unwrap());
    assert_eq!(run.status, 4, "{run:?}");
    assert!(run.stderr.contains("the provider's base URL redirects (mine/big)"), "{run:?}");
    assert!(run.stderr.contains("set base_url to the address that answers, then resume"), "{run:?}");
    assert!(!format!("{said}{run:?}").contains("secret"), "{run:?}");
}

#[test]
fn no_server_and_no_key_are_told_apart() {
    let scene = scene("http://127.0.0.1:9/v1");
    let (exit, text) = checked(&scene, &[]);
    assert_eq!(exit, 1);
    assert!(text.contains("127.0.0.1:9 refuses connections; check that a server listens there"), "{text}");
    let keyless = scene.provost(&["models", "check", "anthropic/claude-opus-5-5"]);
    assert_eq!(keyless.status, 2);
    assert!(keyless.stderr.contains("needs a key: set ANTHROPIC_API_KEY"), "{keyless:?}");
    let unknown = scene.provost(&["models", "check", "unknown/x"]);
    assert_eq!(unknown.status, 2);
    let script = scene.provost(&["models", "check", "script:none.yaml"]);
    assert_eq!(script.status, 2);
}

#[test]
fn a_companys_own_authority_is_trusted_when_the_environment_names_it() {
    let authority = Authority::new();
    let server = ModelServer::tls(&authority, vec![READY.to_owned()]);
    let scene = scene(&format!("https://localhost:{}/v1", server.port));
    scene.write("ca.pem", &authority.pem());
    let (exit, text) = checked(&scene, &[]);
    assert_eq!(exit, 1);
    assert!(text.contains("no trusted TLS connection to localhost:"), "{text}");
    assert!(text.contains("SSL_CERT_FILE"), "{text}");
    let (exit, text) = checked(&scene, &[("SSL_CERT_FILE", scene.path("ca.pem").to_str().unwrap())]);
    assert_eq!(exit, 0, "{text}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_proxy_of_the_environment_is_used_and_sees_no_key() {
    let authority = Authority::new();
    let proxy = ModelServer::proxy(&authority, vec![READY.to_owned()]);
    let scene = scene("https://models.example.test/v1");
    scene.write("ca.pem", &authority.pem());
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let certificates = scene.path("ca.pem");
    let env = [
        ("HTTPS_PROXY", address.as_str()),
        ("SSL_CERT_FILE", certificates.to_str().unwrap()),
        ("MINE_API_KEY", "sk-secret-key"),
    ];
    let (exit, text) = checked(&scene, &env);
    assert_eq!(exit, 0, "{text}");
    let requests = proxy.requests();
    assert!(requests[0].starts_with("CONNECT models.example.test:443 HTTP/1.1\r\n"), "{requests:?}");
    assert!(!requests[0].contains("sk-secret"), "{requests:?}");
    assert!(requests[1].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{requests:?}");
}

#[test]
fn a_model_that_isnt_there_is_told_with_those_that_are() {
    let refused = refusal(404, r#"{"error":{"message":"model \"big\" not found, try pulling it first"}}"#);
    let listed = ["small:1b", "big:7b", "nomic-embed", "qwen", "bigger", "llama"]
        .map(|id| serde_json::json!({ "id": id }));
    let listing = serde_json::json!({ "object": "list", "data": listed }).to_string();
    let server = ModelServer::plain(vec![refused, refusal(200, &listing)]);
    let scene = scene(&format!("http://127.0.0.1:{}", server.port));
    let (exit, text) = checked(&scene, &[]);
    assert_eq!(exit, 1);
    expect![[r#"
        mine/big doesn't work: model or address not found
          it says    model "big" not found, try pulling it first
          status     404
          request    req_7
          it has     mine/big:7b, mine/bigger, mine/qwen, mine/llama, mine/small:1b and 1 more
          address    http://127.0.0.1:PORT
          try        look at the model's name and at [providers.mine] base_url (the provider may not know either)
    "#]].assert_eq(&text.replace(&server.port.to_string(), "PORT"));
    assert!(server.requests()[1].starts_with("GET /v1/models HTTP/1.1\r\n"));
}

#[test]
fn effort_and_a_servers_own_ways_are_told_as_the_settings_say() {
    let server = ModelServer::plain(vec![READY.to_owned()]);
    let scene = scene(&format!("http://127.0.0.1:{}", server.port));
    let settings = std::fs::read_to_string(scene.path(USER_FILE)).unwrap();
    let ways = "output_cap = \"max_completion_tokens\"\nleast_effort = \"none\"\nstream_options = false\n";
    scene.write(
        USER_FILE,
        &settings.replace("[models", &format!("{ways}[agent]\neffort = \"minimal\"\n[models")),
    );
    assert_eq!(checked(&scene, &[]).0, 0);
    let requests = server.requests();
    assert!(
        requests[0].contains(r#""max_completion_tokens":2048,"reasoning_effort":"none""#),
        "{requests:?}"
    );
    assert!(!requests[0].contains("stream_options"), "{requests:?}");
}

#[test]
fn how_long_a_model_may_take_to_begin_is_a_setting() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = scene(&format!("http://{}", silent.local_addr().unwrap()));
    let settings = std::fs::read_to_string(scene.path(USER_FILE)).unwrap();
    scene.write(USER_FILE, &settings.replace("[models", "first_token_secs = 1\n[models"));
    let (exit, text) = checked(&scene, &[]);
    assert_eq!(exit, 1);
    assert!(text.contains("nothing came for 1 s"), "{text}");
}

#[test]
fn a_judge_that_reasons_has_room_for_it_before_its_verdict() {
    let verdict = r#"{\"achieved\": true, \"confidence\": 0.9, \"reasoning\": \"It was done.\"}"#;
    let asked = |facts: &str| {
        let server = ModelServer::plain(vec![READY.replace("ready", verdict)]);
        let scene = scene(&format!("http://127.0.0.1:{}", server.port));
        let user = std::fs::read_to_string(scene.path(USER_FILE)).unwrap();
        scene.write(USER_FILE, &format!("{user}{facts}"));
        scene.write("work/agent.yaml", "answers: [{ text: Done. }]");
        let goal = "[goal]\ncondition = \"it is done\"\njudge = \"mine/big\"\n";
        scene.write("work/provost.toml", &format!("[agent]\nmodel = \"script:agent.yaml\"\n{goal}"));
        let mut command = scene.command(&["run", "do it"]);
        let output = command.env("MINE_API_KEY", "sk-secret-key").output().unwrap();
        let request = server.requests().into_iter().next().unwrap_or_else(|| panic!("{output:?}"));
        let (_, rest) = request.split_once("\"max_tokens\":").unwrap();
        rest.split(',').next().unwrap().trim_end_matches('}').to_owned()
    };
    let large = "window_tokens = 200_000\noutput_tokens_max = 64_000\n";
    assert_eq!(asked(large), "2048");
    assert_eq!(asked(&format!("{large}reasoning = \"effort\"\n")), (2_048 + 4_096).to_string());
    let small = "window_tokens = 20_000\noutput_tokens_max = 10_000\nreasoning = \"effort\"\n";
    assert_eq!(asked(small), "5000", "a quarter of the window");
}
