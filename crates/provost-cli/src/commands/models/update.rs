//! `provost models update`: what a public table of models adds to what is known.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use jiff::Zoned;
use provost_config::read_limited;
use provost_config::{Settled, UpdatedModels};
use provost_event::{MicroDollars, Price};
use provost_llm::{Catalog, ModelChange, ModelFacts, ProviderSettings, PublicTable};
use serde_json::{Value, json};

use crate::commands::{print, shown};
use crate::exit::{Exit, Refusal};
use crate::render::{amount, plural, safe};
use provost_runtime::{Variables, providers};

/// More than any table has.
const TABLE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What was asked for.
pub(super) struct Update {
    pub(super) file: PathBuf,
    pub(super) dry_run: bool,
    pub(super) json: bool,
}

/// The result of reading a table.
struct Found {
    table: PublicTable,
    changes: Vec<ModelChange>,
    /// Where it differs from the user's settings, which stay: what stays, and what it says.
    kept: Vec<(ModelFacts, ModelFacts)>,
}

pub(super) fn update(asked: &Update, settled: &Settled) -> anyhow::Result<Exit> {
    let found = found(asked, settled)?;
    let at = UpdatedModels::load(settled.user_path()).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let writes = !asked.dry_run && !found.changes.is_empty();
    if writes {
        let source = name(asked);
        let as_of = Zoned::now().date().to_string();
        let row = |change: &ModelChange| ModelFacts {
            source: Some(source.clone()),
            as_of: Some(as_of.clone()),
            ..change.new.clone()
        };
        UpdatedModels::add(settled.user_path(), found.changes.iter().map(row).collect())
            .with_context(|| format!("can't write {}; nothing has changed", shown(at.path())))?;
    }
    let written = writes.then(|| shown(at.path()));
    if asked.json {
        print(&format!("{}\n", as_json(&found, asked, written)))?;
    } else {
        print(&safe(&page(&found, asked, written)))?;
    }
    Ok(Exit::Done)
}

fn found(asked: &Update, settled: &Settled) -> anyhow::Result<Found> {
    let refused = |why: String| Refusal::new(format!("{}: {why}", shown(&asked.file)), "nothing has changed");
    let text = match read_limited(&asked.file, TABLE_BYTES_MAX) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(refused("there is no such file".to_owned()).into()),
        Err(error) => return Err(refused(format!("can't be read: {error}")).into()),
    };
    let all: ProviderSettings = providers(&settled.settings, &Variables::new());
    let table = PublicTable::parse(&text, &all.providers).map_err(|error| refused(error.to_string()))?;
    let mut kept = Vec::new();
    let own = |change: ModelChange| match settled.settings.named.models.get(&change.new.name) {
        Some(own) => without_own(change, &own.facts(""), &mut kept),
        None => Some(change),
    };
    let known = Catalog::built_in().updated(&settled.settings.named.updated);
    let changes = table.changes(&known).into_iter().filter_map(own).collect();
    Ok(Found { table, changes, kept })
}

/// What is left of a change where the user's settings have no value; differing values of theirs go into `kept`.
fn without_own(
    ModelChange { old, new }: ModelChange,
    own: &ModelFacts,
    kept: &mut Vec<(ModelFacts, ModelFacts)>,
) -> Option<ModelChange> {
    let bare = || ModelFacts { name: new.name.clone(), ..ModelFacts::default() };
    let rest = ModelFacts {
        window_tokens: new.window_tokens.filter(|_| own.window_tokens.is_none()),
        output_tokens_max: new.output_tokens_max.filter(|_| own.output_tokens_max.is_none()),
        price: new.price.filter(|_| own.price.is_none()),
        images: new.images.filter(|_| own.images.is_none()),
        reasoning: new.reasoning.filter(|_| own.reasoning.is_none()),
        ..new.clone()
    };
    let stays = ModelFacts {
        window_tokens: own.window_tokens.filter(|_| new.window_tokens.is_some()),
        output_tokens_max: own.output_tokens_max.filter(|_| new.output_tokens_max.is_some()),
        price: own.price.filter(|_| new.price.is_some()),
        ..bare()
    };
    if !differences(Some(&stays), &new).is_empty() && stays != bare() {
        let says = ModelFacts {
            window_tokens: new.window_tokens.filter(|_| stays.window_tokens.is_some()),
            output_tokens_max: new.output_tokens_max.filter(|_| stays.output_tokens_max.is_some()),
            price: new.price.filter(|_| stays.price.is_some()),
            ..bare()
        };
        kept.push((stays, says));
    }
    (rest != bare()).then_some(ModelChange { old, new: rest })
}

/// One fact that differs: what it is, what it was, what it is now.
struct Difference {
    what: &'static str,
    old: Option<String>,
    new: String,
}

