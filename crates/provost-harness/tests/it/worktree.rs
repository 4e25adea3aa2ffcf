//! Agents in their own git worktrees, with real repositories, real files, real shells and the real git.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::EmbeddedBackend;
use provost_engine::{Answer, SPAWN_TOOL, spawn_tool};
use provost_event::{
    AgentPolicy, Block, Budget, CallId, ConversationEntry, Entry, Json, LifecycleEntry, ModelFailure,
    ModelPolicy, Outcome, RunId, RunPolicy, Seq, SessionId, StopReason, ToolCall, ToolEntry, ToolStatus,
    Usage, WorktreeEntry, WorktreeLeft,
};
use provost_harness::{
    AgentHarness, Clock, DeltaSink, Harness, HarnessDeps, Log as _, Model, ModelRequest, Models, SystemClock,
};
use provost_sqlite::SqliteStore;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const RUN: RunId = RunId::from_entropy(606);
pub(crate) const LATER: RunId = RunId::from_entropy(607);
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
const MODEL: &str = "script:worktree";
/// Commits all changes.
pub(crate) const COMMIT: &str =
    "git add -A && git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm work";

// ---- the agents ---------------------------------------------------------------------------------------------------

/// The actions of each agent, one model answer after the other; after them it claims to be done.
#[derive(Clone, Default)]
pub(crate) struct Cast(pub(crate) Arc<Mutex<HashMap<u32, Vec<Vec<Block>>>>>);

impl Cast {
    pub(crate) fn does(self, agent: u32, calls: &[(&str, serde_json::Value)]) -> Self {
        let answer = calls.iter().enumerate().map(|(number, (tool, input))| {
            let mut all = self.0.lock().unwrap();
            let known = all.entry(agent).or_default().len();
            Block::ToolCall(ToolCall {
                id: CallId::from(format!("c{agent}-{known}-{number}").as_str()),
                name: (*tool).to_owned(),
                input: Json::parse(input.to_string()).unwrap(),
                malformed: None,
            })
        });
        let answer = answer.collect();
        self.0.lock().unwrap().entry(agent).or_default().push(answer);
        self
    }

    pub(crate) fn asks_for(self, agent: u32, others: usize) -> Self {
        let call = (SPAWN_TOOL, json!({"goal": "work", "isolation": "worktree"}));
        self.does(agent, &vec![call; others])
    }

    pub(crate) fn sh(self, agent: u32, command: &str) -> Self {
        self.does(agent, &[("shell", json!({ "command": command }))])
    }

    pub(crate) fn writes(self, agent: u32, path: &str, content: &str) -> Self {
        self.does(agent, &[("write_file", json!({"path": path, "content": content}))])
    }
}

#[async_trait]
impl Model for Cast {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let next = {
            let mut all = self.0.lock().unwrap();
            let left = all.entry(request.session.agent).or_default();
            if left.is_empty() { vec![Block::Text("done".to_owned())] } else { left.remove(0) }
        };
        if let [Block::Text(text)] = next.as_slice()
            && text == "stay"
        {
            cancel.cancelled().await;
        }
        let stop = match next.first() {
            Some(Block::ToolCall(_)) => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        Ok(Answer { cost: None, content: next, usage: Usage::default(), model: "m".to_owned(), stop })
    }
}

// ---- the repository and the run -----------------------------------------------------------------------------------

/// A git without the user's settings.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .output()
        .expect("git runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

pub(crate) struct GitFixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) cast: Cast,
}

