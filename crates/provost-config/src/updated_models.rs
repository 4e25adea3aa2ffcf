//! What was taken over from public tables of models: a file beside the user's settings that only `provost models
//! update` writes.

use std::io;
use std::path::{Path, PathBuf};

use provost_llm::ModelFacts;
use serde::{Deserialize, Serialize};

use super::errors::{Problem, Source, Spot};
use crate::whole_file::{WholeFile, read_limited};

const FILE_NAME: &str = "models.json";
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The rows of all updates, and where they are kept.
pub struct UpdatedModels {
    path: PathBuf,
    /// What differs from the built-in table; one row a model.
    pub models: Vec<ModelFacts>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<T> {
    models: T,
}

impl UpdatedModels {
    /// Those beside `user_file`; there needn't be any.
    ///
    /// # Errors
    /// What is wrong with the file that holds them, with its place.
    pub fn load(user_file: &Path) -> Result<Self, Problem> {
        let path = user_file.with_file_name(FILE_NAME);
        let text = read_limited(&path, FILE_BYTES_MAX)
            .map_err(|error| wrong(&path, (1, 1), format!("can't be read: {error}")))?;
        let Some(text) = text else { return Ok(Self { path, models: Vec::new() }) };
        match serde_json::from_str::<Stored<Vec<ModelFacts>>>(&text) {
            Ok(stored) => Ok(Self { path, models: stored.models }),
            Err(error) => {
                let place = (error.line(), error.column());
                Err(wrong(&path, place, format!("isn't what `provost models update` writes: {error}")))
            }
        }
    }

    /// Where they are kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps `rows` over those of the same model that were there, in a file that its user alone may read.
    ///
    /// # Errors
    /// When the file can't be read or replaced; then it is as it was.
    pub fn add(user_file: &Path, rows: Vec<ModelFacts>) -> io::Result<()> {
        let file = WholeFile::lock(&user_file.with_file_name(FILE_NAME))?;
        let Self { mut models, .. } =
            Self::load(user_file).map_err(|problem| io::Error::other(problem.to_string()))?;
        for row in rows {
            match models.iter_mut().find(|known| known.name == row.name) {
                Some(known) => *known = row.over(std::mem::take(known)),
                None => models.push(row),
            }
        }
        models.sort_by(|a, b| a.name.cmp(&b.name));
        let mut text = serde_json::to_string_pretty(&Stored { models: &models })?;
        text.push('\n');
        file.replace(&text, None)
    }
}

fn wrong(path: &Path, (line, column): (usize, usize), what: String) -> Problem {
    let source = Source::File(Spot { line, column, ..Spot::at(&path.display().to_string(), "", 0) });
    let remedy = "remove the file to be back at what is built in, and update again".to_owned();
    Problem { source, key: String::new(), what, remedy }
}
