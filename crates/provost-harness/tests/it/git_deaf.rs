//! Provost's own git starts no program that a repository, its files or the user's settings name. Each channel
//! separately: plain git starts the canary, a run with a goal doesn't.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::evidence_stage::{Stage, section, sh};

/// A program that records by which channel it was started.
pub(crate) struct Canary {
    song: PathBuf,
    program: PathBuf,
}

impl Canary {
    pub(crate) fn new(folder: &Path) -> Self {
        let (song, program) = (folder.join("canary-song"), folder.join("canary"));
        fs::write(
            &program,
            format!(
                "#!/bin/sh\necho \"$1\" >> '{}'\ncase $1 in core.ssh*) exit 1;; esac\ncat\n",
                song.display()
            ),
        )
        .unwrap();
        assert!(Command::new("chmod").arg("700").arg(&program).status().unwrap().success());
        Self { song, program }
    }

    /// A command for a setting.
    fn command(&self, name: &str) -> String {
        format!("'{}' {name}", self.program.display())
    }

    fn hook(&self, hooks: &Path, name: &str) {
        fs::create_dir_all(hooks).unwrap();
        let hook = hooks.join(name);
        fs::write(&hook, format!("#!/bin/sh\n{} </dev/null >/dev/null\n", self.command(name))).unwrap();
        assert!(Command::new("chmod").arg("700").arg(&hook).status().unwrap().success());
    }

    fn song(&self) -> String {
        fs::read_to_string(&self.song).unwrap_or_default()
    }

    pub(crate) fn was_silent(&self) {
        assert_eq!(self.song(), "");
    }

    pub(crate) fn has_sung(&self, names: &[&str]) {
        let song = self.song();
        for name in names {
            assert!(song.lines().any(|line| line == *name), "{name} in:\n{song}");
        }
    }

    /// Every channel at once.
    pub(crate) fn set_everywhere(&self, top: &Path) {
        for name in SETTINGS {
            git(top, &["config", name, &self.command(name)]);
        }
        for name in HOOKS {
            self.hook(&top.join(".git/hooks"), name);
        }
        fs::create_dir_all(top.join(".git/info")).unwrap();
        fs::write(top.join(".git/info/attributes"), "* filter=all diff=all merge=all\n").unwrap();
    }
}

/// Settings whose values are commands.
const SETTINGS: [&str; 19] = [
    "filter.all.clean",
    "filter.all.smudge",
    "diff.external",
    "diff.all.command",
    "diff.all.textconv",
    "merge.all.driver",
    "core.fsmonitor",
    "core.pager",
    "pager.diff",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "gpg.program",
    "uploadpack.packObjectsHook",
    "alias.ls-files",
    "alias.diff",
];

const HOOKS: [&str; 6] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "fsmonitor-watchman",
    "pre-auto-gc",
];

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs an agent with a goal in a repository where `prepare` has set a trap; `provoke` is the git command that
/// triggers it. Returns the evidence about files.
async fn check(sings: &str, prepare: impl Fn(&Path, &Canary), provoke: &[&str]) -> String {
    let stage = Stage::new().with_git();
    let elsewhere = tempfile::tempdir().unwrap();
    let canary = Canary::new(elsewhere.path());
    prepare(stage.path(), &canary);
    // Its size is unchanged, so that only its content differs.
    fs::write(stage.path().join("old.txt"), "one\nTwo\n").unwrap();
    let script = "printf 'one\\nTWO\\n' > old.txt; echo hello > greeting.txt";
    let asked = stage.plays(vec![sh(script)]).await;
    canary.was_silent();
    git(stage.path(), provoke);
    canary.has_sung(&[sings]);
    section(&asked[0], "FILES")
}

const SEEN: &str = "\
FILES
What differs from how it was when the run began:
";

