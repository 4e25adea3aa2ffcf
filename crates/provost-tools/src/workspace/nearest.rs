//! Names similar to a missing one.

use std::path::Path;

use cap_std::fs::Dir;

/// Maximum names of a folder to compare.
const NAMES_MAX: usize = 2000;

/// Maximum names to show.
const TOLD_MAX: usize = 3;

/// The least similarity of a name, from 0 to 1.
const LIKENESS_MIN: f64 = 0.6;

/// The text after "`missing` doesn't exist": which part of the path is missing, and similar names there.
pub(crate) fn hint(root: &Dir, missing: &Path) -> String {
    for path in missing.ancestors() {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { break };
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = root.read_dir(here) else { continue };
        let names =
            entries.flatten().take(NAMES_MAX).map(|entry| entry.file_name().to_string_lossy().into_owned());
        let similar = most_similar(&name.to_string_lossy(), names);
        let whole = path == missing;
        let place =
            if here == Path::new(".") { "the workspace".to_owned() } else { format!("`{}`", here.display()) };
        return match (similar.is_empty(), whole) {
            (true, true) => String::new(),
            (true, false) => format!(": there is no `{}` in {place}", name.to_string_lossy()),
            (false, _) => format!("; similar in {place}: {}", similar.join(", ")),
        };
    }
    String::new()
}

/// The names most similar to `wanted`, best first, in backticks.
fn most_similar(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let stem = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
        let same_stem = !stem(&name).is_empty() && stem(&name) == stem(&wanted);
        strsim::normalized_damerau_levenshtein(&name, &wanted).max(if same_stem { 0.9 } else { 0.0 })
    };
    let mut all: Vec<_> =
        names.map(|name| (likeness(&name), name)).filter(|(like, _)| *like >= LIKENESS_MIN).collect();
    all.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    all.into_iter().take(TOLD_MAX).map(|(_, name)| format!("`{name}`")).collect()
}
