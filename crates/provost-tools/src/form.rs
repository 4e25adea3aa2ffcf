//! Names and values of arguments that models learned from other programs.

use std::collections::BTreeMap;

use provost_event::{CallForm, FieldForm, SelectingField, ValueForm};

/// The argument with the path of a file, by its names elsewhere.
pub(crate) const FILE_NAMES: &[&str] =
    &["file_path", "filePath", "filepath", "filename", "file", "absolute_path", "target_file"];

/// The argument with the path of a folder, by its names elsewhere.
pub(crate) const FOLDER_NAMES: &[&str] = &["dir_path", "dirPath", "directory", "folder"];

/// Editors with a `command` for each of what are several tools here.
const EDITORS: &[&str] = &["str_replace_based_edit_tool", "str_replace_editor"];

/// A form of a tool by these names.
pub(crate) fn form(names: &[&str], fields: Vec<FieldForm>) -> CallForm {
    CallForm { names: owned(names), when: None, fields, ignored: Vec::new() }
}

/// The form of a tool that is `command` in editors.
pub(crate) fn editor_form(command: &str, fields: Vec<FieldForm>) -> CallForm {
    let when = SelectingField { field: "command".to_owned(), value: command.to_owned() };
    CallForm { when: Some(when), ..form(EDITORS, fields) }
}

/// `form`, with arguments that are left out.
pub(crate) fn ignoring(form: CallForm, ignored: &[&str]) -> CallForm {
    CallForm { ignored: owned(ignored), ..form }
}

/// The argument `field` by other names.
pub(crate) fn named(field: &str, names: &[&str]) -> FieldForm {
    valued(field, names, ValueForm::Same)
}

/// The argument `field` by other names, with another value.
pub(crate) fn valued(field: &str, names: &[&str], value: ValueForm) -> FieldForm {
    FieldForm { field: field.to_owned(), names: owned(names), value }
}

/// A number for which 0 is the default.
pub(crate) fn positive(field: &str, names: &[&str]) -> FieldForm {
    valued(field, names, ValueForm::ZeroIsAbsent)
}

/// Other words for values.
pub(crate) fn renamed(words: &[(&str, &str)]) -> ValueForm {
    let own = |&(other, own): &(&str, &str)| (other.to_owned(), own.to_owned());
    ValueForm::Renamed(words.iter().map(own).collect::<BTreeMap<_, _>>())
}

pub(crate) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
