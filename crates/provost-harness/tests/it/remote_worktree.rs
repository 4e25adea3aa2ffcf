//! Runs whose files are in a remote repository, which other machines go on with. A machine is a folder of worktrees:
//! another one has none yet, or an older one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::{
    Block, ConversationEntry, Entry, Outcome, PauseReason, PushedBranch, RunPolicy, Timestamp, ToolStatus,
    WorktreeLeft,
};
use provost_harness::{AgentHarness, RemoteStartError, SimulatedClock, fetch_remote, start_remote};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::worktree::{COMMIT, Cast, DEADLINE, GitFixture, LATER, RUN, Stage, git, until};

/// Milliseconds within which an attempt is made again.
const SOON_MS: u64 = 40_000;
/// The wait of a process that was overtaken.
const LOST_AFTER_MS: u64 = 15_000;

struct RemoteFixture(GitFixture);

impl RemoteFixture {
    fn new(cast: Cast) -> Self {
        let place = GitFixture::new(cast);
        let remote = place.folder.path().canonicalize().expect("there").join("remote.git");
        git(&place.project(), &["clone", "-q", "--bare", ".", remote.to_str().expect("text")]);
        git(&place.project(), &["remote", "add", "origin", remote.to_str().expect("text")]);
        Self(place)
    }

    fn remote(&self) -> PathBuf {
        self.0.folder.path().canonicalize().expect("there").join("remote.git")
    }

    fn url(&self) -> String {
        self.remote().to_str().expect("text").to_owned()
    }

    /// A file as the remote has it in `reference`.
    fn pushed(&self, reference: &str, file: &str) -> String {
        git(&self.remote(), &["show", &format!("{reference}:{file}")])
    }

    async fn policy(&self) -> RunPolicy {
        let started = start_remote(&self.0.project(), "origin", RUN, &self.0.trees()).await;
        let mut policy = self.0.policy();
        policy.remote = Some(started.expect("pushed").repository);
        policy.agent.workspace = self.0.tree(0);
        policy
    }

    async fn start(&self) -> Stage {
        let (harness, backend) = self.0.harness();
        let run = harness.start(RUN, "the goal", self.policy().await).await.expect("it starts");
        Stage { run, backend }
    }

    /// Goes on with the run in a process of another machine, or of this one.
    async fn open(&self) -> Stage {
        let (harness, backend) = self.0.harness();
        let run = harness.open(RUN).await.expect("it opens");
        Stage { run, backend }
    }

    /// Starts the run, and ends its process without a word when its agents have done all they were to do by then.
    async fn killed(&self) {
        self.then_stays();
        let stage = self.start().await;
        self.until_it_stays().await;
        drop(stage);
    }

    fn then_stays(&self) {
        self.0.cast.0.lock().unwrap().entry(0).or_default().push(vec![Block::Text("stay".to_owned())]);
    }

    async fn until_it_stays(&self) {
        until(|| self.0.cast.0.lock().unwrap().values().all(Vec::is_empty)).await;
    }

    fn then(&self, command: &str) {
        let _ = self.0.cast.clone().sh(0, command);
    }
}

fn reference(agent: u32) -> String {
    format!("refs/provost-worktrees/{RUN}-{agent}")
}

