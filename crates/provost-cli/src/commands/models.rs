//! `provost models`: the providers and models that are known, and whether they can be reached.

mod check;
mod update;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use provost_config::{Request, Scope, Settled, load};
use provost_event::{MicroDollars, Price};
use provost_llm::{ModelFacts, Origin, Provider, ProviderSettings};
use provost_view::{FactsOrigin, KeyState, ListedModel, ListedProvider, ModelList, ViewVersion};

use super::descent::Act;
use super::{current_dir, print};
use crate::cli::{ModelsArgs, ModelsCommand};
use crate::exit::{Exit, Refusal};
use crate::render::{Cells, Table, safe, terminal_width, tokens};
use crate::wiring::variables;
use provost_runtime::{Variables, asked, available_tools, providers};

pub(super) const fn act_of(args: &ModelsArgs) -> Act {
    match args.command {
        // They change prices and settings, or spend outside of every budget.
        Some(ModelsCommand::Update { dry_run: false, .. }) => Act::Acts("models update"),
        Some(ModelsCommand::Check { .. }) => Act::Acts("models check"),
        Some(ModelsCommand::Update { dry_run: true, .. }) | None => Act::Looks,
    }
}

pub(super) async fn models(args: ModelsArgs) -> anyhow::Result<Exit> {
    let (folder, variables) = (current_dir()?, variables());
    let request = Request::new(Scope::Project, &folder, &variables, available_tools());
    let settled = load(&request)?.0.settled()?;
    match args.command {
        Some(ModelsCommand::Check { name }) => check::check(name, settled, &folder, &variables).await,
        Some(ModelsCommand::Update { file, dry_run, json }) => {
            update::update(&update::Update { file, dry_run, json }, &settled)
        }
        None => list(&args, &settled, &variables),
    }
}

fn list(args: &ModelsArgs, settled: &Settled, variables: &Variables) -> anyhow::Result<Exit> {
    let settings = providers(&settled.settings, variables);
    let wanted = |provider: &&Provider| args.provider.as_ref().is_none_or(|wanted| *wanted == provider.name);
    let shown = settings.providers.iter().filter(wanted).collect::<Vec<_>>();
    if shown.is_empty() {
        let names = settings.providers.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>();
        let what = format!("there is no provider `{}`", args.provider.as_deref().unwrap_or_default());
        return Err(Refusal::new(what, format!("there are {}", names.join(", "))).into());
    }
    let used = asked(&settled.settings.model);
    if args.json {
        let providers = shown.iter().map(|provider| listed(provider, &settings)).collect();
        let list = ModelList { v: ViewVersion, model: used.to_owned(), providers };
        print(&format!("{}\n", serde_json::to_string(&list)?))?;
    } else {
        print(&safe(&page(&shown, &settings, used)))?;
    }
    Ok(Exit::Done)
}

/// Whether the key that `provider` needs is there.
fn key_state(provider: &Provider, settings: &ProviderSettings) -> KeyState {
    match settings.key(&provider.name) {
        Some(_) => KeyState::There,
        None if provider.key_required => KeyState::Missing,
        None => KeyState::NotNeeded,
    }
}

fn key_in_words(key: KeyState, provider: &Provider) -> String {
    let variable = provider.key_env.as_deref().unwrap_or_default();
    match key {
        KeyState::There => "there".to_owned(),
        KeyState::Missing => format!("missing: set {variable}"),
        KeyState::NotNeeded => "not needed".to_owned(),
    }
}

fn page(shown: &[&Provider], settings: &ProviderSettings, used: &str) -> String {
    let mut table =
        Table::new(&[("PROVIDER", Cells::Text), ("KEY", Cells::CutAtEnd), ("ADDRESS", Cells::CutAtEnd)]);
    for provider in shown {
        let key = key_in_words(key_state(provider, settings), provider);
        table.row(vec![provider.name.clone(), key, without_userinfo(&provider.base_url)]);
    }
    let mut out = table.lines(terminal_width());
    // Of many providers only those that can be asked now.
    let is_listed =
        |provider: &&&Provider| shown.len() == 1 || key_state(provider, settings) != KeyState::Missing;
    let facts = shown.iter().filter(is_listed).flat_map(|provider| facts_of(provider, settings));
    let facts = facts.collect::<Vec<_>>();
    if !facts.is_empty() {
        // Writing to a String can't fail, here and below.
        let _ = write!(out, "\n{}", models_table(&facts, used));
        out.push_str("\nPrices are US dollars for a million tokens.\n");
        for update in updates(&facts) {
            let _ = writeln!(out, "{update}");
        }
    }
    let hidden = shown.iter().filter(|provider| !is_listed(provider));
    let hidden = hidden.filter(|provider| facts_of(provider, settings).next().is_some());
    let hidden = hidden.map(|provider| provider.name.as_str()).collect::<Vec<_>>();
    if !hidden.is_empty() {
        let _ = writeln!(out, "\n`provost models PROVIDER` also lists models of {}.", hidden.join(", "));
    }
    if settings.facts(used).is_none() && used.contains('/') && !used.contains(':') {
        let _ = writeln!(
            out,
            "\nagent.model is {used}: its window and price aren't known; [models.\"{used}\"] states them."
        );
    }
    out
}

