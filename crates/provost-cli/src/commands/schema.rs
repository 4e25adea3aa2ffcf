//! `provost schema`: the JSON Schema of what a command prints with `--json`.

use provost_view::ViewKind;

use super::print;
use crate::cli::SchemaArgs;
use crate::exit::Exit;

pub(super) fn schema(args: &SchemaArgs) -> anyhow::Result<Exit> {
    match &args.command {
        Some(name) => {
            for view in ViewKind::ALL.iter().filter(|view| view.name() == name) {
                print(&format!("{:#}\n", view.schema().to_value()))?;
            }
        }
        None => {
            let lines = ViewKind::ALL.iter().map(|view| format!("{:<10} {}\n", view.name(), view.command()));
            print(&lines.collect::<String>())?;
        }
    }
    Ok(Exit::Done)
}
