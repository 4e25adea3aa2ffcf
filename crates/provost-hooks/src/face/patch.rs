//! What a patch does to each of its files, as far as hooks are told.
//!
//! It reads more leniently than what applies patches: every path that a patch names is seen, also of one that is rejected
//! later.

/// A file that a patch names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchedFile {
    pub(super) path: String,
    /// All of the new file; empty for one that is deleted.
    pub(super) content: String,
    /// The texts that are replaced and that replace them; none for a file that is added or deleted.
    pub(super) edits: Option<Vec<(String, String)>>,
}

const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const HUNK: &str = "@@";

/// The files of `patch` in its order; one that is moved is there with both of its paths.
pub(super) fn patched_files(patch: &str) -> Vec<PatchedFile> {
    let mut files: Vec<PatchedFile> = Vec::new();
    // Where the files begin that the present lines are about.
    let mut first = 0;
    for line in patch.lines() {
        let header = line.trim();
        let named = |header_of: &str| header.strip_prefix(header_of).map(|path| path.trim().to_owned());
        if let Some(path) = named(ADD).or_else(|| named(DELETE)) {
            first = files.len();
            files.push(PatchedFile { path, content: String::new(), edits: None });
        } else if let Some(path) = named(UPDATE) {
            first = files.len();
            files.push(PatchedFile { path, content: String::new(), edits: Some(Vec::new()) });
        } else if let Some(path) = named(MOVE) {
            let edits = files.last().and_then(|file| file.edits.clone());
            files.push(PatchedFile { path, content: String::new(), edits });
        } else {
            files.iter_mut().skip(first).for_each(|file| file.take(line));
        }
    }
    files
}

impl PatchedFile {
    fn take(&mut self, line: &str) {
        let Some(edits) = &mut self.edits else {
            if let Some(text) = line.strip_prefix('+') {
                append(&mut self.content, text);
            }
            return;
        };
        if line.starts_with(HUNK) {
            return edits.push(<(String, String)>::default());
        }
        if line.starts_with("***") {
            return;
        }
        if edits.is_empty() {
            edits.push(<(String, String)>::default());
        }
        let Some((old, new)) = edits.last_mut() else { return };
        match (line.strip_prefix('-'), line.strip_prefix('+')) {
            (Some(text), _) => append(old, text),
            (_, Some(text)) => append(new, text),
            _ => {
                let text = line.strip_prefix(' ').unwrap_or(line);
                append(old, text);
                append(new, text);
            }
        }
    }
}

fn append(to: &mut String, line: &str) {
    to.push_str(line);
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use super::patched_files;

    #[test]
    fn every_file_is_there_with_what_is_done_to_it() {
        let patch = "*** Begin Patch\n*** Add File: a\n+one\n+two\n*** Update File: b\n*** Move to: c\n@@ fn f\n x\n-y\n+z\n@@\n-q\n\
             *** Delete File: d\n*** End Patch";
        let shown = patched_files(patch)
            .into_iter()
            .map(|file| format!("{} {:?} {:?}", file.path, file.content, file.edits));
        let edits = r#"Some([("x\ny\n", "x\nz\n"), ("q\n", "")])"#;
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                "a \"one\\ntwo\\n\" None".to_owned(),
                format!("b \"\" {edits}"),
                format!("c \"\" {edits}"),
                "d \"\" None".to_owned(),
            ]
        );
    }
}