impl GitFixture {
    /// A folder that is no repository yet.
    pub(crate) fn bare(cast: Cast) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("project")).expect("made");
        Self { folder, cast }
    }

    /// A repository with one commit.
    pub(crate) fn new(cast: Cast) -> Self {
        let place = Self::bare(cast);
        let project = place.project();
        git(&project, &["init", "-q"]);
        std::fs::write(project.join("a.txt"), "one\n").expect("written");
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "first"]);
        place
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("there").join("project")
    }

    pub(crate) fn trees(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("there").join("trees")
    }

    pub(crate) fn tree(&self, agent: u32) -> PathBuf {
        self.trees().join(format!("{RUN}-{agent}"))
    }

    fn branches(&self) -> String {
        git(&self.project(), &["for-each-ref", "--format=%(refname:short)", "refs/heads"])
    }

    pub(crate) fn policy(&self) -> RunPolicy {
        let tools = provost_tools::builtin();
        let mut tools =
            ["shell", "write_file", "read_file"].map(|name| tools.get(name).unwrap().spec().clone()).to_vec();
        tools.push(spawn_tool());
        RunPolicy {
            spawn: provost_event::SpawnBudget { max_depth: 4, ..Default::default() },
            worktrees: Some(self.trees()),
            ..RunPolicy::new(AgentPolicy {
                system_prompt: "Work.".to_owned(),
                tools,
                ..AgentPolicy::new(ModelPolicy::new(MODEL, 1_000), self.project())
            })
        }
    }

    pub(crate) fn harness(&self) -> (AgentHarness, Arc<EmbeddedBackend>) {
        self.harness_by(Arc::new(SystemClock))
    }

    /// A harness with a clock of its own; the log's stays the machine's.
    pub(crate) fn harness_by(&self, clock: Arc<dyn Clock>) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let store = SqliteStore::open(self.folder.path().join("log.db")).expect("a store");
        let backend = Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock)).expect("a backend"));
        let models = Models::new().with(MODEL, Arc::new(self.cast.clone()));
        let deps = HarnessDeps::new(backend.clone(), models, provost_tools::builtin());
        (AgentHarness::new(HarnessDeps { clock, ..deps }), backend)
    }

    async fn start(&self) -> Stage {
        self.start_with(self.policy()).await
    }

    async fn start_with(&self, policy: RunPolicy) -> Stage {
        let (harness, backend) = self.harness();
        let run = harness.start(RUN, "the goal", policy).await.expect("it starts");
        Stage { run, backend }
    }

    /// Plays a run to its end; the results of the root's calls.
    async fn plays(&self) -> Vec<(ToolStatus, String)> {
        let mut stage = self.start().await;
        assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
        stage.results(0).await
    }
}

pub(crate) struct Stage {
    pub(crate) run: Harness,
    pub(crate) backend: Arc<EmbeddedBackend>,
}

impl Stage {
    pub(crate) async fn goes(&mut self) -> Outcome {
        let cancel = CancellationToken::new();
        timeout(DEADLINE, self.run.run(&cancel)).await.expect("it comes to an end").expect("it works")
    }

    pub(crate) async fn entries(&self, agent: u32) -> Vec<Entry> {
        let session = SessionId { run: self.run.run_id(), agent };
        let log = self.backend.read(session.into(), Seq::START, 10_000).await.expect("a log");
        log.iter().map(|record| record.entry.clone()).collect()
    }

    pub(crate) async fn results(&self, agent: u32) -> Vec<(ToolStatus, String)> {
        let results = self.entries(agent).await.into_iter().filter_map(|entry| match entry {
            Entry::Tool(ToolEntry::Finished(done)) => Some((done.status, done.output)),
            _ => None,
        });
        results.collect()
    }

    async fn ended(&self, agent: u32) {
        let look = async {
            while !matches!(
                self.entries(agent).await.last(),
                Some(Entry::Lifecycle(LifecycleEntry::Ended(_)))
            ) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(DEADLINE, look).await.expect("it ends");
    }

    pub(crate) async fn left(&self, agent: u32) -> Option<WorktreeLeft> {
        self.entries(agent).await.into_iter().find_map(|entry| match entry {
            Entry::Worktree(WorktreeEntry::Found(found)) => Some(found.left),
            _ => None,
        })
    }
}

pub(crate) async fn until(what: impl Fn() -> bool) {
    let look = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(DEADLINE, look).await.expect("it happens");
}

/// A checkout that blocks on a file's content: a pipe without a writer is in its place.
struct Slow {
    began: PathBuf,
    object: PathBuf,
    kept: PathBuf,
}

impl Slow {
    fn checkout(place: &GitFixture) -> Self {
        let project = place.project();
        let id = git(&project, &["rev-parse", "HEAD:a.txt"]);
        let object = project.join(".git/objects").join(&id[..2]).join(&id[2..]);
        let kept = place.folder.path().join("kept");
        std::fs::rename(&object, &kept).expect("moved");
        assert!(Command::new("mkfifo").arg(&object).status().expect("it runs").success());
        Self { began: place.tree(1).join(".git"), object, kept }
    }

