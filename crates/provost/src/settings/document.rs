//! What is generated from the declaration: the file of `provost init`, the reference page, the JSON Schema.

mod init;
#[cfg(test)]
mod reference;
mod schema;

pub(crate) use init::init_file;
pub(crate) use schema::schema;

use super::declare::{Otherwise, Setting};

fn otherwise<T>(setting: &Setting<T>) -> String {
    match setting.otherwise {
        Otherwise::Is(value) => format!("Default: {value}."),
        Otherwise::Unset(words) => format!("Default: {words}."),
        Otherwise::Required => "Must be there.".to_owned(),
    }
}
