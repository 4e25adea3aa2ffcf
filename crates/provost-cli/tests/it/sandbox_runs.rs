//! The sandbox around a run: shell, file tools, hooks, external agents, jobs; what it leaves, and who may widen it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use crate::sandbox_stage::{Stage, User};
use crate::support::until;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stage(name: &str) -> Stage {
    Stage::new(User::Mine, &format!("{name}-{}", std::process::id()))
}

impl Stage {
    /// A project whose agent gives these answers, with more settings, trusted.
    pub(crate) fn project(&self, answers: &str, settings: &str) {
        self.write("work/agent.yaml", &format!("answers: [{answers}, {{ text: done }}]"));
        let file =
            format!("[agent]\nmodel = \"script:agent.yaml\"\n[sandbox]\nmode = \"workspace\"\n{settings}");
        self.write("work/provost.toml", &file);
        let trusted = self.provost(&["trust", "--yes"]);
        assert!(trusted.status.success(), "{trusted:?}");
    }

    pub(crate) fn log(&self) -> String {
        text(&self.provost(&["export", "last"]))
    }
}

#[test]
fn a_command_outside_of_the_workspace_is_denied_and_the_model_and_the_log_say_so() {
    let stage = stage("denied");
    let out = stage.path("out/new").display().to_string();
    stage.project(&format!("{{ tools: [{{ shell: {{ command: 'echo x > {out}; echo y > inside' }} }}, {{ shell: {{ command: 'touch {out}' }} }}] }}"), "");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    assert!(!stage.path("out/new").exists());
    assert!(stage.path("work/inside").exists());
    let log = stage.log();
    assert!(log.contains("\"denied\":["), "{log}");
    assert!(log.contains("may not be written: it is outside of the workspace"), "{log}");
}

#[test]
fn file_tools_keep_to_the_same_policy() {
    let stage = stage("files");
    stage.write("work/.env", "SECRET");
    let tools = "{ tools: [{ write_file: { path: .vscode/tasks.json, content: x } }] }, \
                 { tools: [{ write_file: { path: .git/hooks/post-commit, content: x } }] }, \
                 { tools: [{ write_file: { path: fine.txt, content: x } }] }, \
                 { tools: [{ read_file: { path: .env } }] }";
    stage.project(tools, "deny_read = [\".env\"]\n");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    assert!(stage.path("work/fine.txt").exists());
    assert!(!stage.path("work/.vscode/tasks.json").exists());
    assert!(!stage.path("work/.git/hooks/post-commit").exists());
    assert!(!stage.log().contains("SECRET"));
    assert!(stage.log().contains("decides what runs later"));
}

#[test]
fn hooks_and_stop_hooks_are_confined_unless_the_settings_say_otherwise() {
    for (hooks, expected) in [("", false), ("hooks = false\n", true)] {
        let stage = stage("hooks");
        let out = |name: &str| stage.path(&format!("out/{name}")).display().to_string();
        let settings = format!(
            "{hooks}[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"echo x > {}; true\"\n\
             [[stop_hooks]]\nname = \"check\"\ncommand = \"echo x > {}; true\"\n",
            out("hook"),
            out("stop")
        );
        stage.project("{ tools: [list_dir] }", &settings);
        let done = stage.provost(&["run", "do it"]);
        assert!(done.status.success(), "{}", text(&done));
        for name in ["hook", "stop"] {
            assert_eq!(stage.path(&format!("out/{name}")).exists(), expected, "{name}: {}", text(&done));
        }
    }
}

#[test]
fn an_external_agent_is_confined_unless_the_settings_leave_it_out() {
    for (external, expected) in [("", false), ("external = false\n", true)] {
        let stage = stage("external");
        stage.project("{ text: x }", external);
        let script = format!("echo x > {}; echo y > mine", stage.path("out/agent").display());
        let done = stage.provost(&["exec", "--unattended", "--", "sh", "-c", &script]);
        assert_eq!(stage.path("out/agent").exists(), expected, "{}", text(&done));
        assert!(stage.path("work/mine").exists(), "{}", text(&done));
    }
}

#[test]
fn a_server_started_by_one_call_is_reached_by_the_next() {
    let stage = stage("server");
    let server =
        "{ shell: { command: exec python3 -m http.server 8123 --bind 127.0.0.1, background: true } }";
    let fetch = "{ shell: { command: 'for i in $(seq 100); do python3 -c \"import urllib.request as u; \
                 print(u.urlopen(\\\"http://127.0.0.1:8123/found\\\").read())\" 2>/dev/null && break; sleep 0.1; done' } }";
    stage.write("work/found", "the page");
    stage.project(&format!("{{ tools: [{server}] }}, {{ tools: [{fetch}] }}"), "");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    assert!(stage.log().contains("the page'"), "{}", stage.log());
}

