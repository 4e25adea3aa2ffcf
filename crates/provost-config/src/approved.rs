//! Keeps permanent approvals in the user's own settings file, and leaves the rest of the file unchanged.

use std::fs::Permissions;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, DocumentMut, Item, RawString, Table, Value};

use crate::errors::ConfigError;
use crate::whole_file::{WholeFile, read_limited};

const SECTION: &str = "permissions";
const KEY: &str = "approved";
const INDENT: &str = "\n  ";
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Symbolic links that are followed at most.
const LINKS_MAX: usize = 16;

/// The result of adding a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was added.
    Added,
    /// It was already there.
    There,
}

/// Adds `pattern` to `permissions.approved` in `file`, which is created if it is missing. Comments, order,
/// permissions and a symbolic link are kept. The write is atomic: the file holds the old text or all of the new
/// one. Concurrent processes each add their own pattern. Blocks for at most some seconds.
///
/// # Errors
/// When the file is no settings file, can't be read or written, or is locked by another process. It is then
/// unchanged.
pub fn keep_approved(file: &Path, pattern: &str) -> Result<Kept, ConfigError> {
    let failed = |source| ConfigError::ApprovalUnkept { file: file.to_owned(), source };
    let target = target(file).map_err(failed)?;
    let whole = WholeFile::lock(&target).map_err(failed)?;
    let old = read_limited(&target, FILE_BYTES_MAX).map_err(failed)?.unwrap_or_default();
    match with_pattern(&old, pattern) {
        Ok(Some(new)) => {
            let permissions = permissions(&target).map_err(failed)?;
            whole.replace(&new, permissions).map_err(failed)?;
            Ok(Kept::Added)
        }
        Ok(None) => Ok(Kept::There),
        Err(Wrong { line, what }) => Err(ConfigError::NoSettings { file: file.to_owned(), line, what }),
    }
}

/// The target, if `file` is a link; it need not exist.
pub(crate) fn target(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&file) {
            Ok(to) => file = file.parent().unwrap_or(Path::new("/")).join(to),
            // It doesn't exist, or is no link.
            Err(_) => return Ok(file),
        }
    }
    Err(io::Error::other("it is a link to a link, and so on"))
}

