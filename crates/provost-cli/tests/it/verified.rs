//! The example of a verified goal, and its copy in the README.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scene;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A line without the parts that differ from run to run: durations and the folder.
fn steady(line: &str, folder: &Path) -> String {
    let line = line.replace(&folder.display().to_string(), "/tmp/verified");
    let words =
        line.split_inclusive(' ').filter(|word| !word.trim_end().trim_matches(['(', ')']).ends_with("ms"));
    words.collect::<String>().trim_end().to_owned()
}

#[test]
fn the_readme_shows_the_example_as_it_runs() {
    let scene = Scene::new();
    let project = repository().join("examples/verified/project");
    for file in fs::read_dir(project).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), scene.path("work").join(file.file_name())).unwrap();
    }
    let done = scene.provost(&["run", "Give greet.sh an option --name."]);
    assert_eq!(done.status, 0, "{done:?}");
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let recorded = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let recorded = recorded.skip_while(|line| !line.starts_with("agent: `greet.sh` takes"));
    let recorded = recorded.take_while(|line| !line.starts_with("completed"));
    let folder = scene.path("work").canonicalize().unwrap();
    let shown = done.stderr.lines().map(|line| steady(line, &folder)).collect::<Vec<_>>();
    let recorded = recorded.map(|line| steady(line, &folder)).collect::<Vec<_>>();
    assert!(
        recorded.iter().filter(|line| line.starts_with("goal: the goal is")).count() == 3,
        "{recorded:?}"
    );
    for line in recorded {
        assert!(shown.contains(&line), "the README has `{line}`, and the run doesn't:\n{}", done.stderr);
    }
}

/// A key without a known shape, so that only its exact text can be masked.
const KEY: &str = "quiet-otter-lamp-77";

#[test]
fn a_judge_is_shown_no_key_of_another_provider() {
    let scene = Scene::new();
    scene.write(
        "work/provost.toml",
        "[agent]\nmodel = \"script:agent.yaml\"\n[goal]\ncondition = \"It was said.\"\njudge = \"script:judge.yaml\"\n",
    );
    let call = format!(
        "answers:\n  - tools: [{{ shell: {{ command: \"echo it is {KEY} indeed\" }} }}]\n  - text: The key is {KEY}.\n"
    );
    scene.write("work/agent.yaml", &call);
    let verdict = "verdicts:\n  - expect: { contains: indeed, not_contains: KEY }\n    achieved: true\n    reasoning: It was.\n";
    scene.write("work/judge.yaml", &verdict.replace("KEY", KEY));
    let ran = scene.command(&["run", "Say it."]).env("ANTHROPIC_API_KEY", KEY).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("verified: the goal is reached"), "{told}");
}
