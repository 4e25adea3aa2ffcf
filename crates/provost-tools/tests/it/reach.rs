//! What file tools reach besides the workspace, and what they never reach.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::ToolStatus;
use provost_harness::{FileReach, MaskedPaths, ToolContext, ToolOutput};
use serde_json::{Value, json};

use crate::fixture::{Fixture, call_in, link};

/// A workspace, a folder beside it, and a home folder with credentials.
fn scene() -> Fixture {
    let fixture = Fixture::new().file("a.txt", "inside\n");
    for (path, content) in [
        ("shared/lib.txt", "shared\n"),
        ("elsewhere/one.txt", "one\n"),
        ("elsewhere/two.txt", "two\n"),
        ("home/.ssh/id_ed25519", "private\n"),
        ("home/.aws/credentials", "private\n"),
        ("home/notes.txt", "notes private\n"),
    ] {
        let path = fixture.outside().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    fixture
}

fn reaching(fixture: &Fixture, roots: &[&str], granted: Option<&str>) -> ToolContext {
    let outside = |path: &str| fixture.outside().join(path);
    let masked = MaskedPaths::of_home(Some(&outside("home")));
    let roots = roots.iter().map(|root| outside(root)).collect();
    let reach = FileReach { roots, granted: granted.map(outside), masked: Arc::new(masked) };
    ToolContext { reach, ..fixture.context() }
}

async fn call(context: &ToolContext, tool: &str, input: Value) -> ToolOutput {
    call_in(context, tool, input).await
}

#[tokio::test]
async fn the_roots_are_read_searched_listed_and_written() {
    let fixture = scene();
    let context = reaching(&fixture, &["shared", "not/there"], None);
    let shared = fixture.outside().join("shared");
    let file = shared.join("lib.txt");
    let read = call(&context, "read_file", json!({ "path": file })).await;
    assert!(read.text.starts_with("1\tshared\n"), "{}", read.text);
    let relative = call(&context, "read_file", json!({ "path": "../shared/lib.txt" })).await;
    assert_eq!(relative.status, ToolStatus::Ok, "{}", relative.text);
    let found = call(&context, "search", json!({ "pattern": "shared", "path": shared })).await;
    assert!(found.text.starts_with(&format!("{}:1:shared\n", file.display())), "{}", found.text);
    let listed = call(&context, "list_dir", json!({ "path": shared })).await;
    assert!(listed.text.starts_with("lib.txt  7 B\n"), "{}", listed.text);
    let written =
        call(&context, "write_file", json!({ "path": shared.join("new/x.txt"), "content": "x" })).await;
    assert_eq!(written.status, ToolStatus::Ok, "{}", written.text);
    let edit = json!({ "path": file, "old_text": "shared", "new_text": "changed" });
    assert_eq!(call(&context, "edit_file", edit).await.status, ToolStatus::Ok);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "changed\n");
}

#[tokio::test]
async fn what_a_call_may_read_elsewhere_is_read_and_nothing_beside_it() {
    let fixture = scene();
    let context = reaching(&fixture, &[], Some("elsewhere/one.txt"));
    let path = |name: &str| fixture.outside().join("elsewhere").join(name);
    let read = call(&context, "read_file", json!({ "path": path("one.txt") })).await;
    assert!(read.text.starts_with("1\tone\n"), "{}", read.text);
    let beside = call(&context, "read_file", json!({ "path": path("two.txt") })).await;
    assert_eq!(beside.status, ToolStatus::Error, "{}", beside.text);
    for (tool, input) in [
        ("write_file", json!({ "path": path("one.txt"), "content": "x" })),
        ("edit_file", json!({ "path": path("one.txt"), "old_text": "one", "new_text": "x" })),
    ] {
        let output = call(&context, tool, input).await;
        assert!(output.text.contains("only if its folder is in `roots` of [tools]"), "{}", output.text);
    }
    assert_eq!(std::fs::read_to_string(path("one.txt")).unwrap(), "one\n");
    let context = reaching(&fixture, &[], Some("elsewhere"));
    let found =
        call(&context, "search", json!({ "pattern": "o", "path": fixture.outside().join("elsewhere") }))
            .await;
    assert!(found.text.ends_with("[2 matching lines in 2 files; 2 files searched]"), "{}", found.text);
}

