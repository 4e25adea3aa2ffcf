//! The library as programs use it that embed agents.

mod building;
mod running;
mod spans;
mod streaming;
mod tools;

/// The example, which is also what the documentation shows.
#[path = "../../examples/whole.rs"]
#[expect(dead_code, reason = "its `main` isn't called here")]
mod whole;

use provost::ScriptedModel;

/// A model that says this.
#[expect(clippy::expect_used, reason = "a script that can't be read is a mistake of the test")]
fn script(text: &str) -> ScriptedModel {
    ScriptedModel::parse(text, "script").expect("a script")
}
