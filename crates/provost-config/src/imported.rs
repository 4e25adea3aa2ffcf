//! Hooks and permissions that come from other programs' files, and all hooks together.

mod all;
mod left_out;
mod matchers;
mod plugin;
mod scripts;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provost_event::{HookContract, HookPolicy, HookProgram, PointRefusal};
use provost_harness::Redactor;
use provost_hooks::{HookFile, Imported, ImportedRule, RuleList, Skipped, import_hooks, lacks_bash};

use super::errors::{Source, Spot};
use super::known_tools::KnownTools;
use super::layers::{Folders, read};
use super::literal::{is_secret, is_secret_name};
use super::{AvailableTools, Given, Loading};
pub(crate) use all::all;
use plugin::Plugin;
use scripts::missing_script;
use source::{CLAUDE_FILES, CODEX_FILES};
pub(crate) use source::{Import, ImportSource, project_folder};

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

/// Something of another program's file that needs the user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportedRequest {
    /// The file.
    pub(crate) file: String,
    /// What it is.
    pub(crate) what: String,
    /// The whole of it.
    pub(crate) body: String,
}

/// A file to import.
struct Found {
    name: String,
    path: PathBuf,
    /// Whether the user must agree to what it has.
    is_projects: bool,
    contract: HookContract,
    /// The variables of a plugin.
    plugin: Vec<(String, String)>,
}

/// What a file has.
struct Read {
    found: Found,
    imported: Imported,
}

/// What an import needs to know besides the settings.
pub(crate) struct Importing<'a> {
    pub(crate) folders: &'a Folders,
    pub(crate) tools: AvailableTools<'a>,
}

/// Reads the files that are to be imported and takes their hooks and permissions; notes what isn't taken.
pub(crate) fn import(loading: &mut Loading, with: &Importing<'_>) {
    let imports = loading.settings.imports.clone();
    let mut read = Vec::new();
    for import in &imports {
        let found = files_of(loading, import, with.folders);
        loading.project.expected.extend(expected(loading, import));
        let finds_none = found.is_empty();
        let files = found.into_iter().filter_map(|found| read_file(loading, found)).collect::<Vec<_>>();
        if let ImportSource::ClaudePlugin(folder) = &import.of {
            plugin::require_hooks(loading, import, folder, &files);
        } else if finds_none {
            let why = nothing_found(loading, import);
            loading.skipped.insert(0, format!("import of {}: {why}", import.of.word()));
        }
        read.extend(files);
    }
    take(loading, &read, with.tools);
    if imports.iter().any(|import| import.of == ImportSource::Claude) {
        let folder = folder_of(loading, &CLAUDE_FILES).unwrap_or_else(|| loading.project.folder.clone());
        loading.skipped.extend(left_out::in_front_matter(&folder));
    }
    note_unimported(loading, &imports);
    let folder = loading.project.folder.clone();
    let known = KnownTools::of(&loading.settings, with.tools);
    for placed in loading.settings.all_hooks() {
        for why in matchers::never_match(&placed.policy, &known) {
            loading.skipped.insert(0, format!("{}: the hook {}: {why}", placed.place, placed.policy.name));
        }
        if let Some(HookProgram::Shell { command }) = &placed.policy.program
            && lacks_bash(placed.policy.contract, command)
        {
            let why = "it is written for bash, and there is none on the PATH: sh runs it, and may fail at it";
            loading.skipped.insert(0, format!("{}: the hook {}: {why}", placed.place, placed.policy.name));
        }
        if let Some(script) = missing_script(&placed.policy, &folder) {
            let name = &placed.policy.name;
            let then = match placed.policy.point.refusal() {
                PointRefusal::None => "it does nothing",
                PointRefusal::Deny | PointRefusal::Pause | PointRefusal::Abort => {
                    "what it is asked about is refused"
                }
            };
            let why = format!("its script {} isn't there: {then}", script.display());
            loading.skipped.insert(0, format!("{}: the hook {name}: {why}", placed.place));
        }
    }
}

/// The files that an import reads if they are there.
fn expected(loading: &Loading, import: &Import) -> Vec<String> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match &import.of {
        ImportSource::Claude => names(&CLAUDE_FILES),
        ImportSource::Codex => names(&CODEX_FILES),
        ImportSource::ClaudeUser => Vec::new(),
        ImportSource::ClaudePlugin(folder) => {
            let files = Plugin::at(&loading.project.folder, folder).expected();
            files.iter().map(|path| name_in(&loading.project.folder, path)).collect()
        }
    }
}

