//! One entry of a log in full, as it was when it was made.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use provost_event::{
    ActorKey, AssistantMessage, Block, Compacted, ConversationEntry, Entry, FinalSummaryFinished, Record,
    Seq, SystemItem, ToolEntry, ToolFinished, ToolStatus, UserMessage,
};
use provost_harness::{Backend, read_conversation};
use serde_json::Value;

use super::seen::{CompactionView, Form};
use super::{READ_MAX, each, who};
use crate::commands::print;
use crate::commands::show::date_and_time;
use crate::exit::Refusal;
use crate::render::{compaction_in_words, duration, freed, pictures, safe};

/// Prints the entry `seq` of the log of `key`.
pub(super) async fn print_entry(
    backend: &dyn Backend,
    key: ActorKey,
    seq: Seq,
    json: bool,
) -> anyhow::Result<()> {
    let before = Seq(seq.0.saturating_sub(1));
    let record = match key {
        ActorKey::Session(session) => read_conversation(backend, session, before, 1).await?,
        ActorKey::Run(_) => backend.read(key, before, 1).await?,
    };
    let Some(record) = record.into_iter().find(|record| record.seq == seq) else {
        return Err(missing(backend, key, seq).await?.into());
    };
    if json {
        return print(&format!("{}\n", record.to_line()?));
    }
    let form = form_now(backend, key, &record).await?;
    let whole = whole(backend, &record).await?;
    print(&safe(&page(&record, form, whole.as_deref())?))
}

async fn missing(backend: &dyn Backend, key: ActorKey, seq: Seq) -> anyhow::Result<Refusal> {
    let head = each(backend, key, |_| ()).await?;
    let whose = match key {
        ActorKey::Run(run) => format!("the log of run {run} itself"),
        ActorKey::Session(session) => format!("the log of agent {} of run {}", session.agent, session.run),
    };
    let hint = format!("`provost logs {}` lists the entries with their numbers", key.run());
    Ok(Refusal::new(format!("{whose} has no entry {seq}: its last is {head}"), hint))
}

/// How its agent sees it now.
async fn form_now(backend: &dyn Backend, key: ActorKey, record: &Record) -> anyhow::Result<Form> {
    let (mut seen, mut after) = (CompactionView::default(), record.seq);
    loop {
        let records: Vec<Arc<Record>> = match key {
            ActorKey::Session(session) => read_conversation(backend, session, after, READ_MAX).await?,
            ActorKey::Run(_) => backend.read(key, after, READ_MAX).await?,
        };
        let Some(last) = records.last() else { return Ok(seen.form(record)) };
        after = last.seq;
        records.iter().for_each(|record| seen.note(record));
    }
}

/// All of an output of which the entry has only a part.
async fn whole(backend: &dyn Backend, record: &Record) -> anyhow::Result<Option<String>> {
    let Entry::Tool(ToolEntry::Finished(ToolFinished { whole: Some(id), .. })) = &record.entry else {
        return Ok(None);
    };
    let body = backend.get_blob(id).await?;
    Ok(body.map(|body| String::from_utf8_lossy(&body).into_owned()))
}

fn page(record: &Record, form: Form, whole: Option<&str>) -> anyhow::Result<String> {
    let whose = match record.actor {
        ActorKey::Run(_) => "the run itself".to_owned(),
        ActorKey::Session(_) => format!("agent {}", who(record.actor)),
    };
    let mut out =
        format!("entry {} of {whose} · {} · {}\n", record.seq, record.entry.kind(), date_and_time(record.at));
    // Writing to a String can't fail, here and below.
    if let Some(words) = form.in_words(&record.entry) {
        let _ = writeln!(out, "{words}");
    }
    out.push('\n');
    out.push_str(body(&record.entry, whole)?.trim_end());
    out.push('\n');
    Ok(out)
}

/// Its contents: texts as they are, anything else as it is stored.
fn body(entry: &Entry, whole: Option<&str>) -> anyhow::Result<String> {
    Ok(match entry {
        Entry::Conversation(ConversationEntry::UserMessage(UserMessage { content, by })) => {
            format!("{by}:\n{}", blocks(content))
        }
        Entry::Conversation(ConversationEntry::AssistantMessage(AssistantMessage { content, .. })) => {
            blocks(content)
        }
        Entry::Conversation(ConversationEntry::SystemItem(SystemItem { body, .. })) => body.clone(),
        Entry::Tool(ToolEntry::Finished(finished)) => finished_in_full(finished, whole),
        Entry::Conversation(ConversationEntry::Compacted(compacted)) => compacted_in_full(compacted),
        Entry::Conversation(ConversationEntry::FinalSummary(FinalSummaryFinished {
            text, problem, ..
        })) => match problem {
            Some(problem) => format!("no final summary: {problem}"),
            None => text.clone(),
        },
        other => pretty(&other.body().context("can't show the entry")?)?,
    })
}

fn finished_in_full(finished: &ToolFinished, whole: Option<&str>) -> String {
    let ToolFinished { tool, status, output, images, duration_ms, .. } = finished;
    let took = duration(*duration_ms);
    let ended = match status {
        ToolStatus::Ok => took,
        ToolStatus::Error => format!("failed, {took}"),
        ToolStatus::Rejected => "not run".to_owned(),
        ToolStatus::Denied => "denied".to_owned(),
        ToolStatus::TimedOut => format!("timed out, {took}"),
        ToolStatus::Cancelled => format!("cancelled, {took}"),
        ToolStatus::Unknown => "interrupted".to_owned(),
    };
    let note = match (&finished.whole, whole) {
        (Some(_), Some(_)) => "; all of the output, of which the agent saw beginning and end",
        (Some(_), None) => "; as the agent saw it: the whole output isn't kept",
        (None, _) => "",
    };
    let images = if images.is_empty() { String::new() } else { format!("\n{}", pictures(images)) };
    format!("{tool} ({ended}{note})\n\n{}{images}", whole.unwrap_or(output))
}

fn compacted_in_full(compacted: &Compacted) -> String {
    let about = format!("{}, {}", compaction_in_words(compacted), freed(compacted));
    if compacted.summary.is_empty() {
        return about;
    }
    format!("{about}\nwhat stands for it:\n\n{}", compacted.summary)
}

fn blocks(content: &[Block]) -> String {
    content.iter().map(block_in_words).collect::<Vec<_>>().join("\n\n")
}

/// A block of a message, arguments as they were written.
pub(super) fn block_in_words(block: &Block) -> String {
    match block {
        Block::Text(text) => text.trim_end().to_owned(),
        Block::Image(image) => pictures([image]),
        Block::Thinking { text, .. } if text.trim().is_empty() => "(thought, not shown)".to_owned(),
        Block::Thinking { text, .. } => format!("(thought)\n{}", text.trim_end()),
        Block::Opaque { wire, .. } => format!("(for {wire} only)"),
        Block::ToolCall(call) => match &call.malformed {
            Some(malformed) => format!("→ {} with arguments that are no JSON: {malformed}", call.name),
            None => format!("→ {} {}", call.name, call.input.text()),
        },
    }
}

fn pretty(json: &str) -> anyhow::Result<String> {
    let value = serde_json::from_str::<Value>(json).context("can't show what the entry says")?;
    Ok(format!("{value:#}"))
}
