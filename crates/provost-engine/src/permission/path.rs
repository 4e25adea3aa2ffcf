//! Path globs: `*` within a name, `**` for any number of names.

use std::path::Path;

use super::glob::Glob;

/// Where users' home directories are: the engine reads no environment, so that the user's own is unknown.
const HOMES: [&[&str]; 4] = [&["home", "*"], &["Users", "*"], &["root"], &["var", "root"]];

/// Whether upper and lower case are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// They differ: an allowed path is allowed only as written.
    Counts,
    /// They are the same, as in some file systems: a denied path has no other spelling.
    Folds,
}

/// A path without `.` and `..`, from the root of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NormalizedPath {
    names: Vec<String>,
    /// How many of the names are the workspace's, if the path is in the workspace.
    workspace_names: usize,
    /// Whether the path is in the workspace.
    is_inside: bool,
}

/// How a path matches a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Meeting {
    /// The pattern matches it.
    pub(super) exact: bool,
    /// The pattern matches it or a folder that contains it.
    pub(super) within: bool,
    /// The pattern may match something below it.
    pub(super) above: bool,
}

impl NormalizedPath {
    /// The target of `path`, relative to `workspace`, by its text alone: links aren't followed.
    pub(super) fn new(path: &str, workspace: &Path) -> Self {
        let workspace = workspace.to_string_lossy();
        let mut home = Vec::new();
        push_names(&mut home, &workspace);
        let mut names = if path.starts_with('/') { Vec::new() } else { home.clone() };
        push_names(&mut names, path);
        let is_inside = names.starts_with(&home);
        let workspace_names = if is_inside { home.len() } else { 0 };
        Self { names, workspace_names, is_inside }
    }

    /// Whether `path` is the workspace or in it.
    pub(super) fn is_inside(path: &str, workspace: &Path) -> bool {
        let mut home = Vec::new();
        push_names(&mut home, &workspace.to_string_lossy());
        Self::new(path, workspace).names.starts_with(&home)
    }

    /// Whether it is the workspace or in it.
    pub(super) const fn is_in_workspace(&self) -> bool {
        self.is_inside
    }

    /// Whether it is `folder`, an absolute path, or in it.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        let mut names = Vec::new();
        push_names(&mut names, &folder.to_string_lossy());
        self.names.starts_with(&names)
    }

    /// The path from the root of the file system.
    pub(super) fn absolute(&self) -> String {
        format!("/{}", self.names.join("/"))
    }

    /// The path as the text of a pattern: relative to the workspace, if it is in there.
    pub(super) fn shown(&self) -> String {
        let below = self.names.get(self.workspace_names..).unwrap_or_default().join("/");
        match (self.workspace_names, below.as_str()) {
            // A `/` at the end would mean all that is in the folder.
            (0, "") => "/.".to_owned(),
            (0, _) => format!("/{below}"),
            (_, "") => ".".to_owned(),
            (_, path) if path.contains('/') && !path.starts_with("~/") => below,
            // A single name would match in every folder, and `~/` a home directory.
            _ => format!("./{below}"),
        }
    }

    /// How it matches `pattern`.
    pub(super) fn meets(&self, pattern: &str, workspace: &Path, case: Case) -> Meeting {
        let fold = |text: &str| match case {
            Case::Counts => text.to_owned(),
            Case::Folds => text.to_ascii_lowercase(),
        };
        let pattern = fold(pattern);
        let names = self.names.iter().map(|name| fold(name)).collect::<Vec<_>>();
        let below = names.get(self.workspace_names..).unwrap_or_default();
        let here = fold(&workspace.to_string_lossy());
        if floats(&pattern, case) {
            let floating = format!("**/{}", pattern.trim_start_matches('/'));
            return meeting(&steps(&[], &floating), below);
        }
        if let Some(rest) = pattern.strip_prefix("~/") {
            let written = meeting(&steps(&literal_names(&here), &pattern), &names);
            return HOMES
                .iter()
                .map(|home| {
                    home.iter().map(|name| GlobStep::Name(Glob::new(&fold(name)))).collect::<Vec<_>>()
                })
                .map(|home| meeting(&steps(&home, rest), &names))
                .fold(written, Meeting::or);
        }
        match pattern.starts_with('/') {
            true => meeting(&steps(&[], &pattern), &names),
            false => meeting(&steps(&literal_names(&here), &pattern), &names),
        }
    }
}

impl Meeting {
    fn or(self, other: Self) -> Self {
        Self {
            exact: self.exact || other.exact,
            within: self.within || other.within,
            above: self.above || other.above,
        }
    }
}

/// Whether a pattern matches in every folder: it begins with `**/`, or is a single name. One that allows and has no
/// star means that name in the workspace: its file, and no other one that is called the same.
pub(super) fn floats(pattern: &str, case: Case) -> bool {
    let name = pattern.trim_end_matches('/');
    let is_single = !(name.is_empty() || name.contains('/') || name == "." || name == "..");
    pattern.starts_with("**/") || (is_single && (case == Case::Folds || name.contains('*')))
}

/// One step of a path pattern.
#[derive(Debug, Clone)]
enum GlobStep {
    Name(Glob),
    /// Any number of names.
    Any,
}

fn literal_names(path: &str) -> Vec<GlobStep> {
    let mut names = Vec::new();
    push_names(&mut names, path);
    names.iter().map(|name| GlobStep::Name(Glob::new(&super::glob::escaped(name)))).collect()
}

fn steps(from: &[GlobStep], pattern: &str) -> Vec<GlobStep> {
    let mut steps = from.to_vec();
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = steps.pop(),
            "**" => steps.push(GlobStep::Any),
            _ => steps.push(GlobStep::Name(Glob::new(name))),
        }
    }
    // As in ignore files: a folder means all that is in it.
    if pattern.ends_with('/') {
        steps.push(GlobStep::Any);
    }
    steps
}

fn push_names(names: &mut Vec<String>, path: &str) {
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = names.pop(),
            _ => names.push(name.to_owned()),
        }
    }
}

fn meeting(steps: &[GlobStep], names: &[String]) -> Meeting {
    let mut states = vec![false; steps.len() + 1];
    if let Some(start) = states.first_mut() {
        *start = true;
    }
    pass_any(steps, &mut states);
    let mut within = names.is_empty() && states.last() == Some(&true);
    for name in names {
        let mut next = vec![false; states.len()];
        for (at, step) in steps.iter().enumerate().filter(|(at, _)| states.get(*at) == Some(&true)) {
            let to = match step {
                GlobStep::Any => at,
                GlobStep::Name(glob) if glob.matches(name) => at + 1,
                GlobStep::Name(_) => continue,
            };
            if let Some(state) = next.get_mut(to) {
                *state = true;
            }
        }
        pass_any(steps, &mut next);
        within |= next.last() == Some(&true);
        states = next;
    }
    Meeting { exact: states.last() == Some(&true), within, above: states.contains(&true) }
}

fn pass_any(steps: &[GlobStep], states: &mut [bool]) {
    for (at, step) in steps.iter().enumerate() {
        if matches!(step, GlobStep::Any)
            && states.get(at) == Some(&true)
            && let Some(after) = states.get_mut(at + 1)
        {
            *after = true;
        }
    }
}