/// Why an import found no file.
fn nothing_found(loading: &Loading, import: &Import) -> String {
    let folder = &loading.project.folder;
    let names = expected(loading, import);
    // Also a link that leads nowhere, whether it is the file or its folder.
    let parts =
        names.iter().flat_map(|name| Path::new(name).ancestors().filter(|part| !part.as_os_str().is_empty()));
    let mut there = parts.filter(|part| {
        let path = folder.join(part);
        path.symlink_metadata().is_ok()
            && (names.iter().any(|name| Path::new(name) == *part) || !path.is_dir())
    });
    match there.next() {
        Some(part) => {
            format!("{} in {} is no file or folder that can be read", part.display(), folder.display())
        }
        None => format!("there is none in {}", folder.display()),
    }
}

/// The folder with the files of another program, as a project has them.
fn folder_of(loading: &Loading, names: &[&str]) -> Option<PathBuf> {
    let folder = &loading.project.folder;
    let has_any = |folder: &&Path| names.iter().any(|name| folder.join(name).is_file());
    folder
        .ancestors()
        .find(has_any)
        .map(Path::to_owned)
        .filter(|found| found == folder || etcetera::home_dir().ok().as_ref() != Some(found))
}

fn files_of(loading: &Loading, import: &Import, folders: &Folders) -> Vec<Found> {
    let project = |names: &[&str], contract| {
        let Some(folder) = folder_of(loading, names) else { return Vec::new() };
        let found = |name: &&str| {
            let path = folder.join(name);
            let name = name_in(&loading.project.folder, &path);
            path.is_file().then(|| Found { name, path, is_projects: true, contract, plugin: Vec::new() })
        };
        names.iter().filter_map(found).collect()
    };
    match &import.of {
        ImportSource::Claude => project(&CLAUDE_FILES, HookContract::Claude),
        ImportSource::Codex => project(&CODEX_FILES, HookContract::Codex),
        ImportSource::ClaudeUser => {
            let path = etcetera::home_dir().ok().map(|home| home.join(".claude/settings.json"));
            let found = |path: PathBuf| Found {
                name: "~/.claude/settings.json".to_owned(),
                path,
                is_projects: false,
                contract: HookContract::Claude,
                plugin: Vec::new(),
            };
            path.filter(|path| path.is_file()).map(found).into_iter().collect()
        }
        ImportSource::ClaudePlugin(folder) => plugin::files(loading, import, folder, folders),
    }
}

/// The name of a file for people in `folder`.
fn name_in(folder: &Path, path: &Path) -> String {
    let ups = folder.ancestors().position(|above| path.starts_with(above)).unwrap_or_default();
    let above = folder.ancestors().nth(ups).unwrap_or(folder);
    match path.strip_prefix(above) {
        Ok(below) if above.parent().is_some() => format!("{}{}", "../".repeat(ups), below.display()),
        _ => path.display().to_string(),
    }
}

fn read_file(loading: &mut Loading, found: Found) -> Option<Read> {
    let text = match read(&found.path) {
        Ok(text) => text,
        Err(error) => {
            loading.skipped.insert(0, format!("{}: can't be read: {error}", found.name));
            return None;
        }
    };
    if found.is_projects {
        loading.project.has_read(&found.name, &text);
    }
    loading.files.push(found.path.clone());
    Some(Read { imported: imported(&found, &text), found })
}

fn imported(found: &Found, text: &str) -> Imported {
    let is_toml = found.path.extension().is_some_and(|ending| ending == "toml");
    let json = if is_toml { hooks_of_toml(text) } else { Ok(text.to_owned()) };
    let variables = found.plugin.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    match json {
        Ok(json) => {
            let file = HookFile {
                text: &json,
                source: &found.name,
                contract: found.contract,
                variables: &variables,
            };
            let mut imported = import_hooks(file);
            if is_toml {
                imported.skipped.extend(left_out::of_codex(&found.name, text));
            }
            imported
        }
        Err(why) => {
            let what = "the file".to_owned();
            let skipped = Skipped { place: found.name.clone(), what, why, is_guard: true };
            Imported { skipped: vec![skipped], ..Imported::default() }
        }
    }
}

/// The hooks of a configuration of Codex, in the form of its file of hooks. `state` says what the user has trusted
/// there.
fn hooks_of_toml(text: &str) -> Result<String, String> {
    let mut table: toml::Table =
        text.parse().map_err(|error| format!("it can't be read as TOML: {error}"))?;
    let mut hooks = table.remove("hooks").unwrap_or_else(|| toml::Value::Table(toml::Table::new()));
    if let Some(hooks) = hooks.as_table_mut() {
        hooks.remove("state");
    }
    serde_json::to_string(&BTreeMap::from([("hooks", hooks)])).map_err(|error| error.to_string())
}