/// The facts in which `new` differs from `old`.
fn differences(old: Option<&ModelFacts>, new: &ModelFacts) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |what, old: Option<String>, new: Option<String>| match new {
        Some(new) if old.as_ref() != Some(&new) => all.push(Difference { what, old, new }),
        _ => {}
    };
    let window = |facts: &ModelFacts| facts.window_tokens.map(amount);
    add("window", old.and_then(window), window(new));
    let answer = |facts: &ModelFacts| facts.output_tokens_max.map(|cap| amount(cap.into()));
    add("answer", old.and_then(answer), answer(new));
    let old_price = old.and_then(|old| old.price);
    let mut price = |what, of: fn(Price) -> MicroDollars| {
        add(what, old_price.map(of).map(dollars), new.price.map(of).map(dollars));
    };
    price("input", |price| price.input);
    price("output", |price| price.output);
    price("cached", |price| price.cache_read);
    price("to cache", |price| price.cache_write);
    add("long requests", old_price.and_then(long), new.price.and_then(long));
    add("retires", old.and_then(|old| old.retires.clone()), new.retires.clone());
    all
}

fn long(price: Price) -> Option<String> {
    let long = price.long?;
    Some(format!(
        "above {}: input {} %, output {} %",
        amount(long.above_tokens),
        long.input_percent,
        long.output_percent
    ))
}

/// An amount with as many decimals as it has, and at least two.
fn dollars(MicroDollars(micro): MicroDollars) -> String {
    let decimals = format!("{:06}", micro % 1_000_000);
    let kept = decimals.trim_end_matches('0');
    format!("${}.{kept:0<2}", micro / 1_000_000)
}

fn page(found: &Found, asked: &Update, written: Option<String>) -> String {
    let Found { table, changes, kept } = found;
    let mut out = format!(
        "{} is {} table of {}, {} of them chat models of providers that Provost knows.\n\
         Windows and answers are in tokens, prices in US dollars for a million tokens.\n",
        shown(&asked.file),
        table.kind(),
        plural(table.entries() as u64, "model"),
        amount(table.models().len() as u64),
    );
    let (changed, new) = changes.iter().partition::<Vec<_>, _>(|change| change.old.is_some());
    let lines = |changes: &[&ModelChange]| -> Vec<String> {
        changes.iter().map(|change| line(&change.new.name, change.old.as_ref(), &change.new)).collect()
    };
    section(&mut out, "Changed", &lines(&changed));
    section(&mut out, "New", &lines(&new));
    let stays = |(stays, says): &(ModelFacts, ModelFacts)| {
        let all = differences(Some(says), stays).into_iter();
        let said = all.map(|Difference { what, old, new }| match old {
            Some(old) => format!("{what} {new} (the table: {old})"),
            None => format!("{what} {new}"),
        });
        format!("{}  {}", stays.name, said.collect::<Vec<_>>().join(", "))
    };
    section(&mut out, "Yours, and kept", &kept.iter().map(stays).collect::<Vec<_>>());
    let ends = match (written, changes.is_empty()) {
        (Some(path), _) => format!("Written to {path}. `provost models` shows what counts now."),
        (None, true) => "Nothing is new: nothing has changed.".to_owned(),
        (None, false) => "Nothing has changed: without --dry-run this would be taken over.".to_owned(),
    };
    // Writing to a String can't fail, here and below.
    let _ = writeln!(out, "\n{} changed, {} new, {} kept. {ends}", changed.len(), new.len(), kept.len());
    out
}

fn section(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(out, "\n{title}:");
    }
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

fn line(name: &str, old: Option<&ModelFacts>, new: &ModelFacts) -> String {
    let said =
        differences(old, new).into_iter().map(|Difference { what, old: was, new: is }| match (was, old) {
            (Some(was), _) => format!("{what} {was} → {is}"),
            (None, Some(_)) => format!("{what} unknown → {is}"),
            (None, None) => format!("{what} {is}"),
        });
    let said = said.collect::<Vec<_>>();
    let said = if said.is_empty() { "window and price aren't said".to_owned() } else { said.join(", ") };
    format!("{name}  {said}")
}

fn as_json(found: &Found, asked: &Update, written: Option<String>) -> Value {
    let kept = found.kept.iter().map(|(stays, says)| json!({ "yours": stays, "table": says }));
    let changes = found.changes.iter().map(|change| json!({ "old": change.old, "new": change.new }));
    json!({
        "file": shown(&asked.file),
        "models": found.table.models().len(),
        "changes": changes.collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
        "written": written,
    })
}

/// The name of the table's file.
fn name(asked: &Update) -> String {
    asked.file.file_name().map_or_else(|| shown(&asked.file), |name| name.to_string_lossy().into_owned())
}
