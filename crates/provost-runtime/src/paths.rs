//! Paths in settings, and the names of models that have some in them.

use std::path::{Path, PathBuf};

use provost_config::Source;

pub(crate) const SCRIPT: &str = "script:";
const RECORD: &str = "record:";
const REPLAY: &str = "replay:";

/// The name of `model` with the paths in it made absolute: relative to the file that named it, else to the current
/// folder.
pub(crate) fn model_name(model: &str, source: &Source, folder: &Path) -> String {
    with_absolute_paths(model, &beside(source, folder))
}

/// The folder that a path is relative to: that of the file that names it, else the current one.
pub fn beside(source: &Source, folder: &Path) -> PathBuf {
    let beside = match source {
        Source::File(spot) => folder.join(&spot.file).parent().map(Path::to_owned),
        Source::Default | Source::Variable(_) | Source::Flag(_) => std::env::current_dir().ok(),
    };
    beside.unwrap_or_else(|| folder.to_owned())
}

/// The name of a model with the paths in it made absolute: relative to the folder `beside`.
#[must_use]
pub fn with_absolute_paths(model: &str, beside: &Path) -> String {
    let file = |kind: &str| Some(format!("{kind}{}", beside.join(model.strip_prefix(kind)?).display()));
    let recorded = || {
        let (file, recorded) = model.strip_prefix(RECORD)?.split_once('=')?;
        let file = beside.join(file);
        Some(format!("{RECORD}{}={}", file.display(), with_absolute_paths(recorded, beside)))
    };
    file(SCRIPT).or_else(|| file(REPLAY)).or_else(recorded).unwrap_or_else(|| model.to_owned())
}

/// The model that is really asked: a recording's is the one that is recorded.
pub fn asked(model: &str) -> &str {
    let recorded = model.strip_prefix(RECORD).and_then(|rest| rest.split_once('='));
    recorded.map_or(model, |(_, recorded)| asked(recorded))
}