/// Takes what the files have, together: a stronger file may switch the hooks of all of them off.
fn take(loading: &mut Loading, files: &[Read], tools: AvailableTools<'_>) {
    let claude = || files.iter().filter(|read| read.found.contract == HookContract::Claude);
    let switch = claude().rev().find_map(|read| Some((&read.found.name, read.imported.disables_hooks?)));
    let off_by = switch.filter(|(_, is_off)| *is_off).map(|(name, _)| name);
    let env = env_of(loading, claude());
    let mut skipped = Vec::new();
    for read in files {
        skipped.extend(read.imported.skipped.iter().cloned());
        if let Some(by) = off_by.filter(|_| read.found.contract == HookContract::Claude) {
            skipped.extend(switched_off(read, by));
        } else {
            take_hooks(loading, read, &env);
        }
        for rule in &read.imported.rules {
            skipped.extend(take_rule(loading, &read.found, rule, tools));
        }
    }
    skipped.sort_by_key(|skipped| !skipped.is_guard);
    let told = |skipped: Skipped| format!("{}: {}: {}", skipped.place, skipped.what, skipped.why);
    loading.skipped.extend(skipped.into_iter().map(told));
}

fn switched_off(read: &Read, by: &str) -> Option<Skipped> {
    let count = read.imported.hooks.len();
    (count > 0).then(|| Skipped {
        place: read.found.name.clone(),
        what: provost_event::counted(count as u64, "hook"),
        why: format!("`disableAllHooks` of {by} switches them off"),
        is_guard: true,
    })
}

/// The variables that the files set for their hooks; those of a stronger file replace others. A secret would be in
/// the log of every run.
fn env_of<'a>(loading: &mut Loading, files: impl Iterator<Item = &'a Read>) -> Vec<(String, String)> {
    let shapes = Redactor::default();
    let keys = loading.settings.named.key_variables();
    let mut all = BTreeMap::new();
    for Read { found, imported } in files {
        let mut handed_out = Vec::new();
        for (name, value) in &imported.env {
            let why = if keys.contains_key(name) {
                "it holds a provider's key, which no hook gets"
            } else if is_secret_name(name) || is_secret(value, &shapes) {
                "it looks like a secret, and every run's log would hold it: set it in your environment and name it in \
                 [hooks] env"
            } else {
                handed_out.push(format!("{name}={value}"));
                all.insert(name.clone(), value.clone());
                continue;
            };
            loading.skipped.push(format!("{}: the variable {name} of env: {why}", found.name));
        }
        if found.is_projects && !handed_out.is_empty() {
            loading.imported_requests.push(ImportedRequest {
                file: found.name.clone(),
                what: "is set for its hooks (env)".to_owned(),
                body: handed_out.join("\n"),
            });
        }
    }
    all.into_iter().collect()
}

fn take_hooks(loading: &mut Loading, Read { found, imported }: &Read, env: &[(String, String)]) {
    let keys = loading.settings.named.key_variables();
    let names = match found.contract {
        HookContract::Codex => &CODEX_FILES,
        HookContract::Claude | HookContract::Provost => &CLAUDE_FILES,
    };
    let folder = folder_of(loading, names).unwrap_or_else(|| loading.project.folder.clone());
    for policy in &imported.hooks {
        let mut policy = policy.clone();
        policy.setup.project = Some(folder.clone());
        let set = env.iter().filter(|_| found.contract == HookContract::Claude);
        policy.setup.env = set.chain(&found.plugin).cloned().collect();
        let withheld = withheld(policy.program.as_ref(), &keys).into_iter();
        loading.skipped.extend(withheld.map(|why| format!("{}: allowedEnvVars: {why}", found.name)));
        // The same hook in two files is asked once.
        let is_there = loading.settings.imported.iter().any(|known| is_double(&known.policy, &policy));
        if !is_there {
            let file = found.is_projects.then(|| found.name.clone());
            loading.settings.imported.push(Placed { policy, place: found.name.clone(), file });
        }
    }
}