fn models_table(facts: &[ModelFacts], used: &str) -> String {
    let mut table = Table::new(&[
        ("MODEL", Cells::CutAtStart),
        ("WINDOW", Cells::LeftOut),
        ("ANSWER", Cells::LeftOut),
        ("INPUT", Cells::LeftOutLast),
        ("CACHED", Cells::LeftOut),
        ("OUTPUT", Cells::LeftOutLast),
        ("FROM", Cells::CutAtEnd),
        ("", Cells::CutAtEnd),
    ]);
    facts.iter().for_each(|facts| table.row(row(facts, used)));
    table.lines(terminal_width())
}

fn row(facts: &ModelFacts, used: &str) -> Vec<String> {
    let unknown = || "?".to_owned();
    let count = |count: Option<u64>| count.map_or_else(unknown, |count| tokens(count).replace(".0", ""));
    let price =
        |of: fn(Price) -> MicroDollars| facts.price.map_or_else(unknown, |price| of(price).to_string());
    let long = facts.price.and_then(|price| price.long);
    let mark = if facts.name == used { Some("agent.model".to_owned()) } else { None };
    let long = long.map(|long| format!("more above {}", tokens(long.above_tokens).replace(".0", "")));
    let retires = facts.retires.as_ref().map(|day| format!("retires {day}"));
    vec![
        facts.name.clone(),
        count(facts.window_tokens),
        count(facts.output_tokens_max.map(u64::from)),
        price(|price| price.input),
        price(|price| price.cache_read),
        price(|price| price.output),
        from(facts),
        mark.into_iter().chain(long).chain(retires).collect::<Vec<_>>().join(", "),
    ]
}

/// The source of what is known of the model.
fn from(facts: &ModelFacts) -> String {
    match (facts.origin, &facts.as_of) {
        (Origin::Own, ..) => "yours".to_owned(),
        (Origin::Updated, Some(day)) => format!("update {day}"),
        (Origin::Updated, ..) => "update".to_owned(),
        (Origin::BuiltIn, ..) => "built in".to_owned(),
    }
}

/// Which files the updates were from.
fn updates(facts: &[ModelFacts]) -> BTreeSet<String> {
    let updated = facts.iter().filter(|facts| facts.origin == Origin::Updated);
    let said = updated.filter_map(|facts| {
        Some(format!("Rows from {} were taken from {}.", from(facts), facts.source.as_ref()?))
    });
    said.collect()
}

/// The known models of a provider, by the names that they have there.
fn facts_of<'a>(
    provider: &'a Provider,
    settings: &'a ProviderSettings,
) -> impl Iterator<Item = ModelFacts> + 'a {
    settings.catalog.of_provider(&provider.name).map(|facts| ModelFacts {
        price: facts.price.or_else(|| settings.facts(&facts.name)?.price),
        ..facts.clone()
    })
}

fn listed(provider: &Provider, settings: &ProviderSettings) -> ListedProvider {
    ListedProvider {
        name: provider.name.clone(),
        wire: provider.wire.name().to_owned(),
        base_url: without_userinfo(&provider.base_url),
        key: key_state(provider, settings),
        key_env: provider.key_env.clone(),
        models: facts_of(provider, settings).map(listed_model).collect(),
    }
}

fn listed_model(facts: ModelFacts) -> ListedModel {
    ListedModel {
        name: facts.name,
        window_tokens: facts.window_tokens,
        output_tokens_max: facts.output_tokens_max,
        price_micro_usd_per_million_tokens: facts.price,
        images: facts.images.unwrap_or(false),
        retires: facts.retires,
        successor: facts.successor,
        origin: match facts.origin {
            Origin::BuiltIn => FactsOrigin::BuiltIn,
            Origin::Updated => FactsOrigin::Updated,
            Origin::Own => FactsOrigin::Own,
        },
        source: facts.source,
        as_of: facts.as_of,
    }
}

/// The address without what may stand before its host.
fn without_userinfo(base_url: &str) -> String {
    provost_config::without_password(base_url)
}
