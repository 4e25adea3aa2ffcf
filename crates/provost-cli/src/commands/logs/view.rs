//! The conversation as the model sees it now: as the next call would send it.

use std::fmt::Write as _;

use console::Style;
use provost_event::ActorKey;
use provost_harness::Backend;
use provost_view::{ConversationView, SeenImage, SeenPart, SeenRole};

use super::entry::block_in_words;
use crate::commands::print;
use crate::exit::Refusal;
use crate::render::{plural, safe, size, tokens};

/// Prints what the agent of the log `key` sees.
pub(super) async fn print_view(backend: &dyn Backend, key: ActorKey, json: bool) -> anyhow::Result<()> {
    let ActorKey::Session(session) = key else {
        let what = "the run itself has no conversation";
        return Err(Refusal::new(what, "leave --agent out, or give it an agent's number").into());
    };
    let Some(view) = ConversationView::read(backend, session).await? else {
        let what = format!("agent {} of run {} hasn't begun", session.agent, session.run);
        return Err(Refusal::new(what, "").into());
    };
    print(&if json { format!("{}\n", serde_json::to_string(&view)?) } else { page(&view) })
}

fn page(view: &ConversationView) -> String {
    let (strong, quiet) = (Style::new().bold(), Style::new().dim());
    let room = view.tokens_max.map(|room| format!(" of {}", tokens(room))).unwrap_or_default();
    let about = format!(
        "after entry {}: {}, about {}{room} tokens with system prompt and {} (entry 1)",
        view.entry,
        plural(view.messages.len() as u64, "message"),
        tokens(view.estimated_tokens),
        plural(view.tools as u64, "tool"),
    );
    let mut out = format!("{}\n", quiet.apply_to(about));
    // Writing to a String can't fail, here and below.
    if let (Some(at), Some(through)) = (view.summed_up_at, view.summed_up_through) {
        let words = format!("entry {at} stands for entries 1 to {through}");
        let _ = writeln!(out, "{}", quiet.apply_to(words));
    }
    for message in &view.messages {
        let role = match message.role {
            SeenRole::User => "to the agent",
            SeenRole::Assistant => "the agent",
        };
        let _ = writeln!(out, "\n{}", strong.apply_to(format!("── {role}")));
        let parts = message.parts.iter().map(part_in_words).collect::<Vec<_>>().join("\n\n");
        let _ = writeln!(out, "{}", safe(&parts));
    }
    out
}

fn part_in_words(part: &SeenPart) -> String {
    match part {
        SeenPart::Block(block) => block_in_words(block),
        SeenPart::Image { image } => picture(image),
        SeenPart::ToolResult { tool_result: result } => {
            let failed = if result.is_error { ", failed" } else { "" };
            let images =
                result.images.iter().map(|image| format!("\n{}", picture(image))).collect::<String>();
            format!("← {}{failed}\n{}{images}", result.tool, result.output.trim_end())
        }
    }
}

fn picture(image: &SeenImage) -> String {
    format!("[{} {}]", image.kind.media_type(), size(image.bytes as u64))
}
