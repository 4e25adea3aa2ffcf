//! The architecture's rules that a compiler can't check: which crate may depend on which, and what each must never
//! contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's crates that each crate may depend on. Dependencies point down; crates of one layer don't depend
/// on each other.
const LAYERS: &[(&str, &[&str])] = &[
    ("provost-event", &[]),
    ("provost-macros", &[]),
    ("provost-engine", &["provost-event"]),
    ("provost-process", &["provost-event"]),
    ("provost-terminal", &["provost-event", "provost-process"]),
    ("provost-harness", &["provost-engine", "provost-event", "provost-process"]),
    // Nodes of an engine and workers, as processes of this machine.
    ("provost-cluster", &["provost-process"]),
    ("provost-llm", &["provost-engine", "provost-event", "provost-harness"]),
    ("provost-tools", &["provost-event", "provost-harness", "provost-process", "provost-terminal"]),
    ("provost-backend", &["provost-engine", "provost-event", "provost-harness", "provost-process"]),
    ("provost-sqlite", &["provost-backend", "provost-engine", "provost-event", "provost-harness"]),
    ("provost-restate", &["provost-engine", "provost-event", "provost-harness"]),
    ("provost-mcp-client", &["provost-engine", "provost-event", "provost-harness", "provost-process"]),
    ("provost-hooks", &["provost-engine", "provost-event", "provost-harness", "provost-process"]),
    ("provost-sandbox", &["provost-event", "provost-harness", "provost-process"]),
    ("provost-telemetry", &["provost-event", "provost-harness"]),
    ("provost-power", &["provost-harness"]),
    (
        "provost-external",
        &["provost-engine", "provost-event", "provost-harness", "provost-process", "provost-terminal"],
    ),
    // It reads answers with the readers of native agents.
    ("provost-gateway", &["provost-engine", "provost-event", "provost-harness", "provost-llm"]),
    (
        "provost",
        &[
            "provost-backend",
            "provost-engine",
            "provost-event",
            "provost-harness",
            "provost-hooks",
            "provost-llm",
            "provost-macros",
            "provost-power",
            "provost-sqlite",
            "provost-tools",
        ],
    ),
    (
        "provost-config",
        &[
            "provost-engine",
            "provost-event",
            "provost-harness",
            "provost-hooks",
            "provost-llm",
            "provost-terminal",
        ],
    ),
    ("provost-view", &["provost-engine", "provost-event", "provost-harness"]),
    // It speaks to the server, and sees nothing of it but its answers.
    ("provost-client", &["provost-event", "provost-view"]),
    (
        "provost-server",
        // Terminals of external agents are attached to, and drawn.
        &[
            "provost-engine",
            "provost-event",
            "provost-external",
            "provost-harness",
            "provost-process",
            "provost-terminal",
            "provost-view",
        ],
    ),
    ("provost-tui", &["provost-event", "provost-harness", "provost-process", "provost-view"]),
    ("provost-acp", &["provost-engine", "provost-event", "provost-harness", "provost-view"]),
    ("provost-mcp", &["provost-event", "provost-harness", "provost-view"]),
    (
        "provost-runtime",
        &[
            "provost-backend",
            "provost-cluster",
            "provost-config",
            "provost-engine",
            "provost-event",
            "provost-external",
            "provost-gateway",
            "provost-harness",
            "provost-hooks",
            "provost-llm",
            "provost-mcp-client",
            "provost-power",
            "provost-process",
            "provost-restate",
            "provost-sandbox",
            "provost-sqlite",
            "provost-telemetry",
            "provost-terminal",
            "provost-tools",
        ],
    ),
    (
        "provost-cli",
        &[
            "provost-acp",
            "provost-backend",
            // The server that runs over the same store.
            "provost-client",
            "provost-cluster",
            "provost-config",
            "provost-engine",
            "provost-event",
            "provost-external",
            "provost-harness",
            "provost-llm",
            "provost-mcp",
            "provost-mcp-client",
            "provost-process",
            "provost-runtime",
            "provost-sandbox",
            "provost-server",
            "provost-sqlite",
            "provost-terminal",
            "provost-tui",
            "provost-view",
        ],
    ),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
}