fn tells_of(files: &str, expected: &[&str]) {
    assert!(files.starts_with(SEEN), "{files}");
    for line in expected {
        assert!(files.contains(line), "{line} in:\n{files}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_settings_named_by_files_attributes() {
    let files = check(
        "filter.x.clean",
        |top, canary| {
            fs::write(top.join(".gitattributes"), "* filter=x\n").unwrap();
            git(top, &["config", "filter.x.clean", &canary.command("filter.x.clean")]);
        },
        &["diff", "--numstat", "HEAD"],
    )
    .await;
    tells_of(&files, &["+1 -1, 8 bytes: old.txt", "new, +1 -0, 6 bytes: greeting.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_are_processes_named_by_the_repositorys_own_attributes() {
    check(
        "filter.x.process",
        |top, canary| {
            fs::create_dir_all(top.join(".git/info")).unwrap();
            fs::write(top.join(".git/info/attributes"), "* filter=x\n").unwrap();
            git(top, &["config", "filter.x.process", &canary.command("filter.x.process")]);
        },
        &["diff", "--numstat", "HEAD"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_a_file_that_settings_include() {
    check(
        "filter.y.clean",
        |top, canary| {
            fs::write(top.join(".gitattributes"), "* filter=y\n").unwrap();
            git(top, &["config", "include.path", "../more"]);
            git(top, &["config", "--file", "more", "filter.y.clean", &canary.command("filter.y.clean")]);
        },
        &["diff", "--numstat", "HEAD"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_settings_for_one_work_tree() {
    check(
        "filter.z.clean",
        |top, canary| {
            fs::write(top.join(".gitattributes"), "* filter=z\n").unwrap();
            git(top, &["config", "core.repositoryformatversion", "1"]);
            git(top, &["config", "extensions.worktreeConfig", "true"]);
            git(top, &["config", "--worktree", "filter.z.clean", &canary.command("filter.z.clean")]);
        },
        &["diff", "--numstat", "HEAD"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_compare_files() {
    for name in ["diff.external", "diff.x.command", "diff.x.textconv"] {
        check(
            name,
            |top, canary| {
                fs::write(top.join(".gitattributes"), "* diff=x\n").unwrap();
                git(top, &["config", name, &canary.command(name)]);
            },
            &["diff", "HEAD"],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_of_files() {
    check(
        "core.fsmonitor",
        |top, canary| drop(git(top, &["config", "core.fsmonitor", &canary.command("core.fsmonitor")])),
        &["status"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_wherever_settings_say_that_they_are() {
    for folder in [".git/hooks", "tracked-hooks"] {
        check(
            "post-index-change",
            |top, canary| {
                canary.hook(&top.join(folder), "post-index-change");
                if folder != ".git/hooks" {
                    git(top, &["config", "core.hooksPath", folder]);
                }
            },
            &["add", "-A"],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_to_bring_objects_which_are_missing() {
    check(
        "core.sshCommand",
        |top, canary| {
            for (name, value) in [
                ("core.repositoryformatversion", "1"),
                ("extensions.partialClone", "origin"),
                ("remote.origin.promisor", "true"),
                ("remote.origin.url", "ssh://nowhere.invalid/x"),
                ("core.sshCommand", &canary.command("core.sshCommand")),
            ] {
                git(top, &["config", name, value]);
            }
            let id = git(top, &["rev-parse", "HEAD:old.txt"]);
            let object = top.join(".git/objects").join(&id[..2]).join(id[2..].trim());
            fs::remove_file(object).unwrap();
        },
        &["diff", "HEAD"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_within_the_repository() {
    check(
        "filter.x.clean",
        |top, canary| {
            let inner = top.join("inner");
            fs::create_dir(&inner).unwrap();
            fs::write(inner.join("a.txt"), "one\n").unwrap();
            fs::write(inner.join(".gitattributes"), "* filter=x\n").unwrap();
            let script = "git init -q && git add -A && \
                 git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm inner";
            assert!(Command::new("sh").args(["-c", script]).current_dir(&inner).status().unwrap().success());
            git(top, &["add", "inner"]);
            git(&inner, &["config", "filter.x.clean", &canary.command("filter.x.clean")]);
            fs::write(inner.join("a.txt"), "two\n").unwrap();
        },
        &["status"],
    )
    .await;
}

/// A git command that triggers the channel if git uses it, in a repository with `old.txt` in its only commit.
struct Channel {
    name: &'static str,
    prepare: &'static str,
    provoke: &'static str,
}

/// Each separately; `CANARY` is the program that the setting names.
const CHANNELS: [Channel; 14] = [
    Channel {
        name: "gpg.program",
        prepare: "git config gpg.program \"$CANARY_FILE\" && git config commit.gpgSign true",
        provoke: "git -c user.name=a -c user.email=a@b commit --allow-empty -m signed",
    },
    Channel {
        name: "core.pager",
        prepare: "git config core.pager \"$CANARY\"",
        provoke: "script -qc 'git log' /dev/null",
    },
    Channel {
        name: "pager.diff",
        prepare: "git config pager.diff \"$CANARY\"",
        provoke: "script -qc 'git diff HEAD' /dev/null",
    },
    Channel { name: "alias.own", prepare: "git config alias.own \"!$CANARY\"", provoke: "git own" },
    Channel {
        name: "credential.helper",
        prepare: "git config credential.helper \"!$CANARY\"",
        provoke: "printf 'protocol=https\\nhost=nowhere.invalid\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
    },
    Channel {
        name: "merge.x.driver",
        prepare: "git config merge.x.driver \"$CANARY\" && echo '* merge=x' > .git/info/attributes",
        provoke: "git config user.name a && git config user.email a@b && git checkout -q -b side && echo 2 > old.txt && \
                  git commit -qam 2 && git checkout -q - && echo 3 > old.txt && git commit -qam 3 && git merge side",
    },
    Channel {
        name: "core.editor",
        prepare: "git config core.editor \"$CANARY\"",
        provoke: "git -c user.name=a -c user.email=a@b commit --allow-empty",
    },
    Channel {
        name: "core.sshCommand",
        prepare: "git config core.sshCommand \"$CANARY\" && git remote add origin ssh://nowhere.invalid/x",
        provoke: "git fetch origin",
    },
    Channel {
        name: "core.askPass",
        prepare: "git config core.askPass \"$CANARY_FILE\"",
        provoke: "printf 'protocol=https\\nhost=nowhere.invalid\\n\\n' | git credential fill",
    },
    Channel {
        name: "post-checkout",
        prepare: "printf '#!/bin/sh\\n%s\\n' \"$CANARY </dev/null\" > .git/hooks/post-checkout && chmod 700 .git/hooks/post-checkout",
        provoke: "git checkout -q -b other",
    },
    Channel {
        name: "filter.x.smudge",
        prepare: "git config filter.x.smudge \"$CANARY\" && echo '* filter=x' > .git/info/attributes",
        provoke: "git checkout HEAD -- old.txt && rm old.txt && git checkout HEAD -- old.txt",
    },
    Channel {
        name: "core.gitProxy",
        prepare: "git config core.gitProxy \"$CANARY_FILE\" && git remote add origin git://nowhere.invalid/x",
        provoke: "git fetch origin",
    },
    Channel {
        name: "submodule.sub.update",
        prepare: "git init -q sub && cd sub && git config user.name a && git config user.email a@b && \
                  git commit -q --allow-empty -m 1 && cd .. && \
                  git -c protocol.file.allow=always submodule --quiet add ./sub sub 2>/dev/null && \
                  git -C sub commit -q --allow-empty -m 2 && git config submodule.sub.update \"!$CANARY\"",
        provoke: "git submodule update",
    },
    Channel {
        name: "include.path",
        prepare: "git config --file more.cfg diff.external \"$CANARY\" && git config include.path \"$PWD/more.cfg\"",
        provoke: "git diff HEAD",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn whatever_else_settings_have_git_start() {
    for Channel { name, prepare, provoke } in CHANNELS {
        let stage = Stage::new().with_git();
        let elsewhere = tempfile::tempdir().unwrap();
        let canary = Canary::new(elsewhere.path());
        let file = elsewhere.path().join("canary-of-its-own");
        fs::write(&file, format!("#!/bin/sh\n{} </dev/null\n", canary.command(name))).unwrap();
        assert!(Command::new("chmod").arg("700").arg(&file).status().unwrap().success());
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(stage.path()).env("CANARY", canary.command(name));
            command.env("CANARY_FILE", &file).stdin(std::process::Stdio::null()).output().unwrap()
        };
        assert!(shell(prepare).status.success(), "{name}");
        fs::write(stage.path().join("old.txt"), "one\nTWO\n").unwrap();
        stage.plays(vec![sh("echo hello > greeting.txt")]).await;
        canary.was_silent();
        let provoked = shell(provoke);
        assert!(
            canary.song().lines().any(|line| line == name),
            "{name}: git as it is doesn't start it: {provoked:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_at_once() {
    let files =
        check("filter.all.clean", |top, canary| canary.set_everywhere(top), &["diff", "--numstat", "HEAD"])
            .await;
    tells_of(&files, &["+1 -1, 8 bytes: old.txt", "new, +1 -0, 6 bytes: greeting.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_tree_elsewhere_that_settings_name_is_not_the_one_that_is_looked_at() {
    let stage = Stage::new().with_git();
    git(stage.path(), &["config", "core.worktree", "/nowhere"]);
    let asked = stage.plays(vec![sh("echo hello > greeting.txt")]).await;
    tells_of(&section(&asked[0], "FILES"), &["new, +1 -0, 6 bytes: greeting.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_settings_say_of_the_format_and_of_line_ends_still_holds() {
    let stage = Stage::new();
    let script = "git init -q --object-format=sha256 && git config core.autocrlf true && printf 'a\\r\\nb\\r\\n' > dos.txt && \
         git add -A && GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' git -c user.name=a -c user.email=a@b \
         -c commit.gpgsign=false commit -qm first && touch -d 2021-01-01 dos.txt";
    assert!(Command::new("sh").args(["-c", script]).current_dir(stage.path()).status().unwrap().success());
    let asked = stage.plays(vec![sh("echo hello > greeting.txt")]).await;
    let files = section(&asked[0], "FILES");
    tells_of(&files, &["new, +1 -0, 6 bytes: greeting.txt"]);
    assert!(!files.contains("dos.txt"), "{files}");
}
