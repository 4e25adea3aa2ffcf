//! Hooks that come from elsewhere, and all hooks together.

use std::collections::BTreeMap;
use std::path::Path;

use provost_event::{HookPolicy, HookProgram};

use super::layers::read;
use super::{Loading, Settings};

/// The files of a `.claude` folder that have hooks, the weaker first.
const CLAUDE_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// A hook, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The hook.
    pub policy: HookPolicy,
    /// Where it stands, for people.
    pub place: String,
    /// The file of the project's folder that it stands in, if it is one.
    pub file: Option<String>,
}

/// Reads the files of the project's `.claude` folder and takes their hooks.
pub(crate) fn import(loading: &mut Loading) {
    if !loading.settings.imports_claude {
        return;
    }
    let folder = loading.project.folder.clone();
    let mut found_any = false;
    for name in CLAUDE_FILES {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        found_any = true;
        import_file(loading, name, &path);
    }
    if !found_any {
        let why = format!("there is none in {}", folder.display());
        loading.skipped.push(format!("{}: {why}", CLAUDE_FILES.join(" and ")));
    }
}

fn import_file(loading: &mut Loading, name: &str, path: &Path) {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => return loading.skipped.push(format!("{name}: can't be read: {error}")),
    };
    loading.project.has_read(name, &text);
    loading.files.push(path.to_owned());
    let imported = provost_hooks::import_claude(&text, name);
    loading.skipped.extend(imported.skipped.iter().map(|skipped| {
        let provost_hooks::Skipped { place, what, why, .. } = skipped;
        format!("{place}: {what}: {why}")
    }));
    let keys = loading.settings.named.key_variables();
    for policy in imported.hooks {
        let withheld = withheld(policy.program.as_ref(), &keys).into_iter();
        loading.skipped.extend(withheld.map(|why| format!("{name}: allowedEnvVars: {why}")));
        // The same hook in both files is asked once.
        let is_there = loading.settings.imported.iter().any(|known| is_double(&known.policy, &policy));
        if !is_there {
            let placed = Placed { policy, place: name.to_owned(), file: Some(name.to_owned()) };
            loading.settings.imported.push(placed);
        }
    }
}

/// Why headers of `program` don't get the values of variables that they are to name; `keys` are those that hold
/// keys, with their providers.
pub(crate) fn withheld(program: Option<&HookProgram>, keys: &BTreeMap<String, String>) -> Vec<String> {
    let Some(HookProgram::Http { allowed_env, .. }) = program else { return Vec::new() };
    let why = |name: &String| {
        Some(format!("{name} holds the key of the provider {}, which no hook gets", keys.get(name)?))
    };
    allowed_env.iter().filter_map(why).collect()
}

fn is_double(one: &HookPolicy, other: &HookPolicy) -> bool {
    let what =
        |hook: &HookPolicy| (hook.point, hook.matcher.clone(), hook.condition.clone(), hook.program.clone());
    what(one) == what(other)
}

/// All hooks of `settings`, each with a name of its own.
pub(crate) fn all(settings: &Settings) -> Vec<Placed> {
    let own = settings.hooks.iter().filter_map(|hook| {
        let place = hook.source.to_string();
        let file = hook.source.is_projects().then(|| super::FILE_NAME.to_owned());
        Some((Placed { policy: hook.policy()?, place, file }, hook.is_named()))
    });
    let mut own = own.collect::<Vec<_>>();
    own.extend(settings.imported.iter().cloned().map(|placed| (placed, false)));
    let named = own.iter().filter(|(_, is_named)| *is_named);
    let mut taken = named.map(|(placed, _)| placed.policy.name.clone()).collect::<Vec<_>>();
    for (placed, _) in own.iter_mut().filter(|(_, is_named)| !is_named) {
        placed.policy.name = free_name(&placed.policy.name, &taken);
        taken.push(placed.policy.name.clone());
    }
    // The user can't shorten what another program's file says, and no hook outlasts the run.
    let most = settings.budget.wall_time_ms.unwrap_or(u64::MAX);
    for (placed, _) in &mut own {
        placed.policy.timeout_ms = placed.policy.timeout_ms.min(most);
    }
    own.into_iter().map(|(placed, _)| placed).collect()
}

fn free_name(name: &str, taken: &[String]) -> String {
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}
