//! Texts that are too long: their beginning is shown, and the whole is stored in a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use provost_event::counted;
use provost_harness::HookAnswer;

/// Maximum characters of one text for the model or the user.
pub(crate) const CHARS_MAX: usize = 10_000;
/// Characters shown of a longer one.
const PREVIEW_CHARS: usize = 2_000;

/// `answer` with no text longer than [`CHARS_MAX`]; longer ones are stored in `folder`, if there is one.
pub(crate) async fn capped(mut answer: HookAnswer, folder: Option<&Path>) -> HookAnswer {
    for text in texts(&mut answer) {
        if text.chars().nth(CHARS_MAX).is_some() {
            *text = preview(std::mem::take(text), folder.map(Path::to_owned)).await;
        }
    }
    answer
}

/// All texts of an answer.
pub(crate) fn texts(answer: &mut HookAnswer) -> Vec<&mut String> {
    answer.decision.reason_mut().into_iter().chain(&mut answer.reminders).chain(&mut answer.note).collect()
}

async fn preview(text: String, folder: Option<PathBuf>) -> String {
    let shown: String = text.chars().take(PREVIEW_CHARS).collect();
    let left_out = counted(text.chars().count().saturating_sub(PREVIEW_CHARS) as u64, "character");
    let kept = match folder {
        Some(folder) => {
            tokio::task::spawn_blocking(move || keep(&text, &folder)).await.ok().and_then(Result::ok)
        }
        None => None,
    };
    match kept {
        Some(path) => format!("{shown}\n[… {left_out} more; all that was kept is in {}]", path.display()),
        None => format!("{shown}\n[… {left_out} more, left out]"),
    }
}

fn keep(text: &str, folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix("hook-").suffix(".txt").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}