/// The permissions of the file, if it exists.
pub(crate) fn permissions(target: &Path) -> io::Result<Option<Permissions>> {
    match std::fs::metadata(target) {
        Ok(old) => Ok(Some(old.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The problem, and its line.
#[derive(Debug)]
struct Wrong {
    line: usize,
    what: String,
}

impl Wrong {
    fn at(text: &str, span: Option<std::ops::Range<usize>>, what: impl Into<String>) -> Self {
        let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, what: what.into() }
    }
}

/// The text with the pattern; `None` if it has it already.
fn with_pattern(old: &str, pattern: &str) -> Result<Option<String>, Wrong> {
    let parsed =
        Document::parse(old).map_err(|error| Wrong::at(old, error.span(), error.message().to_owned()))?;
    if let Some(section) = parsed.get(SECTION) {
        let wrong = |item: &Item, what| Wrong::at(old, item.span(), what);
        let section =
            section.as_table_like().ok_or_else(|| wrong(section, format!("`{SECTION}` must be a table")))?;
        if let Some(approved) = section.get(KEY) {
            let all = approved.as_array();
            let all = all.ok_or_else(|| wrong(approved, format!("`{SECTION}.{KEY}` must be a list")))?;
            if all.iter().any(|known| known.as_str() == Some(pattern)) {
                return Ok(None);
            }
        }
    }
    let mut document = parsed.into_mut();
    add(&mut document, pattern);
    Ok(Some(document.to_string()))
}

fn add(document: &mut DocumentMut, pattern: &str) {
    if !document.contains_key(SECTION) {
        let mut section = Table::new();
        // Comments at the end of the file stand before the new section, not behind it.
        let before = document.trailing().as_str().unwrap_or_default().to_owned();
        let gap = if document.is_empty() && before.is_empty() { "" } else { "\n" };
        section.decor_mut().set_prefix(format!("{before}{gap}"));
        document.set_trailing("");
        document.insert(SECTION, Item::Table(section));
    }
    let Some(section) = document.get_mut(SECTION) else { return };
    let in_a_line = section.is_inline_table();
    let Some(section) = section.as_table_like_mut() else { return };
    let all = section.entry(KEY).or_insert_with(|| Item::Value(Value::Array(Array::new())));
    match all.as_array_mut() {
        Some(all) if in_a_line => all.push(pattern),
        Some(all) => push(all, pattern),
        // That it is a list was checked before.
        None => {}
    }
}

/// Adds it in the style of the others: on the same line, or on a line of its own after the comments of the
/// previous one.
fn push(all: &mut Array, pattern: &str) {
    let mut value = Value::from(pattern);
    let text = |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or_default().to_owned();
    let trailing = text(Some(all.trailing()));
    let had_comma = all.trailing_comma();
    let Some(last) = all.len().checked_sub(1).and_then(|last| all.get_mut(last)) else {
        value.decor_mut().set_prefix(format!("{}{INDENT}", trailing.trim_end()));
        all.push_formatted(value);
        all.set_trailing("\n");
        return all.set_trailing_comma(true);
    };
    let prefix = text(last.decor().prefix());
    let Some((_, indent)) = prefix.rsplit_once('\n') else { return all.push(pattern) };
    let indent = indent.to_owned();
    // Without a comma behind it, what follows the last one belongs to it.
    let behind = if had_comma { trailing } else { text(last.decor().suffix()) + &trailing };
    last.decor_mut().set_suffix("");
    let (kept, end) = match behind.rsplit_once('\n') {
        Some((kept, end)) => (kept.trim_end().to_owned(), end.to_owned()),
        None => (String::new(), String::new()),
    };
    value.decor_mut().set_prefix(format!("{kept}\n{indent}"));
    all.push_formatted(value);
    all.set_trailing(format!("\n{end}"));
    all.set_trailing_comma(true);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::{Kept, keep_approved, with_pattern};

    #[track_caller]
    fn check(old: &str, expected: Expect) {
        let new = with_pattern(old, "shell(cargo test)").unwrap().unwrap();
        expected.assert_eq(&new);
        assert_eq!(with_pattern(&new, "shell(cargo test)").unwrap(), None, "added once");
        let again = with_pattern(&new, "shell(b)").unwrap().unwrap();
        assert!(again.parse::<toml::Table>().is_ok(), "{again}");
    }

    #[test]
    fn a_section_is_made_at_the_end_behind_the_comments() {
        check(
            "",
            expect![[r#"
                [permissions]
                approved = [
                  "shell(cargo test)",
                ]
            "#]],
        );
        check(
            "# mine\n[agent]\nmodel = \"a/b\" # the best\n\n# [budget]\n# usd = 5\n",
            expect![[r#"
                # mine
                [agent]
                model = "a/b" # the best

                # [budget]
                # usd = 5

                [permissions]
                approved = [
                  "shell(cargo test)",
                ]
            "#]],
        );
        check(
            "# nothing but words",
            expect![[r#"
                # nothing but words
                [permissions]
                approved = [
                  "shell(cargo test)",
                ]
            "#]],
        );
    }

    #[test]
    fn a_section_keeps_what_it_has() {
        check(
            "[permissions]\nallow = [\"x\"] # fine\n\n[agent]\nmodel = \"a/b\"\n",
            expect![[r#"
                [permissions]
                allow = ["x"] # fine
                approved = [
                  "shell(cargo test)",
                ]

                [agent]
                model = "a/b"
            "#]],
        );
        check(
            "permissions.allow = []\n",
            expect![[r#"
                permissions.allow = []
                permissions.approved = [
                  "shell(cargo test)",
                ]
            "#]],
        );
        check(
            "permissions = { allow = [] }\n",
            expect![[r#"
                permissions = { allow = [] , approved = ["shell(cargo test)"] }
            "#]],
        );
    }

    #[test]
    fn a_list_goes_on_as_it_is_written() {
        check(
            "[permissions]\napproved = [\"a\", 'b'] # two\n",
            expect![[r#"
                [permissions]
                approved = ["a", 'b', "shell(cargo test)"] # two
            "#]],
        );
        check(
            "[permissions]\napproved = [\n    # build\n    \"a\", # one\n    \"b\", # two\n    # the end\n]\n",
            expect![[r#"
                [permissions]
                approved = [
                    # build
                    "a", # one
                    "b", # two
                    # the end
                    "shell(cargo test)",
                ]
            "#]],
        );
        check(
            "[permissions]\napproved = [\n  \"a\"\n]\n",
            expect![[r#"
                [permissions]
                approved = [
                  "a",
                  "shell(cargo test)",
                ]
            "#]],
        );
    }

    #[test]
    fn what_isnt_settings_is_told_with_its_line() {
        let wrong = |text| {
            let wrong = with_pattern(text, "x").unwrap_err();
            format!("{}: {}", wrong.line, wrong.what)
        };
        assert!(wrong("a = 1\nb = [\n\n").starts_with("2: ") || wrong("a = 1\nb = [\n\n").starts_with("4: "));
        assert_eq!(wrong("\npermissions = 3\n"), "2: `permissions` must be a table");
        assert_eq!(wrong("[permissions]\n\napproved = 'x'\n"), "3: `permissions.approved` must be a list");
    }

    #[test]
    fn many_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("provost/config.toml");
        let add = |number: usize| keep_approved(&file, &format!("tool{number}")).unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                scope.spawn(move || add(number));
            }
        });
        let text = std::fs::read_to_string(&file).unwrap();
        for number in 0..16 {
            assert!(text.contains(&format!("\"tool{number}\",\n")), "{text}");
        }
        assert_eq!(keep_approved(&file, "tool3").unwrap(), Kept::There);
        assert_eq!(names(file.parent().unwrap()), [".config.toml.lock", "config.toml"]);
    }

    #[cfg(unix)]
    #[test]
    fn mode_and_links_stay_and_a_new_file_is_the_owners_alone() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        keep_approved(&folder.path().join("new.toml"), "x").unwrap();
        assert_eq!(mode("new.toml"), 0o600);
        std::fs::create_dir(folder.path().join("dotfiles")).unwrap();
        let real = folder.path().join("dotfiles/real.toml");
        std::fs::write(&real, "# mine\n").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles/real.toml", folder.path().join("link.toml")).unwrap();
        keep_approved(&folder.path().join("link.toml"), "x").unwrap();
        assert!(folder.path().join("link.toml").is_symlink());
        assert_eq!(mode("dotfiles/real.toml"), 0o640);
        assert!(std::fs::read_to_string(&real).unwrap().contains("\"x\""));
    }

    #[test]
    fn a_file_that_isnt_settings_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        std::fs::write(&file, "[permissions\n").unwrap();
        let error = keep_approved(&file, "x").unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:1: ", file.display())), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[permissions\n");
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = names.collect::<Vec<_>>();
        names.sort();
        names
    }
}
