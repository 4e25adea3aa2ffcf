//! What happens outside while a program is in the sandbox: files that are made and replaced there, and what git sees.

use std::process::{Child, Output};

use crate::sandbox_stage::{Stage, User};
use crate::support::until;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stage(name: &str) -> Stage {
    Stage::new(User::Mine, &format!("{name}-{}", std::process::id()))
}

impl Stage {
    /// A program in the box that does this once a file `go` is there; returns when it waits.
    fn waiting(&self, script: &str) -> Child {
        let script = format!("touch up; until test -e go; do sleep 0.1; done; {script}");
        let args = ["sandbox", "run", "--", "sh", "-c", &script];
        let child = self.command(env!("CARGO_BIN_EXE_provost"), &args).spawn().unwrap();
        until("the program waits", || self.path("work/up").exists().then_some(()));
        child
    }

    fn go(&self, mut child: Child) {
        self.write("work/go", "");
        child.wait().unwrap();
    }
}

#[test]
fn a_credential_that_is_made_or_replaced_while_a_program_runs_is_not_read() {
    let stage = stage("made");
    let toml = "[sandbox]\nmode = \"workspace\"\ndeny_read = [\"later.env\", \"~/later\"]\n";
    stage.write("work/provost.toml", toml);
    let waiting = stage.waiting(
        "cat ~/.npmrc ~/.netrc ~/.ssh/id_rsa ~/.ssh/new ~/.config/glab-cli/config.yml ~/.docker/config.json ~/later later.env > seen; \
         cat ~/.bashrc > other && echo fine >> other",
    );
    let changed = stage.outside(
        "echo SECRET > tmp; mv tmp ~/.npmrc; mv ~/.ssh ~/old; mkdir -p ~/.ssh ~/.config/glab-cli ~/.docker; \
         for f in ~/.netrc ~/.ssh/id_rsa ~/.ssh/new ~/.config/glab-cli/config.yml ~/.docker/config.json ~/later later.env; do echo SECRET > $f; done",
    );
    assert!(changed.status.success(), "{}", text(&changed));
    stage.go(waiting);
    let seen = std::fs::read_to_string(stage.path("work/seen")).unwrap();
    assert!(!seen.contains("SECRET"), "{seen}");
    assert_eq!(std::fs::read_to_string(stage.path("work/other")).unwrap(), "fine\n", "the rest is read");
    assert_eq!(
        std::fs::read_to_string(stage.path("work/later.env")).unwrap(),
        "SECRET\n",
        "what you wrote stays"
    );
}

#[test]
fn what_covers_a_name_is_not_seen_by_the_users_git() {
    let stage = stage("listed");
    stage.write("work/.gitignore", "/up\n/go\n");
    stage.outside("git add -A; git -c user.name=a -c user.email=b@c commit -qm all; git rm -q --cached provost.toml; rm provost.toml");
    let waiting = stage.waiting("git status --short > inside; git clean -fdn >> inside");
    let listed = text(&stage.outside("git status --short; git add -A; git status --short; git clean -fdxn"));
    stage.go(waiting);
    let inside = std::fs::read_to_string(stage.path("work/inside")).unwrap();
    for name in [".envrc", "provost.toml", ".claude", "commondir", "refs"] {
        let is_listed = |text: &str| text.lines().any(|line| line.contains(name) && !line.starts_with("D "));
        assert!(!is_listed(&listed) || name == ".claude", "{name}: {listed}");
        assert!(!is_listed(&inside), "{name}: {inside}");
        assert!(!stage.path(&format!("work/{name}")).exists(), "{name} is removed");
    }
}

#[test]
fn provosts_own_settings_are_neither_read_nor_written() {
    for is_there in [true, false] {
        let stage = stage("settings");
        if is_there {
            stage.write("home/.config/provost/config.toml", "[sandbox]\nmode = \"workspace\"\n# SECRET\n");
        }
        stage.write("work/provost.toml", "[sandbox]\nmode = \"workspace\"\nwrite = [\"~\"]\n");
        assert!(stage.provost(&["trust", "--yes"]).status.success());
        let done = stage.inside(
            "cat ~/.config/provost/config.toml; mv ~/.config ~/c2; mv ~/.config/provost ~/.config/p; mkdir -p ~/.config/provost; \
             echo '# evil' >> ~/.config/provost/config.toml; mkdir ~/fine",
        );
        assert!(!text(&done).contains("SECRET"), "{}", text(&done));
        assert!(stage.path("home/fine").exists(), "{}", text(&done));
        let now = std::fs::read_to_string(stage.path("home/.config/provost/config.toml")).unwrap_or_default();
        assert!(!now.contains("evil") && now.contains("SECRET") == is_there, "{now}: {}", text(&done));
    }
}

#[test]
fn what_is_denied_is_named_by_its_own_path_and_rule() {
    let stage = stage("named");
    let tools = "{ tools: [{ shell: { command: 'bash -c \"echo x > .git/hooks/pre-commit\"' } }] }, \
                 { tools: [{ shell: { command: 'cat secret.env' } }] }";
    stage.write("work/secret.env", "SECRET");
    stage.project(tools, "deny_read = [\"secret.env\"]\n");
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    let log = stage.log();
    assert!(log.contains(".git/hooks decides what runs later"), "{log}");
    assert!(!log.contains("bash may not be written"), "{log}");
    assert!(log.contains("secret.env may not be read: sandbox.deny_read names"), "{log}");
    assert!(!log.contains("SECRET"), "{log}");
}

#[test]
fn explain_looks_into_scripts_and_options() {
    let stage = stage("words");
    let args = [
        "sandbox",
        "explain",
        "--",
        "sh",
        "-c",
        "echo x >/etc/passwd; cat '.git/config'",
        "--target-directory=/etc",
    ];
    let said = text(&stage.provost(&args));
    for line in [
        "/etc/passwd  may be read; /etc/passwd may not be written",
        ".git/config may not be written",
        "/etc  may be read; /etc may not",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("echo x"), "{said}");
}

#[test]
fn a_program_that_is_not_there_has_the_status_that_shells_give() {
    let stage = stage("absent");
    let done = stage.provost(&["sandbox", "run", "--", "no-such-program"]);
    assert_eq!(done.status.code(), Some(127), "{}", text(&done));
    assert!(text(&done).contains("no-such-program"), "{}", text(&done));
    let done =
        stage.provost(&["sandbox", "run", "--network", "none", "--allow-host", "x.example", "--", "true"]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done));
    stage.write("work/provost.toml", "[sandbox]\nmode = \"workspace\"\ndeny_read = [\"sub/*.key\"]\n");
    let done = text(&stage.inside("true"));
    assert!(done.contains("sandbox.deny_read") && done.contains("not a pattern"), "{done}");
}
