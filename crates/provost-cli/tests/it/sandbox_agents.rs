//! External agents in the sandbox: what they reach of the host, whose money binds them, and what they keep.

use std::fs;
use std::process::Output;

use crate::model_server::{ModelServer, READY};
use crate::sandbox_stage::{Stage, User};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A key that no program may see.
const KEY: &str = "sk-real-0123456789abcdef";

/// A client that calls its model at most ten times, then looks for another way out of the box.
const CLIENT: &str = r#"
import json, os, socket, urllib.error, urllib.request
body = json.dumps({"model": "big", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
out = open("seen", "w")
for _ in range(10):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {
        "content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    try:
        answer = urllib.request.urlopen(request, timeout=20).read().decode()
        print("answered", "ready" in answer, file=out, flush=True)
    except urllib.error.HTTPError as error:
        print("refused", error.code, file=out, flush=True)
        break
for name in ["PORT", "SERVER"]:
    try:
        socket.create_connection(("127.0.0.1", int(os.environ[name])), 2)
        print("reached", name, file=out, flush=True)
    except OSError:
        pass
print("key" if os.environ.get("KEY_OF_MINE") else "no key", file=out, flush=True)
"#;

/// A stage with a provider of its own, whose calls cost a dollar each, and a sandbox with these settings.
fn metered(name: &str, server: &ModelServer, sandbox: &str) -> Stage {
    metered_by(User::Mine, name, server, sandbox)
}

fn metered_by(user: User, name: &str, server: &ModelServer, sandbox: &str) -> Stage {
    let stage = Stage::new(user, &format!("{name}-{}", std::process::id()));
    let settings = format!(
        "[providers.local]\nbase_url = \"http://127.0.0.1:{}/v1\"\nwire = \"openai-chat\"\napi_key_env = \"KEY_OF_MINE\"\n\
         [models.\"local/big\"]\ninput_usd = 1\noutput_usd = 1\noutput_tokens_max = 1000\n[gateway]\nopenai = \"local\"\n\
         [exec]\nenv = [\"PORT\", \"SERVER\"]\n[sandbox]\nmode = \"workspace\"\n{sandbox}",
        server.port
    );
    fs::create_dir_all(stage.path("home/.config/provost")).unwrap();
    fs::write(stage.path("home/.config/provost/config.toml"), settings).unwrap();
    fs::remove_file(stage.path("work/provost.toml")).unwrap();
    fs::write(stage.path("work/client.py"), CLIENT).unwrap();
    stage.give();
    stage
}

fn run(stage: &Stage, server: &ModelServer, args: &[&str]) -> Output {
    let mut command = stage.command(env!("CARGO_BIN_EXE_provost"), args);
    command.env("KEY_OF_MINE", KEY).env("SERVER", server.port.to_string()).output().unwrap()
}

#[test]
fn a_boxed_program_calls_models_by_the_gateway_alone_and_is_ended_at_the_sum_of_money() {
    let proxied = "network = \"proxy\"\nallow_hosts = [\"example.com\"]\n";
    let users = User::all();
    for (user, network) in users.iter().map(|user| (*user, "")).chain([(User::Mine, proxied)]) {
        let server = ModelServer::plain(vec![READY.to_owned()]);
        let stage = metered_by(user, "metered", &server, network);
        let done = run(&stage, &server, &["gateway", "--usd", "2.5", "--", "python3", "client.py"]);
        let seen = fs::read_to_string(stage.path("work/seen")).unwrap_or_default();
        assert_eq!(done.status.code(), Some(3), "{seen}{}", text(&done));
        assert_eq!(seen, "answered True\nanswered True\nrefused 400\nno key\n", "{}", text(&done));
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{requests:?}");
        assert!(requests.iter().all(|request| request.contains(KEY)), "Provost alone has the key");
        let log = text(&stage.provost(&["export", "last"]));
        assert!(log.contains("external_model_answered") && !log.contains(KEY), "{log}");
    }
}

#[test]
fn a_boxed_program_has_its_own_sandbox_off_and_keeps_its_state_in_a_private_folder() {
    let server = ModelServer::plain(vec![READY.to_owned()]);
    let stage = metered("kept", &server, "");
    fs::create_dir_all(stage.path("home/.codex")).unwrap();
    let script = "echo \"$@\" > args; echo \"$CODEX_HOME\" > home; echo kept > \"$CODEX_HOME/session\" && echo x > ~/.codex/session; \
                  cat \"$CODEX_HOME/session\" > read";
    let args =
        ["exec", "--unattended", "--profile", "codex", "--channel", "terminal", "--", "sh", "-c", script];
    let done = run(&stage, &server, &args);
    let read = |name: &str| fs::read_to_string(stage.path(&format!("work/{name}"))).unwrap_or_default();
    assert!(read("args").contains("sandbox_mode=\"danger-full-access\""), "{} {}", read("args"), text(&done));
    assert_eq!(read("read"), "kept\n", "{}", text(&done));
    assert!(!stage.path("home/.codex/session").exists(), "the user's own stays as it is");
    let home = read("home");
    assert!(home.starts_with(&stage.path("state").display().to_string()), "{home}");
    let pruned = stage.provost(&["prune", "--keep", "0", "--yes"]);
    assert!(!std::path::Path::new(home.trim()).exists(), "{}", text(&pruned));
}

#[test]
fn a_program_is_not_started_where_nothing_runs_in_the_box() {
    let server = ModelServer::plain(vec![READY.to_owned()]);
    let stage = metered("canary", &server, "[sandbox.limits]\nmemory = \"4MiB\"\n");
    let done = run(&stage, &server, &["exec", "--unattended", "--", "sh", "-c", "echo x > ran"]);
    assert!(!stage.path("work/ran").exists(), "{}", text(&done));
    assert!(text(&done).contains("its sandbox doesn't hold"), "{}", text(&done));
}

#[test]
fn the_trial_of_a_box_fails_outside_of_one() {
    let stage = Stage::new(User::Mine, &format!("trial-{}", std::process::id()));
    let secret = stage.path("state/secret").display().to_string();
    let outside = stage.provost(&["sandbox-step", "canary", "0", &secret]);
    assert_eq!(outside.status.code(), Some(1), "{outside:?}");
    assert!(text(&outside).contains("isn't held"), "{outside:?}");
    // The host's loopback interface and Provost's files, by a program that is held in all else.
    let held = |args: &[&str]| {
        let mut all = vec![
            "sandbox",
            "run",
            "--network",
            "open",
            "--",
            env!("CARGO_BIN_EXE_provost"),
            "sandbox-step",
            "canary",
        ];
        all.extend(args);
        stage.provost(&all)
    };
    assert!(held(&["0", &secret]).status.success(), "{:?}", held(&["0", &secret]));
    let readable = held(&["0", &stage.path("out/file").display().to_string()]);
    assert!(text(&readable).contains("reads Provost's own files"), "{readable:?}");
    let greeter = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = greeter.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        use std::io::Write as _;
        greeter.incoming().flatten().for_each(|mut stream| drop(stream.write_all(b"p")));
    });
    let reached = held(&[&port, &secret]);
    assert!(text(&reached).contains("loopback interface"), "{reached:?}");
}
