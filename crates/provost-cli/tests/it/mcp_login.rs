//! Logins at MCP servers, from the command line: made, used by a run, seen nowhere, ended.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Scene, json as read_json};

const SERVER: &str = include_str!("../../../provost-mcp-client/tests/it/oauth_server.py");
const USER_FILE: &str = "home/.config/provost/config.toml";

/// A server that wants a login, which the user's settings have as `s`.
struct Locked {
    scene: Scene,
    server: Child,
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Locked {
    fn new(answers: &str, config: &Value) -> Self {
        let scene = Scene::scripted(answers);
        scene.write("oauth_server.py", SERVER);
        scene.write("config.json", &config.to_string());
        scene.write("record", "");
        let args = ["oauth_server.py", "config.json", "record"].map(|name| scene.path(name));
        let mut server = Command::new("python3").args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        scene.write(USER_FILE, &format!("[mcp.s]\nurl = \"http://127.0.0.1:{}/mcp\"\n", port.trim()));
        Self { scene, server }
    }

    /// `provost mcp login` with the browser as far as it goes; `paste` gives the address by hand. Returns what it said.
    fn login(&self, paste: bool, more: &[&str]) -> (bool, String) {
        let mut args = vec!["mcp", "login", "s"];
        args.extend(paste.then_some("--paste"));
        args.extend(more);
        let mut command = self.scene.command(&args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while let Ok(1..) = said.read_line(&mut text) {
            let Some(address) = text.lines().find_map(|line| line.trim().strip_prefix("http")) else {
                continue;
            };
            let shown = browse(&format!("http{address}"), paste);
            if paste {
                child.stdin.take().unwrap().write_all(format!("{shown}\n").as_bytes()).unwrap();
            }
            break;
        }
        said.read_to_string(&mut text).unwrap();
        let mut errors = child.stderr.take().unwrap();
        errors.read_to_string(&mut text).unwrap();
        (child.wait().unwrap().success(), text)
    }

    /// The tokens of the login.
    fn tokens(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.logins()).unwrap();
        let file = folder
            .flatten()
            .map(|file| file.path())
            .find(|path| path.extension().is_some_and(|it| it == "json"));
        let kept = read_json(&std::fs::read_to_string(file.expect("a login")).unwrap());
        let tokens = &kept["credentials"]["token_response"];
        ["access_token", "refresh_token"].map(|name| tokens[name].as_str().unwrap().to_owned()).to_vec()
    }

    fn logins(&self) -> std::path::PathBuf {
        find(&self.scene.path("."), "mcp-logins").expect("the folder of logins")
    }
}

/// A folder of this name, anywhere below.
fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    let below =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    below.into_iter().find_map(|path| {
        if path.file_name().is_some_and(|it| it == name) { Some(path) } else { find(&path, name) }
    })
}

/// What a browser shows, or where it is sent.
fn browse(address: &str, stops: bool) -> String {
    let program = "
import sys, urllib.request, urllib.error
class Stop(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
open = urllib.request.build_opener(*([Stop] if sys.argv[2] == 'stops' else [])).open
try: print(open(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error: print(error.headers.get('location') or error.read().decode())
";
    let how = if stops { "stops" } else { "follows" };
    let shown = Command::new("python3").args(["-c", program, address, how]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap().trim().to_owned()
}

/// All files below a folder that hold this, but for those of a folder.
fn holders(folder: &Path, text: &str, but: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        if path == but || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(holders(&path, text, but));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|part| part == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

const CALLS: &str = "answers:\n- tools: [mcp__s__a]\n- text: done\n";

#[test]
fn a_login_lets_a_run_call_and_its_tokens_are_seen_nowhere() {
    let locked = Locked::new(CALLS, &json!({ "echoes": true }));
    let scene = &locked.scene;
    let refused = scene.provost(&["mcp", "trust", "s", "--yes"]);
    assert!(refused.status != 0 && refused.stderr.contains("`provost mcp login s`"), "{refused:?}");
    let (is_in, said) = locked.login(false, &[]);
    assert!(is_in && said.contains("logged in to s: at http://127.0.0.1:"), "{said}");
    assert!(
        said.contains("has you log in at http://127.0.0.1:") && said.contains("renewed by itself"),
        "{said}"
    );
    assert_eq!(scene.provost(&["mcp", "trust", "s", "--yes"]).status, 0);
    let mut command = scene.command(&["run", "call it"]);
    command.env("PROVOST_LOG", "trace");
    let ran = Scene::spawn(command).end();
    assert_eq!(ran.status, 0, "{ran:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(log.contains("you sent [secret]") || log.contains("you sent Bearer [secret]"), "{log}");
    let shown =
        scene.provost(&["mcp", "show", "s"]).stdout + &scene.provost(&["mcp", "show", "s", "--json"]).stdout;
    for token in locked.tokens() {
        assert!(!said.contains(&token) && !ran.stderr.contains(&token) && !shown.contains(&token));
        let holders = holders(&scene.path("."), &token, &locked.logins());
        assert_eq!(holders, Vec::<std::path::PathBuf>::new());
    }
    let out = scene.provost(&["mcp", "logout", "s"]);
    assert_eq!(out.stdout, "s: logged out; the authorization server has forgotten the token\n");
    assert_eq!(scene.provost(&["mcp", "logout", "s"]).stdout, "s: there was no login\n");
    let ran = scene.provost(&["run", "call it"]);
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(ran.status == 0 && log.contains("the user must log in there"), "{log}");
}

#[test]
fn without_a_browser_the_address_is_pasted_and_removing_a_server_ends_its_login() {
    let locked = Locked::new(CALLS, &json!({}));
    let scene = &locked.scene;
    let (is_in, said) = locked.login(true, &["--scope", "more"]);
    assert!(is_in && said.contains("for more"), "{said}");
    let shown = read_json(&scene.provost(&["mcp", "show", "s", "--json"]).stdout);
    assert_eq!(shown["login"]["scopes"], json!(["more"]));
    assert_eq!(scene.provost(&["mcp", "remove", "s"]).status, 0);
    let left = std::fs::read_dir(locked.logins()).unwrap().flatten();
    assert_eq!(left.filter(|file| file.path().extension().is_some_and(|it| it == "json")).count(), 0);
}

#[test]
fn what_cant_be_logged_in_to_says_why() {
    let locked = Locked::new(CALLS, &json!({ "no_registration": true }));
    let (is_in, said) = locked.login(false, &[]);
    assert!(!is_in && said.contains("set its id as oauth_client_id"), "{said}");
    locked.scene.write(USER_FILE, "[mcp.s]\ncommand = \"true\"\n");
    let refused = locked.scene.provost(&["mcp", "login", "s"]);
    assert!(refused.status == 2 && refused.stderr.contains("logins are for addresses"), "{refused:?}");
}