#[test]
fn a_killed_provost_leaves_no_process_and_the_next_one_removes_what_covers_names() {
    let stage = stage("killed");
    let mut running = stage.command(env!("CARGO_BIN_EXE_provost"), &["sandbox", "run", "--", "sleep", "300"]);
    let mut child = running.spawn().unwrap();
    until("names are covered", || stage.path("work/.envrc").exists().then_some(()));
    let left = || {
        let work = stage.path("work");
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == work)).count()
    };
    until("the program runs", || (left() > 1).then_some(()));
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    until("all are gone", || (left() == 0).then_some(()));
    assert!(stage.inside("true").status.success());
    for name in [".envrc", ".claude", ".codex"] {
        assert!(!stage.path(&format!("work/{name}")).exists(), "{name}");
    }
    let boxes = fs::read_dir(stage.path("state/sandbox/boxes")).unwrap().count();
    assert_eq!(boxes, 0);
}

#[test]
fn what_covers_a_name_is_not_seen_by_git_and_stays_while_another_box_needs_it() {
    let stage = stage("covers");
    let mut other = stage
        .command(env!("CARGO_BIN_EXE_provost"), &["sandbox", "run", "--", "sh", "-c", "touch up; sleep 300"]);
    let mut other = other.spawn().unwrap();
    until("the other box is up", || stage.path("work/up").exists().then_some(()));
    let done = stage.inside("git add up && git status --short");
    assert!(!text(&done).contains(".envrc"), "{}", text(&done));
    assert!(stage.path("work/.envrc").exists());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_projects_file_widens_the_sandbox_only_when_it_is_trusted() {
    let stage = stage("trust");
    stage.write("home/.config/provost/config.toml", "[sandbox]\nmode = \"strict\"\n");
    stage.write("work/agent.yaml", "answers: [{ text: done }]");
    let project = "[agent]\nmodel = \"script:agent.yaml\"\n[sandbox]\nmode = \"workspace\"\nwrite = [\"../out\"]\n\
                   network = \"proxy\"\nallow_hosts = [\"evil.example\"]\nenv = [\"TOKEN\"]\n[sandbox.limits]\nfile_size = \"9GiB\"\n";
    stage.write("work/provost.toml", project);
    for args in [["run", "x"].as_slice(), &["sandbox", "run", "--", "true"]] {
        let done = stage.provost(args);
        let said = text(&done);
        assert_eq!(done.status.code(), Some(2), "{said}");
        for line in [
            "mode = workspace",
            "write = ../out",
            "network = proxy",
            "allow_hosts = evil.example",
            "env = TOKEN",
            "limits.file_size = 9GiB",
        ] {
            assert!(said.contains(line), "{line}: {said}");
        }
    }
    stage.write(
        "work/provost.toml",
        "[agent]\nmodel = \"script:agent.yaml\"\n[sandbox]\nmode = \"read-only\"\ndeny_read = [\"x\"]\n",
    );
    assert!(stage.provost(&["run", "x"]).status.success(), "what only narrows needs no trust");
}

#[test]
fn the_proxy_passes_on_to_listed_hosts_only() {
    let stage = stage("proxy");
    let fetch = "$PY 'import socket\nh=os.environ[\"HTTP_PROXY\"].split(\":\")\ns=socket.create_connection((\"127.0.0.1\",int(h[2])),5)\n\
                 s.sendall(os.environ[\"ASK\"].replace(\"~\",\"\\r\\n\").encode())\nprint(s.makefile(\"rb\").read().decode())'";
    let port = String::from_utf8(stage.outside("echo $PORT").stdout).unwrap().trim().to_owned();
    let ask = |allowed: &str, request: &str| {
        let script = format!("export ASK='{request}'; {fetch}");
        let args =
            ["sandbox", "run", "--network", "proxy", "--allow-host", allowed, "--", "sh", "-c", &script];
        text(&stage.provost(&args))
    };
    let get = |host: &str| format!("GET http://{host}:{port}/ HTTP/1.1~Host: x~~");
    let listed = format!("127.0.0.1:{port}");
    // A client that follows the variables by itself.
    let client =
        format!("$PY 'import urllib.request as u; print(u.urlopen(\"http://{listed}/\", timeout=5).status)'");
    let args = ["sandbox", "run", "--network", "proxy", "--allow-host", &listed, "--", "sh", "-c", &client];
    let answer = text(&stage.provost(&args));
    assert!(answer.contains("200"), "{answer}");
    let answer = ask(&listed, &get("127.0.0.1"));
    assert!(answer.contains("200 OK"), "{answer}");
    let answer = ask("example.com", &get("127.0.0.1"));
    assert!(answer.contains("403 Forbidden") && answer.contains("sandbox.allow_hosts"), "{answer}");
    assert!(answer.contains("sandbox: the network denies 127.0.0.1"), "a denial is told: {answer}");
    // A name that leads to this machine.
    let answer = ask(&format!("localhost:{port}"), &get("localhost"));
    assert!(answer.contains("403 Forbidden") && answer.contains("an address of this machine"), "{answer}");
    let answer = ask(&listed, "CONNECT 127.0.0.1:22 HTTP/1.1~~");
    assert!(answer.contains("403 Forbidden"), "{answer}");
}

#[test]
fn a_linked_worktree_is_committed_in_and_its_settings_stay() {
    let stage = stage("worktree");
    let made = stage.outside("git worktree add -q ../tree && cp provost.toml ../tree/");
    assert!(made.status.success(), "{}", text(&made));
    let tree = stage.path("tree").display().to_string();
    let run = |script: &str| stage.provost(&["sandbox", "run", "-C", &tree, "--", "sh", "-c", script]);
    let who = "-c user.name=a -c user.email=b@c";
    let done = run(&format!(
        "echo x > f && git add f && git {who} commit -qm two && echo y > f && git {who} stash -q && git {who} stash pop -q"
    ));
    assert!(done.status.success(), "{}", text(&done));
    let common = stage.path("work/.git").display().to_string();
    for attack in [
        format!("echo x > {common}/hooks/post-commit"),
        format!("echo x >> {common}/config"),
        format!("echo x > {common}/worktrees/tree/config.worktree"),
        format!("echo x > {common}/worktrees/tree/commondir"),
        "echo x > .git".to_owned(),
        format!("echo x > {}", stage.path("work/f").display()),
    ] {
        assert!(!run(&attack).status.success(), "{attack}");
    }
}

#[test]
fn a_folder_without_a_repository_gets_none_and_its_sub_folders_may() {
    let stage = stage("future");
    let folder = stage.path("work2").display().to_string();
    let run = |script: &str| stage.provost(&["sandbox", "run", "-C", &folder, "--", "sh", "-c", script]);
    let done = run("git init -q .; test -e .git/HEAD || git init -q below");
    assert!(done.status.success(), "{}", text(&done));
    assert!(!stage.path("work2/.git").exists());
    assert!(stage.path("work2/below/.git/HEAD").exists());
}

#[test]
fn nothing_is_started_where_a_sandbox_is_required_and_bubblewrap_fails() {
    let stage = stage("closed");
    let out = stage.path("work/ran").display().to_string();
    stage.project(&format!("{{ tools: [{{ shell: {{ command: 'touch {out}' }} }}] }}"), "");
    // No box can be made where the folder for them is a file.
    fs::write(stage.path("state/sandbox"), "").unwrap();
    let done = stage.provost(&["run", "do it"]);
    assert!(!stage.path("work/ran").exists(), "{}", text(&done));
    assert!(stage.log().contains("the sandbox is required and can't be made"), "{}", stage.log());
    stage.project(&format!("{{ tools: [{{ shell: {{ command: 'touch {out}' }} }}] }}"), "require = false\n");
    let done = stage.provost(&["run", "do it"]);
    assert!(stage.path("work/ran").exists(), "{}", text(&done));
}

#[test]
fn explain_says_what_may_be_read_and_written_and_why() {
    let stage = stage("explain");
    let key = stage.path("home/.ssh/id_rsa").display().to_string();
    let done = text(&stage.provost(&["sandbox", "explain", "--", "cat", &key, "./new", ".git/config"]));
    for line in [
        "mode      workspace",
        "the workspace",
        "decides what runs later",
        "holds credentials",
        "id_rsa may not be read",
        "new  may be read and written",
        ".git/config may not be written",
    ] {
        assert!(done.contains(line), "{line}: {done}");
    }
    let json = stage.provost(&["sandbox", "explain", "--json"]);
    let json = crate::support::json(String::from_utf8(json.stdout).unwrap().trim());
    assert_eq!(json["network"], "none");
}

#[test]
fn limits_bind_each_program() {
    let stage = stage("limits");
    stage.project("{ text: x }", "[sandbox.limits]\nfile_size = \"1MiB\"\nmemory = \"512MiB\"\n");
    let done = stage.inside("head -c 2000000 /dev/zero > big");
    assert!(!done.status.success(), "{}", text(&done));
    assert_eq!(fs::metadata(stage.path("work/big")).unwrap().len(), 1 << 20);
    let done = stage.inside("$PY 'b\"x\" * 1000000000'");
    assert!(text(&done).contains("MemoryError"), "{}", text(&done));
}

#[test]
fn a_policy_is_tested_against_the_calls_of_past_runs() {
    let stage = stage("policy");
    let tools = "{ tools: [{ shell: { command: git status } }, { write_file: { path: .vscode/x, content: x } }, { list_dir: { path: . } }] }";
    stage.write("work/agent.yaml", &format!("answers: [{tools}, {{ text: done }}]"));
    stage.write("work/provost.toml", "[agent]\nmodel = \"script:agent.yaml\"\n");
    assert!(stage.provost(&["run", "do it"]).status.success());
    stage.write("new.toml", "[permissions]\ndeny = [\"shell(rm *)\"]\nask = [\"shell(git status)\"]\nallow = [\"shell(rm -r *)\", \"shell(git *)\", \"read_file\", \"list_dir\"]\n\
        [sandbox]\nmode = \"workspace\"\n\
        [[hooks]]\nname = \"writes\"\nevent = \"pre_tool_call\"\nmatcher = \"write_.*\"\ncommand = \"touch ran\"\n\
        [[hooks]]\nname = \"never\"\nevent = \"pre_tool_call\"\nmatcher = \"fetch\"\ncommand = \"touch ran\"\n\
        [[hooks]]\nname = \"pushes\"\nevent = \"pre_tool_call\"\nif = \"shell(git push *)\"\ncommand = \"touch ran\"\n");
    let new = stage.path("new.toml").display().to_string();
    let done = stage.provost(&["policy", "test", &new, "--runs", "last:5"]);
    let said = text(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    for line in [
        "3 calls of 1 run",
        "newly denied: 1",
        "decides what runs later",
        "newly asked: 1",
        "ask shell(git status)",
        "newly allowed: 0",
        "decides none of them: deny shell(rm *)\n",
        "unreachable: allow shell(rm -r *): `deny shell(rm *)` decides all that it matches\n",
        "decides none of them: allow shell(git *): others decide the 1 calls that it matches\n",
        "decides none of them: allow read_file\n",
        "newly checked by a hook: 1\n",
        "hook writes\n",
        "no longer checked by a hook: 0\n",
        "is asked about none of them: hook never\n",
        "is asked about none of them: hook pushes\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!stage.path("work/ran").exists(), "nothing is run");
    stage.write("new.toml", "[permissions]\ndeny = [\"shell(rm *)\"]\n");
    assert!(stage.provost(&["policy", "test", &new]).status.success());
}

#[test]
fn what_covers_a_name_counts_as_no_change_of_the_agent() {
    let stage = stage("diff");
    stage.project("{ tools: [{ shell: { command: echo x > made } }] }", "");
    stage.outside("rm .vscode/settings.json; rmdir .vscode; git add -A; git -c user.name=a -c user.email=b@c commit -qm all");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    let listed = text(&stage.provost(&["diff", "last", "--stat"]));
    assert!(listed.contains("made") && !listed.contains(".envrc"), "{listed}");
    assert!(!stage.path("work/.envrc").exists(), "covers are removed with the run");
}

#[test]
fn provosts_own_git_looks_from_a_box_that_it_writes_nothing_out_of() {
    let stage = stage("own-git");
    let git = String::from_utf8(stage.outside("command -v git").stdout).unwrap();
    let fake =
        format!("#!/bin/sh\necho x >> {}\nexec {} \"$@\"\n", stage.path("out/looked").display(), git.trim());
    stage.write("fake/git", &fake);
    stage.outside("chmod 755 ../fake/git");
    let path = format!("{}:{}", stage.path("fake").display(), std::env::var("PATH").unwrap());
    let provost = |args: &[&str]| {
        let done = stage.command(env!("CARGO_BIN_EXE_provost"), args).env("PATH", &path).output().unwrap();
        assert!(done.status.success(), "{}", text(&done));
        text(&done)
    };
    for (mode, expected) in [("workspace", false), ("off", true)] {
        stage.project(&format!("{{ tools: [{{ shell: {{ command: 'echo {mode} > made' }} }}] }}"), "");
        let file = format!("[agent]\nmodel = \"script:agent.yaml\"\n[sandbox]\nmode = \"{mode}\"\n");
        stage.write("work/provost.toml", &file);
        assert!(stage.provost(&["trust", "--yes"]).status.success());
        let _ = fs::remove_file(stage.path("out/looked"));
        provost(&["run", "do it"]);
        let listed = provost(&["diff", "last", "--stat"]);
        assert!(listed.contains("made"), "{mode}: {listed}");
        assert_eq!(stage.path("out/looked").exists(), expected, "{mode}");
    }
}