/// Takes a rule, or says why it isn't taken.
fn take_rule(
    loading: &mut Loading,
    found: &Found,
    rule: &ImportedRule,
    tools: AvailableTools<'_>,
) -> Option<Skipped> {
    let place = format!("{}: permissions.{}", found.name, rule.list.name());
    let skipped = |why: String| {
        let what = format!("the rule `{}`", rule.written);
        Some(Skipped { place: place.clone(), what, why, is_guard: rule.list != RuleList::Allow })
    };
    let permissions = &loading.settings.permissions;
    if rule.list == RuleList::Allow && permissions.default.is_none() && permissions.allow.is_empty() {
        return skipped(
            "calls that no rule speaks of are allowed here; with permissions.default = \"ask\" it counts"
                .to_owned(),
        );
    }
    let root = loading.project.folder.clone();
    let patterns =
        rule.patterns.iter().flat_map(|pattern| located(pattern, rule.list, &root)).collect::<Vec<_>>();
    let known = KnownTools::of(&loading.settings, tools);
    let objections = patterns.iter().map(|pattern| match crate::hook::pattern(pattern.clone()) {
        Ok(_) => known.objection_to_pattern(pattern).map(|(what, _)| what),
        Err(what) => Some(what),
    });
    let objections = objections.collect::<Vec<_>>();
    let good = patterns.iter().zip(&objections).filter(|(_, objection)| objection.is_none());
    let good = good.map(|(pattern, _)| pattern.clone()).collect::<Vec<_>>();
    if good.is_empty() {
        return skipped(objections.into_iter().flatten().next().unwrap_or_default());
    }
    put_rule(loading, found, rule.list, &good);
    if rule.list == RuleList::Allow && found.is_projects {
        loading.imported_requests.push(ImportedRequest {
            file: found.name.clone(),
            what: "lets the agent do without asking".to_owned(),
            body: good.join("\n"),
        });
    }
    None
}

fn put_rule(loading: &mut Loading, found: &Found, list: RuleList, patterns: &[String]) {
    let permissions = &mut loading.settings.permissions;
    let rules = match list {
        RuleList::Deny => &mut permissions.deny,
        RuleList::Ask => &mut permissions.ask,
        RuleList::Allow => &mut permissions.allow,
    };
    for pattern in patterns.iter().filter(|pattern| !rules.contains(pattern)).cloned().collect::<Vec<_>>() {
        rules.push(pattern.clone());
        let given = Given { shown: pattern, source: Source::File(Spot::at(&found.name, "", 0)) };
        loading.items.push((format!("permissions.{}", list.name()), given));
    }
}

/// A pattern with the path from the project's folder where it has one. What is to be denied or asked about is also
/// that path in an agent's own copy of the project.
fn located(pattern: &str, list: RuleList, root: &Path) -> Vec<String> {
    let Some((tool, below)) = pattern.split_once("(./") else { return vec![pattern.to_owned()] };
    let absolute = format!("{tool}({}/{below}", root.display());
    match list {
        RuleList::Allow => vec![absolute],
        RuleList::Deny | RuleList::Ask => vec![format!("{tool}({below}"), absolute],
    }
}

/// Notes guards that stand in the project's files of other programs and that nothing imports.
fn note_unimported(loading: &mut Loading, imports: &[Import]) {
    let sources = [
        (ImportSource::Claude, &CLAUDE_FILES, HookContract::Claude),
        (ImportSource::Codex, &CODEX_FILES, HookContract::Codex),
    ];
    for (of, names, contract) in sources {
        if imports.iter().any(|import| import.of == of) {
            continue;
        }
        let Some(folder) = folder_of(loading, names) else { continue };
        for name in names {
            let path = folder.join(name);
            let Ok(text) = read(&path) else { continue };
            let name = name_in(&loading.project.folder, &path);
            let found = Found { name: name.clone(), path, is_projects: true, contract, plugin: Vec::new() };
            if let Some(has) = guards_in_words(&imported(&found, &text)) {
                let word = of.word();
                loading.notices.push(format!(
                    "not in force here: {has} of {name}; import = [\"{word}\"] under [hooks] in provost.toml takes them"
                ));
            }
        }
    }
}

fn guards_in_words(imported: &Imported) -> Option<String> {
    let of_file = imported.skipped.iter().filter(|skipped| skipped.is_guard).count();
    let hooks = imported.hooks.len().saturating_add(of_file);
    let rules = imported.rules.iter().filter(|rule| rule.list != RuleList::Allow).count();
    let parts = [(hooks, "hook"), (rules, "deny or ask rule")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, what)| provost_event::counted(count as u64, what)).collect::<Vec<_>>();
    (!parts.is_empty()).then(|| parts.join(" and "))
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
    let what = |hook: &HookPolicy| {
        (hook.point, hook.matcher.clone(), hook.condition.clone(), hook.program.clone(), hook.setup.clone())
    };
    what(one) == what(other)
}