fn manifest(name: &str) -> toml::Table {
    let path = workspace().join("crates").join(name).join("Cargo.toml");
    fs::read_to_string(&path).expect("a manifest").parse().expect("TOML")
}

fn dependencies(name: &str) -> Vec<String> {
    let manifest = manifest(name);
    let table = manifest.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    table.keys().cloned().collect()
}

/// The Rust files below a crate's `src`, with their text.
fn sources(name: &str) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![workspace().join("crates").join(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                // A folder of unit tests is none of the crate's.
                folders.extend(Some(path).filter(|path| !path.ends_with("tests")));
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                found.insert(path, text);
            }
        }
    }
    found
}

#[test]
fn every_crate_has_its_layer() {
    let mut crates = fs::read_dir(workspace().join("crates"))
        .expect("the crates")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect::<Vec<_>>();
    crates.sort();
    let mut known = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    known.sort();
    assert_eq!(crates, known);
}

#[test]
fn arrows_between_crates_point_down() {
    for (name, allowed) in LAYERS {
        for dependency in dependencies(name).iter().filter(|other| other.starts_with("provost")) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_engine_and_the_words_do_nothing() {
    let foreign =
        ["tokio", "reqwest", "rusqlite", "fastrand", "rand", "libc", "async-trait", "futures", "tracing"];
    let inner =
        ["std::fs", "std::net", "std::process", "std::thread", "SystemTime", "Instant::now", "async fn"];
    for name in ["provost-event", "provost-engine"] {
        for dependency in dependencies(name) {
            assert!(!foreign.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
        for (path, text) in sources(name) {
            for word in inner {
                assert!(!text.contains(word), "{} must not use `{word}`", path.display());
            }
        }
    }
}

#[test]
fn what_is_foreign_stays_in_its_crate() {
    let homes: [(&str, &[&str]); 21] = [
        ("axum", &["provost-gateway", "provost-mcp-client", "provost-server"]),
        ("maud", &["provost-server"]),
        ("ratatui", &["provost-tui"]),
        ("crossterm", &["provost-tui"]),
        ("reqwest", &["provost-gateway", "provost-llm", "provost-hooks", "provost-telemetry"]),
        ("rusqlite", &["provost-sqlite"]),
        ("restate-sdk", &["provost-restate"]),
        ("restate-sdk-shared-core", &["provost-restate"]),
        ("object_store", &["provost-restate"]),
        ("libc", &["provost-process", "provost-sandbox"]),
        ("clap", &["provost-cli"]),
        ("anyhow", &["provost-cli"]),
        ("toml", &["provost-config", "provost-llm", "provost-terminal"]),
        ("toml_edit", &["provost-config"]),
        ("etcetera", &["provost-config"]),
        ("grep-searcher", &["provost-tools"]),
        ("keepawake", &["provost-power"]),
        ("vt100", &["provost-terminal"]),
        ("portable-pty", &["provost-process"]),
        ("agent-client-protocol", &["provost-acp"]),
        ("rmcp", &["provost-mcp", "provost-mcp-client"]),
    ];
    for (name, _) in LAYERS {
        for dependency in dependencies(name) {
            for (library, homes) in homes {
                assert!(dependency != library || homes.contains(name), "{library} doesn't belong to {name}");
            }
        }
    }
}

#[test]
fn settings_views_and_assembly_print_nothing_and_ask_nothing() {
    let silent = ["provost-config", "provost-runtime", "provost-server", "provost-view"];
    for (path, text) in silent.into_iter().flat_map(sources) {
        for word in ["println!", "print!(", "io::stdout", "io::stderr", "io::stdin", "IsTerminal"] {
            assert!(!text.contains(word), "{} must not use `{word}`", path.display());
        }
    }
}

#[test]
fn the_command_line_knows_no_backend() {
    for (path, text) in sources("provost-cli") {
        assert!(!text.contains("EmbeddedBackend"), "{} must not name a backend", path.display());
    }
}

/// The crates whose code may read environment variables: the command line hands them on to all others, the library
/// reads the keys of providers, and children get a part of them.
const READERS_OF_VARIABLES: [&str; 3] = ["provost", "provost-cli", "provost-process"];

#[test]
fn the_environment_is_read_only_where_allowed() {
    for (name, _) in LAYERS.iter().filter(|(name, _)| !READERS_OF_VARIABLES.contains(name)) {
        for (path, text) in sources(name) {
            for word in ["env::var(", "env::var_os(", "env::vars(", "env::vars_os(", "env::home_dir("] {
                assert!(!text.contains(word), "{} must not use `{word}`", path.display());
            }
        }
    }
}

/// The files that may construct a process command outside of tests, and why.
const STARTERS: [(&str, &str); 5] = [
    ("provost-process/src/launch/unix.rs", "the one place that starts programs"),
    ("provost-sandbox/src/linux/sys.rs", "a step of the sandbox, which replaces itself by the next"),
    (
        "provost-sandbox/src/linux/canary.rs",
        "a step of the sandbox, which tries from inside whether a shell runs",
    ),
    ("provost-process/src/launch/portable.rs", "the same where there are no guards"),
    (
        "provost-process/src/guard.rs",
        "puts a guard before the exec; its own probe for namespaces never execs",
    ),
];

/// Whether a source imports or names a type from which a process is started. `process::{Child, Command}` counts,
/// `process::Child` and a type of the crate's own that is called `Command` don't.
fn starts_processes(text: &str) -> bool {
    let imports = text.match_indices("process::").any(|(at, module)| {
        let named = text.get(at + module.len()..).unwrap_or_default();
        let named = match named.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => named.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default(),
        };
        named == "*" || named.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "Command")
    });
    let others = ["CommandBuilder", "CommandExt", "posix_spawn", "libc::execv", "libc::vfork"];
    imports || others.iter().any(|word| text.contains(word))
}

#[test]
fn programs_are_started_in_one_place() {
    let crates = workspace().join("crates");
    let mut found = Vec::new();
    for (name, _) in LAYERS {
        for (path, text) in sources(name) {
            if starts_processes(&text) {
                found.push(path.strip_prefix(&crates).expect("a crate's file").display().to_string());
            }
        }
    }
    found.sort();
    let mut known = STARTERS.map(|(file, _)| file.to_owned());
    known.sort();
    assert_eq!(found, known, "a program is started through `provost_process::Launch`");
}

#[test]
fn each_way_to_name_a_process_command_is_found() {
    for text in [
        "use std::process::Command;",
        "use tokio::process::{Child, Command};",
        "use std::{process::{self, Command as Program}, io};",
        "tokio::process::Command::new(\"true\")",
        "use std::os::unix::process::CommandExt as _;",
        "use portable_pty::CommandBuilder;",
    ] {
        assert!(starts_processes(text), "{text}");
    }
    for text in
        ["use tokio::process::Child;", "use std::process::{ExitStatus, Stdio};", "use crate::Command;"]
    {
        assert!(!starts_processes(text), "{text}");
    }
}

/// The files outside of the process crate that hold `unsafe` code: the system calls of the sandbox's steps.
const UNSAFE: [&str; 2] = ["provost-sandbox/src/linux/sys.rs", "provost-sandbox/src/linux/plan.rs"];

#[test]
fn only_the_process_crate_and_the_steps_of_the_sandbox_hold_unsafe_code() {
    for (name, _) in LAYERS.iter().filter(|(name, _)| *name != "provost-process") {
        for (path, text) in sources(name) {
            if UNSAFE.iter().any(|file| path.ends_with(file)) {
                continue;
            }
            assert!(!text.contains("unsafe "), "{} must not hold unsafe code", path.display());
        }
    }
}