    fn go(self) {
        std::fs::rename(self.kept, self.object).expect("moved");
    }
}

async fn refused(place: &GitFixture) -> String {
    let results = place.plays().await;
    assert_eq!(results[0].0, ToolStatus::Error, "{results:?}");
    assert!(results[0].1.contains("the agent's workspace can't be made: "), "{}", results[0].1);
    assert!(!place.tree(1).exists(), "something is left");
    results[0].1.clone()
}

// ---- what happens -------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_commits_is_on_its_branch_and_nowhere_else() {
    let cast = Cast::default().asks_for(0, 1).writes(1, "b.txt", "two\n").sh(1, COMMIT);
    let place = GitFixture::new(cast);
    let results = place.plays().await;
    assert_eq!(results[0].0, ToolStatus::Ok);
    let path = place.tree(1);
    let wanted = format!(
        "done\n\n[Its work is in the git worktree {}, branch provost/{RUN}-1. Commits: 1 (1 file changed, 1 \
         insertion(+)); files with changes that aren't committed: 0.",
        path.display()
    );
    assert!(results[0].1.starts_with(&wanted), "{}", results[0].1);
    assert!(!place.project().join("b.txt").exists());
    assert_eq!(std::fs::read_to_string(path.join("b.txt")).expect("it stays"), "two\n");
    git(&place.project(), &["merge", "-q", &format!("provost/{RUN}-1")]);
    assert!(place.project().join("b.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_side_by_side_dont_see_each_other() {
    let mut cast = Cast::default().asks_for(0, 6).sh(0, "cat a.txt; git status --porcelain");
    for agent in 1..=6 {
        cast = cast.writes(agent, "a.txt", &format!("{agent}\n")).sh(agent, "cat a.txt").sh(agent, COMMIT);
    }
    let place = GitFixture::new(cast);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    for agent in 1..=6 {
        let results = stage.results(agent).await;
        assert_eq!(results.len(), 3, "{agent}: {results:?} {:?}", stage.results(0).await);
        let (_, shown) = &results[1];
        assert!(shown.lines().any(|line| line == agent.to_string()), "{shown}");
        let branch = format!("provost/{RUN}-{agent}:a.txt");
        assert_eq!(git(&place.project(), &["show", &branch]), agent.to_string());
    }
    let of_root = stage.results(0).await;
    assert_eq!(of_root.len(), 7);
    assert!(of_root[6].1.lines().any(|line| line == "one") && !of_root[6].1.contains("a.txt"), "{of_root:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_nothing_was_done_in_is_removed() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1).sh(1, "cat a.txt"));
    std::fs::write(place.project().join(".gitignore"), "out\n").expect("written");
    let results = place.plays().await;
    assert!(
        results[0].1.contains("It changed nothing in its git worktree, which is removed."),
        "{}",
        results[0].1
    );
    assert!(!place.tree(1).exists());
    assert_eq!(place.branches(), "main");
    assert_eq!(git(&place.project(), &["worktree", "list"]).lines().count(), 1);
    assert!(results[0].1.contains("weren't committed when it began: 1."), "{}", results[0].1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_isnt_committed_is_kept_too() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1).writes(1, "new.txt", "n\n"));
    let results = place.plays().await;
    assert!(
        results[0].1.contains("Commits: 0 (no file differs); files with changes that aren't committed: 1."),
        "{}",
        results[0].1
    );
    assert!(place.tree(1).join("new.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_tools_stay_in_the_worktree() {
    let place = GitFixture::new(Cast::default());
    let outside = place.project().join("a.txt");
    let cast = place.cast.clone().asks_for(0, 1);
    let cast = cast.does(1, &[("write_file", json!({"path": outside, "content": "x"}))]);
    let _ = cast.does(1, &[("read_file", json!({"path": "../../project/a.txt"}))]);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let results = stage.results(1).await;
    assert!(results.iter().all(|(status, _)| status.is_error()), "{results:?}");
    assert_eq!(std::fs::read_to_string(outside).expect("there"), "one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_agent_begins_with_what_it_has_committed() {
    let cast = Cast::default().asks_for(0, 1).writes(1, "b.txt", "two\n").sh(1, COMMIT).asks_for(1, 1);
    let cast = cast.sh(2, "cat b.txt").writes(2, "c.txt", "three\n").sh(2, COMMIT);
    let merge = format!("git merge -q provost/{RUN}-2 && ls");
    let place = GitFixture::new(cast.sh(1, &merge));
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert!(stage.results(2).await[0].1.contains("two"));
    assert!(stage.results(1).await[3].1.contains("c.txt"));
    assert!(stage.results(0).await[0].1.contains("Commits: 2 (2 files changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_the_repository_dont_run() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let (hook, ran) = (place.project().join(".git/hooks/post-checkout"), place.folder.path().join("ran"));
    std::fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", ran.display())).expect("written");
    let _ = Command::new("chmod").arg("+x").arg(&hook).status();
    git(&place.project(), &["checkout", "-q", "-b", "other"]);
    assert!(ran.exists(), "the hook works");
    std::fs::remove_file(&ran).expect("removed");
    place.plays().await;
    assert!(!ran.exists());
}

// ---- what goes wrong ----------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn without_a_repository_it_says_so() {
    let said = refused(&GitFixture::bare(Cast::default().asks_for(0, 1))).await;
    assert!(said.contains("is no git work tree") && said.contains("`git init`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_commit_it_says_so() {
    let place = GitFixture::bare(Cast::default().asks_for(0, 1));
    git(&place.project(), &["init", "-q"]);
    let said = refused(&place).await;
    assert!(said.contains("no commit yet") && said.contains("commit something first"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_folder_inside_of_a_repository_it_says_so() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let mut policy = place.policy();
    policy.agent.workspace = place.project().join("sub");
    std::fs::create_dir(&policy.agent.workspace).expect("made");
    let mut stage = place.start_with(policy).await;
    stage.goes().await;
    let said = stage.results(0).await.remove(0).1;
    assert!(said.contains("inside of the git work tree") && said.contains("top folder"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_made_inside_of_the_project() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let policy = RunPolicy { worktrees: Some(place.project().join("trees")), ..place.policy() };
    let mut stage = place.start_with(policy).await;
    stage.goes().await;
    let said = stage.results(0).await.remove(0).1;
    assert!(said.contains("would lie inside of the git work tree"), "{said}");
    assert!(!place.project().join("trees").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_folder_cant_be_made_it_says_so() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    std::fs::write(place.trees(), "a file").expect("written");
    let said = refused(&place).await;
    assert!(said.contains("can't be made: "), "{said}");
    assert_eq!(place.branches(), "main");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_checkout_that_fails_nothing_is_left() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let project = place.project();
    let id = git(&project, &["rev-parse", "HEAD:a.txt"]);
    std::fs::remove_file(project.join(".git/objects").join(&id[..2]).join(&id[2..])).expect("removed");
    let said = refused(&place).await;
    assert!(said.contains("it can't be made at") && said.contains(&id), "{said}");
    assert_eq!(place.branches(), "main");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_of_that_name_with_commits_of_its_own_stays_as_it_is() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let (project, branch) = (place.project(), format!("provost/{RUN}-1"));
    git(&project, &["checkout", "-q", "-b", &branch]);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    let tip = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "-q", "main"]);
    let said = refused(&place).await;
    assert!(said.contains("rename or delete it"), "{said}");
    assert_eq!(git(&project, &["rev-parse", &branch]), tip);
}

#[test]
fn without_git_it_says_so() {
    const AGAIN: &str = "PROVOST_TEST_WITHOUT_GIT";
    if std::env::var_os(AGAIN).is_none() {
        let this = std::env::current_exe().expect("a program");
        let test = "worktree::without_git_it_says_so";
        let again =
            Command::new(this).args(["--exact", test]).env("PATH", "/nowhere").env(AGAIN, "1").status();
        assert!(again.expect("it runs").success());
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let place = GitFixture::bare(Cast::default().asks_for(0, 1));
    // What a folder needs to be a repository for git.
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(place.project().join(".git").join(folder)).expect("made");
    }
    std::fs::write(place.project().join(".git/HEAD"), "ref: refs/heads/main\n").expect("written");
    let said = runtime.block_on(refused(&place));
    assert!(said.contains("the program `git` isn't there: install it"), "{said}");
}

// ---- who is interrupted -------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_in_the_middle_it_stops_and_nothing_is_left() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    let slow = Slow::checkout(&place);
    let mut stage = place.start().await;
    until(|| slow.began.exists()).await;
    stage.run.control("ann").cancel(None).await.expect("posted");
    let outcome = stage.goes().await;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome}");
    assert!(!place.tree(1).exists());
    assert_eq!(place.branches(), "main");
    assert_eq!(git(&place.project(), &["worktree", "list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_in_the_middle_is_followed_by_one_that_makes_it_whole() {
    let place =
        GitFixture::new(Cast::default().asks_for(0, 1).sh(1, "cat a.txt").writes(1, "b.txt", "two\n"));
    let slow = Slow::checkout(&place);
    let stage = place.start().await;
    until(|| slow.began.exists()).await;
    drop(stage);
    slow.go();
    let (harness, backend) = place.harness();
    let mut stage = Stage { run: harness.open(RUN).await.expect("it is free"), backend };
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    let results = stage.results(1).await;
    assert!(results.first().is_some_and(|done| done.1.contains("one")), "{:?}", stage.results(0).await);
    let made = stage
        .entries(1)
        .await
        .into_iter()
        .filter(|entry| matches!(entry, Entry::Worktree(WorktreeEntry::Made(_))));
    assert_eq!(made.count(), 1);
    assert!(place.tree(1).join("b.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_an_attempt_before_has_made_is_taken_as_it_is() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1));
    std::fs::create_dir(place.trees()).expect("made");
    let path = place.tree(1);
    let branch = format!("provost/{RUN}-1");
    git(&place.project(), &["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap(), "HEAD"]);
    let marked = path.join("untracked");
    std::fs::write(&marked, "").expect("written");
    let results = place.plays().await;
    assert_eq!(results[0].0, ToolStatus::Ok, "{results:?}");
    assert!(marked.exists(), "it was not made anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_half_made_is_made_anew() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1).sh(1, "cat a.txt"));
    std::fs::create_dir(place.trees()).expect("made");
    let path = place.tree(1);
    let branch = format!("provost/{RUN}-1");
    git(&place.project(), &["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap(), "HEAD"]);
    // The state of git's checkout in progress.
    std::fs::remove_file(path.join("a.txt")).expect("removed");
    let data = place.project().join(".git/worktrees").join(format!("{RUN}-1"));
    std::fs::write(data.join("locked"), "initializing").expect("written");
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert!(stage.results(1).await[0].1.contains("one"), "{:?}", stage.results(1).await);
    assert!(!path.exists(), "nothing was done to it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_git_that_was_killed_had_begun_to_record_keeps_no_other_from_being_made() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1).sh(1, "cat a.txt"));
    let records = place.project().join(".git/worktrees");
    for name in [format!("{RUN}-1"), format!("{LATER}-4")] {
        let record = records.join(name);
        std::fs::create_dir_all(&record).expect("made");
        std::fs::write(record.join("gitdir"), "/gone/.git\n").expect("written");
        std::fs::write(record.join("commondir"), "").expect("written");
    }
    let results = place.plays().await;
    assert_eq!(results[0].0, ToolStatus::Ok, "{results:?}");
    assert_eq!(std::fs::read_dir(records).expect("there").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_gone_already_counts_as_removed() {
    let place = GitFixture::new(Cast::default());
    let path = place.tree(1);
    let remove = format!("cd / && rm -rf '{}'", path.display());
    let _ = place.cast.clone().asks_for(0, 1).sh(1, &remove);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert_eq!(stage.left(1).await, Some(WorktreeLeft::Removed));
    assert_eq!(place.branches(), "main");
    assert_eq!(git(&place.project(), &["worktree", "list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_without_an_owner_is_removed_when_the_next_is_made() {
    let place = GitFixture::new(Cast::default().asks_for(0, 2).writes(2, "b.txt", "two\n"));
    {
        let mut all = place.cast.0.lock().unwrap();
        let stay = vec![Block::Text("stay".to_owned())];
        all.entry(1).or_default().push(stay.clone());
        all.entry(2).or_default().push(stay);
    }
    let mut stage = place.start().await;
    let (one, two) = (place.tree(1), place.tree(2).join("b.txt"));
    until(|| one.join("a.txt").exists() && two.exists()).await;
    until(|| place.cast.0.lock().unwrap().values().all(Vec::is_empty)).await;
    stage.run.control("ann").pause(None).await.expect("posted");
    assert!(matches!(stage.goes().await, Outcome::Paused { .. }));
    stage.run.control("ann").cancel(None).await.expect("posted");
    stage.ended(1).await;
    stage.ended(2).await;
    assert!(one.exists(), "it was not inspected");
    drop(stage);
    let _ = place.cast.clone().asks_for(0, 1);
    let (harness, backend) = place.harness();
    let run = harness.start(LATER, "another goal", place.policy()).await.expect("it starts");
    let mut stage = Stage { run, backend };
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert!(!one.exists(), "nothing was done in it");
    assert!(two.exists(), "a user may want that");
    assert_eq!(place.branches(), format!("main\nprovost/{RUN}-2"));
}

/// A suspended agent with one commit in its worktree and one uncommitted change; its process is gone.
async fn suspended() -> GitFixture {
    let place = GitFixture::new(
        Cast::default()
            .asks_for(0, 1)
            .writes(1, "b.txt", "two\n")
            .sh(1, COMMIT)
            .writes(1, "c.txt", "three\n"),
    );
    place.cast.0.lock().unwrap().entry(1).or_default().push(vec![Block::Text("stay".to_owned())]);
    let mut stage = place.start().await;
    let last = place.tree(1).join("c.txt");
    until(|| last.exists()).await;
    until(|| place.cast.0.lock().unwrap().values().all(Vec::is_empty)).await;
    stage.run.control("ann").pause(None).await.expect("posted");
    assert!(matches!(stage.goes().await, Outcome::Paused { .. }));
    drop(stage);
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_gone_is_made_again_with_what_was_committed_and_the_agent_is_told() {
    for branch_is_gone in [false, true] {
        let place = suspended().await;
        let path = place.tree(1);
        std::fs::remove_dir_all(&path).expect("removed");
        if branch_is_gone {
            git(&place.project(), &["worktree", "prune"]);
            git(&place.project(), &["branch", "-D", &format!("provost/{RUN}-1")]);
        }
        let _ = place.cast.clone().sh(1, "cat a.txt b.txt; ls");
        let (harness, backend) = place.harness();
        let mut stage = Stage { run: harness.open(RUN).await.expect("it is free"), backend };
        let remade = stage.run.remade_worktrees();
        assert_eq!(remade.iter().map(|one| (one.agent, &one.path)).collect::<Vec<_>>(), [(1, &path)]);
        stage.run.resume("ann", Budget::default(), None).await.expect("posted");
        assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
        let seen = stage.results(1).await.pop().expect("a result").1;
        assert!(seen.contains("one") && !seen.contains("c.txt"), "{seen}");
        assert_eq!(seen.contains("two"), !branch_is_gone, "{seen}");
        let told = stage.entries(1).await.into_iter().any(|entry| match entry {
            Entry::Conversation(ConversationEntry::UserMessage(said)) => {
                format!("{said:?}").contains("was gone and was made again")
            }
            _ => false,
        });
        assert!(told, "the agent knows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_gone_for_good_is_refused_by_name_and_nothing_goes_on() {
    let place = suspended().await;
    let path = place.tree(1);
    std::fs::remove_dir_all(&path).expect("removed");
    let elsewhere = place.folder.path().join("elsewhere");
    std::fs::rename(place.project(), &elsewhere).expect("moved");
    let (harness, backend) = place.harness();
    let before = backend.read(RUN.into(), Seq::START, 10_000).await.expect("a log").len();
    let Err(error) = harness.open(RUN).await else { panic!("its worktree is gone") };
    let words = error.to_string();
    let begin = format!("the worktree {} of agent 1 is gone and can't be made again: ", path.display());
    assert!(words.starts_with(&begin) && words.ends_with("put it back, or cancel the agent"), "{words}");
    assert_eq!(backend.read(RUN.into(), Seq::START, 10_000).await.expect("a log").len(), before);
    std::fs::rename(&elsewhere, place.project()).expect("moved");
    assert!(harness.open(RUN).await.is_ok(), "the remedy helps");
}

// ---- what a repository names ----------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
async fn a_worktree_is_made_looked_at_and_removed_without_starting_what_the_repository_names() {
    let place = GitFixture::new(Cast::default().asks_for(0, 2).writes(2, "b.txt", "two\n"));
    let project = place.project();
    let canary = crate::git_deaf::Canary::new(place.folder.path());
    canary.set_everywhere(&project);
    std::fs::write(project.join("a.txt"), "changed\n").expect("written");
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert!(matches!(stage.left(2).await, Some(WorktreeLeft::Changed { uncommitted: 1, .. })));
    assert!(!place.tree(1).exists(), "nothing was done in it");
    canary.was_silent();
    // The trap works: plain git triggers it.
    std::fs::remove_file(place.tree(2).join("a.txt")).expect("removed");
    git(&place.tree(2), &["reset", "--hard", "-q"]);
    canary.has_sung(&["filter.all.smudge", "core.fsmonitor", "post-index-change"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_filter_would_make_are_as_they_are_stored_and_the_agent_is_told() {
    let place = GitFixture::new(Cast::default().asks_for(0, 1).sh(1, "cat large.bin; ls -A"));
    let project = place.project();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    std::fs::write(project.join("large.bin"), pointer).expect("written");
    std::fs::write(project.join("plain.txt"), "plain\n").expect("written");
    std::fs::write(
        project.join(".gitattributes"),
        "*.bin filter=lfs diff=lfs merge=lfs -text\nplain.txt -filter\n",
    )
    .expect("written");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "large"]);
    git(&project, &["config", "filter.lfs.smudge", "echo filtered"]);
    let mut stage = place.start().await;
    assert!(matches!(stage.goes().await, Outcome::Completed { .. }));
    assert!(stage.results(1).await[0].1.contains("version https://git-lfs"), "{:?}", stage.results(1).await);
    let entries = stage.entries(1).await;
    let made = entries.iter().find_map(|entry| match entry {
        Entry::Worktree(WorktreeEntry::Made(made)) => Some(made.unfiltered),
        _ => None,
    });
    assert_eq!(made, Some(1));
    let told =
        entries.iter().any(|entry| format!("{entry:?}").contains("because no filter of git was run: 1."));
    assert!(told, "{entries:#?}");
}