fn branch(agent: u32) -> String {
    format!("provost/{RUN}-{agent}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_did_is_on_branches_of_the_remote_and_nowhere_else() {
    let cast = Cast::default().asks_for(0, 1).writes(0, "b.txt", "two\n");
    let place = RemoteFixture::new(cast.writes(1, "c.txt", "three\n").sh(1, COMMIT));
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(place.pushed(&branch(0), "b.txt"), "two");
    assert_eq!(place.pushed(&branch(1), "c.txt"), "three");
    let tip = git(&place.remote(), &["log", "-1", "--format=%s", &branch(1)]);
    assert_eq!(tip, "work", "all was committed: nothing is added");
    let pushed = Some(PushedBranch { url: place.url(), branch: branch(0) });
    assert!(
        matches!(stage.left(0).await, Some(WorktreeLeft::Changed { pushed: there, .. }) if there == pushed)
    );
    assert!(!place.0.project().join("b.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_machine_has_the_files_that_the_log_tells_of() {
    let cast = Cast::default().writes(0, "b.txt", "two\n").sh(0, "chmod +x b.txt; rm a.txt; ln -s b.txt l");
    let place = RemoteFixture::new(cast.sh(0, "git mv -f b.txt c.txt; git commit -qm x || true"));
    place.killed().await;
    std::fs::remove_dir_all(place.0.trees()).expect("removed");
    place.then("ls; ls -l b.txt | cut -c1-10; git status --porcelain; git log --format=%s");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let (status, shown) = stage.results(0).await.pop().expect("a result");
    assert_eq!(status, ToolStatus::Ok, "{shown}");
    assert!(shown.contains("b.txt\nl\n-rwx") && shown.contains(" D a.txt\n?? b.txt\n?? l\nfirst"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_of_the_agent_are_there_too() {
    let cast = Cast::default().writes(0, "b.txt", "two\n").sh(0, COMMIT).writes(0, "b.txt", "three\n");
    let place = RemoteFixture::new(cast);
    place.killed().await;
    std::fs::remove_dir_all(place.0.trees()).expect("removed");
    place.then("cat b.txt; git status --porcelain; git log --format=%s; git branch --show-current");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let (_, shown) = stage.results(0).await.pop().expect("a result");
    let wanted = format!("three\n M b.txt\nwork\nfirst\n{}", branch(0));
    assert!(shown.contains(&wanted), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_had_the_run_before_takes_what_was_done_elsewhere() {
    let place =
        RemoteFixture::new(Cast::default().writes(0, "b.txt", "old\n").writes(0, "only-here.txt", "x"));
    place.killed().await;
    let trees = place.0.trees();
    let here = place.0.folder.path().join("here");
    std::fs::rename(&trees, &here).expect("moved");
    place.then("echo new > b.txt; rm only-here.txt");
    place.then_stays();
    let stage = place.open().await;
    place.until_it_stays().await;
    drop(stage);
    std::fs::remove_dir_all(&trees).expect("removed");
    std::fs::rename(&here, &trees).expect("moved");
    place.then("cat b.txt; ls");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let (_, shown) = stage.results(0).await.pop().expect("a result");
    assert!(shown.contains("new\n") && !shown.contains("only-here"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_same_machine_nothing_is_fetched_again() {
    let place = RemoteFixture::new(Cast::default().sh(0, "echo out > .gitignore; echo kept > out"));
    place.killed().await;
    place.then("cat out");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let (_, shown) = stage.results(0).await.pop().expect("a result");
    assert!(shown.contains("kept"), "ignored files are only here: {shown}");
}

/// The harness with a clock that stands still, in a run whose agent has a call to make once `go` is there.
async fn held_up(place: &RemoteFixture) -> (Stage, Arc<SimulatedClock>, PathBuf) {
    let go = place.0.folder.path().join("go");
    place.then("echo early > b.txt");
    place.then(&format!("while ! [ -e {} ]; do sleep 0.01; done; echo late > b.txt", go.display()));
    let clock = Arc::new(SimulatedClock::at(Timestamp(1_000_000)));
    let (harness, backend): (AgentHarness, _) = place.0.harness_by(clock.clone());
    let run = harness.start(RUN, "the goal", place.policy().await).await.expect("it starts");
    place.until_it_stays().await;
    (Stage { run, backend }, clock, go)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_overtaken_pushes_nothing_before_it_must_have_noticed() {
    let place = RemoteFixture::new(Cast::default());
    let (mut stage, clock, go) = held_up(&place).await;
    let first = git(&place.remote(), &["rev-parse", "main"]);
    git(&place.remote(), &["update-ref", &reference(0), &first]);
    std::fs::write(go, "").expect("written");
    let cancel = CancellationToken::new();
    let goes = stage.run.run(&cancel);
    tokio::pin!(goes);
    timeout(DEADLINE, async {
        tokio::select! {
            _ = &mut goes => panic!("the call's result is reported"),
            _ = clock.sleeper_within(LOST_AFTER_MS) => {}
        }
    })
    .await
    .expect("it waits");
    assert_eq!(git(&place.remote(), &["rev-parse", &reference(0)]), first);
    // It still has the run: what pushed there had not.
    let ended = timeout(DEADLINE, async {
        loop {
            tokio::select! {
                ended = &mut goes => return ended,
                _ = clock.advance_to_sleeper_within(SOON_MS) => {}
            }
        }
    });
    assert!(matches!(ended.await.expect("in time").expect("it works"), Outcome::Completed { .. }));
    assert_eq!(place.pushed(&branch(0), "b.txt"), "late");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_remote_the_result_says_that_it_lacks_the_change_and_later_it_has_it() {
    let place = RemoteFixture::new(Cast::default());
    let (mut stage, clock, go) = held_up(&place).await;
    let away = place.0.folder.path().join("away.git");
    std::fs::rename(place.remote(), &away).expect("moved");
    place.then("true");
    std::fs::write(go, "").expect("written");
    let cancel = CancellationToken::new();
    let mut back = false;
    let ended = timeout(DEADLINE, async {
        loop {
            let results = stage.results(0).await;
            if !back && results.len() == 2 {
                std::fs::rename(&away, place.remote()).expect("moved");
                back = true;
            }
            tokio::select! {
                turn = stage.run.run_turn(&cancel) => {
                    if let provost_harness::TurnState::Done(outcome) = turn.expect("it works") {
                        return outcome;
                    }
                }
                _ = clock.advance_to_sleeper_within(SOON_MS) => {}
            }
        }
    });
    assert!(matches!(ended.await.expect("in time"), Outcome::Completed { .. }));
    let results = stage.results(0).await;
    assert!(results[1].1.contains("What this changed isn't in the remote repository yet"), "{results:?}");
    assert!(!results[2].1.contains("isn't in the remote"), "{results:?}");
    assert_eq!(place.pushed(&branch(0), "b.txt"), "late");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_hooks_that_an_agent_writes_into_the_repository_do_nothing() {
    let place = RemoteFixture::new(Cast::default());
    let hooked = place.0.folder.path().join("hooked");
    let hook = format!("#!/bin/sh\ntouch {}\n", hooked.display());
    place.then(&format!(
        "d=$(git rev-parse --git-common-dir); mkdir -p $d/hooks; for h in pre-push reference-transaction post-index-change; \
         do printf '%s' '{hook}' > $d/hooks/$h; chmod +x $d/hooks/$h; done; \
         git config core.sshCommand 'touch {0}'; git config core.fsmonitor 'touch {0}'; rm -f {0}",
        hooked.display()
    ));
    place.then("echo two > b.txt");
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(place.pushed(&branch(0), "b.txt"), "two");
    assert!(!hooked.exists());
}

/// Plays another run, which removes what isn't needed any more.
async fn another_run_sweeps(place: &RemoteFixture) {
    let (harness, backend) = place.0.harness();
    let policy = RunPolicy { remote: None, ..place.0.policy() };
    let _ = place.0.cast.clone().asks_for(0, 1);
    let run = harness.start(LATER, "another goal", policy).await.expect("it starts");
    let mut stage = Stage { run, backend };
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_keeps_no_worktree_that_has_been_pushed() {
    let place = RemoteFixture::new(Cast::default().writes(0, "b.txt", "two\n"));
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    drop(stage);
    assert!(place.0.tree(0).exists());
    another_run_sweeps(&place).await;
    assert!(!place.0.tree(0).exists());
    assert_eq!(place.pushed(&branch(0), "b.txt"), "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_git_does_not_take_is_told_and_stays_here() {
    let cast = Cast::default().sh(0, "git init -q inner; echo v > inner/v.txt; echo w > w.txt");
    let place = RemoteFixture::new(cast);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let results = stage.results(0).await;
    assert!(
        results[0].1.contains("[Not in the remote repository, and lost if this machine is: "),
        "{results:?}"
    );
    assert!(results[0].1.contains(": inner/]"), "{results:?}");
    let Some(WorktreeLeft::Changed { pushed, unpushed, .. }) = stage.left(0).await else { panic!("changed") };
    assert!(pushed.is_some() && unpushed.is_some_and(|lacks| lacks.contains("inner/")));
    drop(stage);
    another_run_sweeps(&place).await;
    assert!(place.0.tree(0).join("inner/v.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_git_ignores_are_pushed_once_they_are_added() {
    let cast = Cast::default()
        .sh(0, "echo out > .gitignore; mkdir out; echo q > out/q; git add -f out/q; echo y > out/y");
    let place = RemoteFixture::new(cast);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(place.pushed(&branch(0), "out/q"), "q");
    let all = git(&place.remote(), &["ls-tree", "-r", "--name-only", &branch(0)]);
    assert_eq!(all, ".gitignore\na.txt\nout/q");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_on_a_branch_without_a_commit_loses_nothing() {
    let cast = Cast::default().writes(0, "b.txt", "two\n").sh(0, COMMIT);
    let place = RemoteFixture::new(cast.sh(0, "git switch -q --orphan pages; echo p > index.html"));
    place.killed().await;
    std::fs::remove_dir_all(place.0.trees()).expect("removed");
    place.then("ls; git log --format=%s");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let (_, shown) = stage.results(0).await.pop().expect("a result");
    assert!(shown.contains("index.html\nwork\nfirst"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_cannot_be_read_loses_nothing() {
    let place = RemoteFixture::new(
        Cast::default().sh(0, "echo two > b.txt; echo x > $(git rev-parse --git-dir)/index"),
    );
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(place.pushed(&reference(0), "b.txt"), "two");
    let Some(WorktreeLeft::Unknown { why }) = stage.left(0).await else { panic!("it can't be inspected") };
    assert!(why.contains(&format!("its files are pushed: git fetch {} {}", place.url(), branch(0))), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_no_worktree_any_more_is_kept() {
    let place =
        RemoteFixture::new(Cast::default().sh(0, "echo two > b.txt").sh(0, "rm .git; echo three > c.txt"));
    place.killed().await;
    place.then("ls");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let results = stage.results(0).await;
    assert!(results[1].1.contains("isn't in the remote repository yet"), "{results:?}");
    assert!(results[2].1.contains("b.txt") && !results[2].1.contains("c.txt"), "{results:?}");
    let kept = std::fs::read_dir(place.0.trees()).expect("there").filter_map(Result::ok);
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("damaged"));
    let kept = kept.map(|entry| std::fs::read_to_string(entry.path().join("c.txt")).expect("kept"));
    assert_eq!(kept.collect::<Vec<_>>(), ["three\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_that_refuses_the_branch_is_no_success() {
    let place = RemoteFixture::new(Cast::default().writes(0, "b.txt", "two\n"));
    let hook = place.remote().join("hooks/pre-receive");
    let refuses = "#!/bin/sh\nwhile read a b ref; do case $ref in refs/heads/*) echo not here >&2; exit 1;; esac; done\n";
    std::fs::write(&hook, refuses).expect("written");
    git(
        &place.remote(),
        &["config", "core.hooksPath", hook.parent().expect("in one").to_str().expect("text")],
    );
    std::process::Command::new("chmod").arg("+x").arg(&hook).status().expect("it runs");
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let Some(WorktreeLeft::Changed { pushed, unpushed, .. }) = stage.left(0).await else { panic!("changed") };
    assert_eq!(pushed, None);
    assert!(unpushed.is_some_and(|why| why.contains("not here")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_that_it_goes_on_at_another_machine() {
    let place = RemoteFixture::new(Cast::default().writes(0, "b.txt", "two\n"));
    place.killed().await;
    std::fs::remove_dir_all(place.0.trees()).expect("removed");
    place.then("true");
    let mut stage = place.open().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let told = stage.entries(0).await.iter().filter(|entry| {
        matches!(entry, Entry::Conversation(ConversationEntry::UserMessage(said)) if format!("{:?}", said.content).contains("at another machine"))
    }).count();
    assert_eq!(told, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_remote_has_nothing_of_it_any_more_says_so() {
    let place = RemoteFixture::new(Cast::default().writes(0, "b.txt", "two\n"));
    place.killed().await;
    std::fs::remove_dir_all(place.0.trees()).expect("removed");
    let first = git(&place.remote(), &["for-each-ref", "--format=%(refname)"]);
    for name in first.lines() {
        git(&place.remote(), &["update-ref", "-d", name]);
    }
    place.then("true");
    let mut stage = place.open().await;
    let outcome = stage.goes().await;
    assert!(matches!(outcome, Outcome::Paused { why: PauseReason::WorkspaceGone { .. } }), "{outcome:?}");
    stage.run.control("ann").cancel(None).await.expect("posted");
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_of_sha256_are_fetched_too() {
    let place = GitFixture::bare(Cast::default().writes(0, "b.txt", "two\n"));
    let project = place.project();
    git(&project, &["init", "-q", "--object-format=sha256"]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let remote = place.folder.path().canonicalize().expect("there").join("remote.git");
    git(&project, &["clone", "-q", "--bare", ".", remote.to_str().expect("text")]);
    git(&project, &["remote", "add", "origin", "../remote.git"]);
    let place = RemoteFixture(place);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(place.pushed(&branch(0), "b.txt"), "two");
}

async fn refused(folder: &Path, remote: &str) -> RemoteStartError {
    start_remote(folder, remote, RUN, &folder.join("../trees")).await.expect_err("refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_others_could_not_fetch_is_not_started() {
    let place = RemoteFixture::new(Cast::default());
    let project = place.0.project();
    std::fs::create_dir(project.join("inner")).expect("made");
    let inner = refused(&project.join("inner"), "origin").await;
    assert!(matches!(inner, RemoteStartError::NoWorkTree(_)), "{inner}");
    let other = refused(&project, "upstream").await;
    assert!(matches!(other, RemoteStartError::NoRemote { .. }), "{other}");
    let program = refused(&project, "ext::touch /tmp/x").await;
    assert!(matches!(program, RemoteStartError::Address { .. }), "{program}");
    let nowhere = refused(&project, "/nonexistent/shop.git").await;
    assert!(matches!(&nowhere, RemoteStartError::Git { .. }), "{nowhere}");
    assert!(nowhere.to_string().contains("/nonexistent/shop.git"), "{nowhere}");
    let empty = GitFixture::bare(Cast::default());
    git(&empty.project(), &["init", "-q"]);
    let unborn = refused(&empty.project(), "origin").await;
    assert!(matches!(unborn, RemoteStartError::NoCommit(_)), "{unborn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_fetch_a_run_says_why() {
    let place = RemoteFixture::new(Cast::default());
    let policy = place.policy().await;
    let remote = policy.remote.as_ref().expect("it has one");
    fetch_remote(remote, RUN).await.expect("it is there");
    std::fs::remove_dir_all(place.remote()).expect("removed");
    let error = fetch_remote(remote, RUN).await.expect_err("it is gone").to_string();
    assert!(error.contains(&format!("{} can't be fetched: git says: ", place.url())), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_are_not_committed_are_counted() {
    let place = RemoteFixture::new(Cast::default());
    std::fs::write(place.0.project().join("a.txt"), "changed\n").expect("written");
    std::fs::write(place.0.project().join("new.txt"), "new\n").expect("written");
    let started = start_remote(&place.0.project(), "origin", RUN, &place.0.trees()).await.expect("pushed");
    assert_eq!(started.uncommitted, 2);
    assert_eq!(place.pushed(&reference(0), "a.txt"), "one");
}
