//! What is generated from the declaration: the file of `provost init`, the reference page, the JSON Schema.

mod info;
mod init;
mod reference;
mod schema;

pub use info::{SettingInfo, declared};
pub use init::{ShortFile, ShortSandbox, init_file, short_file};
pub use reference::reference;
pub use schema::schema;

use super::declare::{Setting, SettingDefault};

fn default_text<T>(setting: &Setting<T>) -> String {
    match setting.default {
        SettingDefault::Is(value) => format!("Default: {value}."),
        SettingDefault::Unset(words) => format!("Default: {words}."),
        SettingDefault::Required => "Required.".to_owned(),
    }
}
