//! The example of a goal that is verified, and what the README says of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scene;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A line without what differs from run to run: how long something took, and the folder.
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
