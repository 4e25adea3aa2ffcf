//! What the output of a program tells of the sandbox: which of its failures the sandbox caused.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use provost_event::SandboxNetwork;
use regex::Regex;

use crate::FileRules;

/// What is only read from a program's output begins with this: any program can print such a message.
const AS_PRINTED: &str = "as its output has it,";

/// Sentences for the model at most.
const SENTENCES_MAX: usize = 5;
/// Lines that are looked at, from the end.
const LINES_MAX: usize = 400;

/// Messages of the system that a denial causes.
const FILE_MESSAGES: [&str; 7] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
    "EROFS",
    "EACCES",
    "EPERM",
];
/// What is masked looks as if it weren't there.
const ABSENT: [&str; 2] = ["No such file or directory", "ENOENT"];
const NETWORK_MESSAGES: [&str; 8] = [
    "Network is unreachable",
    "Could not resolve host",
    "Couldn't resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "ENETUNREACH",
    "EAI_AGAIN",
    "Address family not supported",
];

/// Paths in a message: in quotes, or absolute.
static PATHS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|(/[^\s:'"`,;)]+)|([\w.@+-][^\s:'"`,;)]*):"#).ok()
});

/// What of the failures in `output` the sandbox caused, as sentences.
pub(crate) fn denials(output: &str, rules: &FileRules, network: SandboxNetwork) -> Vec<String> {
    let mut found = Vec::new();
    for line in output.lines().rev().take(LINES_MAX) {
        let says = |all: &[&str]| all.iter().any(|message| line.contains(message));
        if says(&FILE_MESSAGES) {
            found.extend(
                // What stands nearest to the message is what it is about: before that is the program that says it.
                paths(line, &rules.workspace)
                    .iter()
                    .rev()
                    .find_map(|path| rules.read_denied(path).or_else(|| rules.write_denied(path))),
            );
        } else if says(&ABSENT) {
            found.extend(paths(line, &rules.workspace).iter().rev().find_map(|path| rules.read_denied(path)));
        } else if says(&NETWORK_MESSAGES) {
            found.extend(network_denied(network));
        }
        found.dedup();
        if found.len() >= SENTENCES_MAX {
            break;
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|sentence| seen.insert(sentence.clone()));
    if let Some(first) = found.first_mut() {
        *first = format!("{AS_PRINTED} {first}");
    }
    found
}

fn network_denied(network: SandboxNetwork) -> Option<String> {
    match network {
        SandboxNetwork::None => Some("the network can't be reached: sandbox.network is \"none\"".to_owned()),
        SandboxNetwork::Proxy => Some(
            "only the proxy in HTTPS_PROXY leads to the network, and to the hosts in sandbox.allow_hosts"
                .to_owned(),
        ),
        SandboxNetwork::Open => None,
    }
}

/// The paths in a line, absolute and without symlinks as far as they are there: the last, which the message is about,
/// first. A program's own name, with which its messages begin, isn't one of them.
fn paths(line: &str, workspace: &Path) -> Vec<PathBuf> {
    let Some(pattern) = PATHS.as_ref() else { return Vec::new() };
    let texts = pattern.captures_iter(line).filter_map(|groups| groups.iter().skip(1).flatten().next());
    let mut texts = texts.collect::<Vec<_>>();
    if texts.len() > 1 && texts.first().is_some_and(|text| text.start() == 0) {
        texts.remove(0);
    }
    texts.iter().rev().map(|text| real(&workspace.join(text.as_str()))).collect()
}

/// The path without symlinks, as far as it is there.
pub(crate) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}
