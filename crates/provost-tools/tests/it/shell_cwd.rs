//! `shell`: the working directory is kept between calls.

use expect_test::{Expect, expect};
use provost_event::Json;
use provost_harness::{Tool, ToolContext, ToolOutput};
use provost_tools::Shell;
use serde_json::json;

use crate::fixture::{Fixture, link};

/// Calls of one session, one after the other.
struct Session {
    fixture: Fixture,
    shell: Shell,
    memory: Option<Json>,
}

impl Session {
    fn new(shell: Shell) -> Self {
        let fixture = Fixture::new().file("sub/deep/file", "").file("other/file", "");
        Self { fixture, shell, memory: None }
    }

    async fn run(&mut self, command: &str) -> ToolOutput {
        let context = ToolContext { memory: self.memory.clone(), ..self.fixture.context() };
        let input = Json::of(&json!({"command": command})).unwrap();
        let output = self.shell.call(&input, &context).await;
        if output.memory.is_some() {
            self.memory.clone_from(&output.memory);
        }
        output
    }

    async fn check(&mut self, command: &str, expect: Expect) {
        let output = self.run(command).await;
        expect.assert_eq(&self.fixture.shown(&output));
    }

    /// The next command's working directory, relative to the workspace.
    async fn cwd(&mut self) -> String {
        let output = self.run("pwd -P").await;
        let root = self.fixture.root();
        output.text.trim().strip_prefix(root.to_str().unwrap()).unwrap_or(&output.text).to_owned()
    }
}

/// The shells installed on this machine.
fn shells() -> Vec<Shell> {
    let mut shells = vec![Shell::new()];
    shells.extend(
        ["/bin/sh", "/bin/dash", "/bin/bash"]
            .iter()
            .filter(|path| std::path::Path::new(path).exists())
            .map(|path| Shell::new().with_program(path)),
    );
    shells
}

#[tokio::test]
async fn it_is_kept_and_a_change_is_told() {
    let mut session = Session::new(Shell::new());
    session
        .check(
            "cd sub",
            expect![[r#"
        Ok
        [working directory is now `sub`]
    "#]],
        )
        .await;
    session
        .check(
            "pwd; cd deep && false",
            expect![[r#"
        Error
        /tmp/it/workspace/sub
        [working directory is now `sub/deep`]
        exit status 1
    "#]],
        )
        .await;
    session
        .check(
            "pwd",
            expect![[r#"
        Ok
        /tmp/it/workspace/sub/deep
    "#]],
        )
        .await;
    let memory: serde_json::Value = session.memory.unwrap().read().unwrap();
    assert_eq!(memory, json!({"cwd": session.fixture.path("sub/deep")}));
}

#[tokio::test]
async fn it_is_kept_however_a_command_ends() {
    for shell in shells() {
        let mut session = Session::new(shell.clone());
        for (command, cwd) in [
            ("cd sub; exit 3", "/sub"),
            ("cd deep; set -e; false; cd /", "/sub/deep"),
            ("cd ..; set -u; echo $never_set; cd /", "/sub"),
            ("cd ../other; trap 'echo mine' EXIT", "/other"),
            ("cd ../sub; set -C; false", "/sub"),
            ("(cd deep; exit 1)", "/sub"),
            ("cd deep; exec 1>&- 2>&-", "/sub/deep"),
            ("alias pwd=false; pwd() { echo /; }; cd ..", "/sub"),
            ("if then", "/sub"),
            ("exec true", "/sub"),
            ("kill -9 $$", "/sub"),
            ("echo \"unfinished", "/sub"),
            ("cd deep; return 2", "/sub/deep"),
        ] {
            session.run(command).await;
            assert_eq!(session.cwd().await, cwd, "{command} in {shell:?}");
        }
    }
}

#[tokio::test]
async fn status_survives_the_bookkeeping_in_every_shell() {
    for shell in shells() {
        let mut session = Session::new(shell.clone());
        for (command, last) in [
            ("exit 7", "exit status 7"),
            ("(exit 8)", "exit status 8"),
            ("set -e; (exit 9); true", "exit status 9"),
            ("trap 'exit 5' EXIT; true", "exit status 5"),
            ("echo fine", "fine"),
        ] {
            let output = session.run(command).await;
            assert_eq!(output.text.lines().last(), Some(last), "{command} in {shell:?}: {}", output.text);
        }
    }
}

#[tokio::test]
async fn outside_of_the_workspace_it_stays() {
    let mut session = Session::new(Shell::new());
    session.run("cd sub").await;
    session
        .check(
            "cd /usr",
            expect![[r#"
        Ok
        [it ended in `/usr`, outside of the workspace: the next command starts in `sub` again]
    "#]],
        )
        .await;
    assert_eq!(session.cwd().await, "/sub");
    link("/usr", session.fixture.path("way_out"));
    session.run("cd ../way_out").await;
    assert_eq!(session.cwd().await, "/sub");
}

#[tokio::test]
async fn a_folder_that_is_gone_brings_back_the_workspace() {
    let mut session = Session::new(Shell::new());
    session.run("cd sub/deep").await;
    std::fs::remove_dir_all(session.fixture.path("sub")).unwrap();
    session
        .check(
            "pwd",
            expect![[r#"
        Ok
        [the working directory `sub/deep` is gone; this ran in the workspace]
        /tmp/it/workspace
    "#]],
        )
        .await;
    session
        .check(
            "pwd",
            expect![[r#"
        Ok
        /tmp/it/workspace
    "#]],
        )
        .await;
    // Removed by the command itself.
    session.run("cd other").await;
    session.run("rm -r ../other").await;
    session
        .check(
            "exec true",
            expect![[r#"
        Ok
        [the working directory `other` is gone; this ran in the workspace]
    "#]],
        )
        .await;
    assert_eq!(session.cwd().await, "");
}

#[tokio::test]
async fn what_is_remembered_is_not_trusted() {
    for cwd in ["/usr", "../..", "nonsense"] {
        let mut session = Session::new(Shell::new());
        session.memory = Some(Json::of(&json!({"cwd": cwd})).unwrap());
        let output = session.run("pwd").await;
        assert!(output.text.contains("is gone; this ran in the workspace"), "{cwd}: {}", output.text);
    }
    let mut session = Session::new(Shell::new());
    session.memory = Some(Json::of(&json!({"something": "else"})).unwrap());
    assert_eq!(session.cwd().await, "");
}