#[tokio::test]
async fn a_link_from_there_to_somewhere_else_is_refused_and_its_target_is_told() {
    let fixture = scene();
    link("two.txt", fixture.outside().join("elsewhere/link"));
    let context = reaching(&fixture, &[], Some("elsewhere/link"));
    let output =
        call(&context, "read_file", json!({ "path": fixture.outside().join("elsewhere/link") })).await;
    let told = format!(
        "a link leads to `{}`: name that path itself",
        fixture.outside().join("elsewhere/two.txt").display()
    );
    assert!(output.status == ToolStatus::Error && output.text.contains(&told), "{}", output.text);
}

#[tokio::test]
async fn a_refusal_names_the_way() {
    let fixture = scene();
    let context = reaching(&fixture, &[], None);
    let output = call(&context, "read_file", json!({ "path": "../shared/lib.txt" })).await;
    let told = "use a path inside it; elsewhere, reading needs a permission with the path, or its folder in `roots` of \
                [tools]";
    assert!(output.text.contains(told), "{}", output.text);
}

/// Masked files are hidden from every file tool, whatever reaches them.
#[tokio::test]
async fn masked_paths_are_hidden_also_where_roots_grants_and_links_lead_to_them() {
    let fixture = scene();
    let home = fixture.outside().join("home");
    link(home.join(".ssh/id_ed25519"), fixture.path("key"));
    link(home.join(".ssh"), fixture.path("keys"));
    link(&home, fixture.outside().join("alias"));
    let of_home = |path: &str| home.join(path);
    let paths: Vec<PathBuf> = vec![
        of_home(".ssh/id_ed25519"),
        of_home(".aws/credentials"),
        of_home(".SSH/id_ed25519"),
        of_home("../home/.ssh/new"),
        fixture.outside().join("alias/.ssh/id_ed25519"),
        fixture.path("key"),
        fixture.path("keys/id_ed25519"),
    ];
    for context in [
        reaching(&fixture, &["home"], None),
        reaching(&fixture, &[], Some("home")),
        reaching(&fixture, &["home/.ssh", "home/.aws"], Some("home/.ssh/id_ed25519")),
    ] {
        for path in &paths {
            for (tool, input) in [
                ("read_file", json!({ "path": path })),
                ("search", json!({ "path": path, "pattern": "private" })),
                ("list_dir", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "x" })),
                ("edit_file", json!({ "path": path, "old_text": "private", "new_text": "x" })),
            ] {
                let output = call(&context, tool, input).await;
                let why = output.text.contains("hidden from file tools");
                assert!(
                    output.status == ToolStatus::Error && why,
                    "{tool} {}: {}",
                    path.display(),
                    output.text
                );
            }
        }
    }
    assert_eq!(std::fs::read_to_string(of_home(".ssh/id_ed25519")).unwrap(), "private\n");
}

#[tokio::test]
async fn a_walk_passes_masked_folders_by() {
    let fixture = scene();
    let context = reaching(&fixture, &["home"], None);
    let home = fixture.outside().join("home");
    let found = call(&context, "search", json!({ "pattern": "private", "path": home })).await;
    assert!(found.text.contains("notes.txt:1:") && !found.text.contains("id_ed25519"), "{}", found.text);
    assert!(found.text.ends_with("[1 matching line in 1 file; 1 file searched]"), "{}", found.text);
    let listed = call(&context, "list_dir", json!({ "path": home, "depth": 4 })).await;
    assert!(!listed.text.contains("id_ed25519") && !listed.text.contains("credentials"), "{}", listed.text);
}

#[tokio::test]
async fn the_state_of_processes_is_hidden() {
    let fixture = scene();
    let reach = FileReach { roots: vec![PathBuf::from("/proc")], ..FileReach::default() };
    let context = ToolContext { reach, ..fixture.context() };
    for path in ["/proc/self/environ", "/proc/1/environ", "/proc/thread-self/environ"] {
        let output = call(&context, "read_file", json!({ "path": path })).await;
        assert!(output.text.contains("hidden from file tools"), "{path}: {}", output.text);
    }
}

#[test]
fn a_masked_folder_that_holds_the_workspace_hides_nothing_of_it() {
    let masked = MaskedPaths::default().and([PathBuf::from("/state/provost")]);
    let tree = Path::new("/state/provost/worktrees/one");
    assert!(!masked.hides(&tree.join("src/a.rs"), tree));
    assert!(masked.hides(Path::new("/state/provost/provost.db"), tree));
    assert!(masked.hides(Path::new("/state/provost/worktrees/two/a.rs"), tree));
    assert!(masked.hides(&tree.join("src/a.rs"), Path::new("/work")));
}
