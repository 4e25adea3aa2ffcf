//! `provost models check`: one real call.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use provost_config::Settled;
use provost_engine::Answer;
use provost_event::{Block, DeltaKind, ErrorClass, ModelFailure, ModelPolicy, RunId, SessionId};
use provost_harness::{DeltaSink, Message, ModelRequest, Part, Role, ToolChoice};
use provost_llm::{Provider, ProviderSettings};
use provost_view::KeyState;
use tokio_util::sync::CancellationToken;

use super::key_state;
use crate::commands::print;
use crate::exit::{Exit, Refusal};
use crate::render::{amount, duration, one_line, safe};
use provost_runtime::{Chosen, Variables, asked, choose_model, providers};

const QUESTION: &str = "Answer with the one word: ready";
/// Enough for a model that reasons before it answers.
const OUTPUT_TOKENS_MAX: u32 = 2_048;
const WIDTH: usize = 200;
/// Models named where the one that was asked isn't there.
const LISTED_MAX: usize = 5;

pub(super) async fn check(
    name: Option<String>,
    mut settled: Settled,
    folder: &Path,
    variables: &Variables,
) -> anyhow::Result<Exit> {
    // The budget of a run doesn't apply here.
    settled.settings.budget.money = None;
    if let Some(name) = name {
        settled.settings.model = name;
    }
    settled.settings.model = asked(&settled.settings.model).to_owned();
    let all = providers(&settled.settings, variables);
    let chosen = choose_model(&settled, folder, variables)?;
    let name = chosen.policy.name.clone();
    let provider = name.split_once('/').and_then(|(of, _)| all.providers.get(of));
    let Some(provider) = provider else {
        return Err(Refusal::new(format!("{name} is a file's: there is no provider to ask"), "").into());
    };
    let started = Instant::now();
    let outcome = ask(&chosen).await;
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match outcome {
        Ok(answer) => {
            print(&safe(&said(&answer, &chosen.policy, took_ms)))?;
            Ok(Exit::Done)
        }
        Err(failure) => {
            let key = key_state(provider, &all);
            let there = match failure.class {
                ErrorClass::NotFound => listed(&name, &all).await,
                _ => Vec::new(),
            };
            print(&safe(&wrong(&failure, &name, provider, key, &there)))?;
            Ok(Exit::Failed)
        }
    }
}

async fn ask(chosen: &Chosen) -> Result<Answer, ModelFailure> {
    struct Deaf;
    impl DeltaSink for Deaf {
        fn delta(&self, _: DeltaKind, _: &str) {}
    }
    let question = Message::new(Role::User, vec![Part::Block(Block::Text(QUESTION.to_owned()))]);
    let request = ModelRequest {
        session: SessionId::root(RunId::from_entropy(0)),
        turn: 1,
        purpose: provost_event::Purpose::Turn,
        answers_before: 0,
        summaries_before: 0,
        system: "",
        tools: &Arc::from([]),
        messages: &[Arc::new(question)],
        output_tokens_max: chosen.policy.output_tokens_max.min(OUTPUT_TOKENS_MAX),
        effort: chosen.policy.effort,
        patience: 1,
        tool_choice: ToolChoice::Auto,
    };
    let cancel = CancellationToken::new();
    let stop = cancel.clone().drop_guard();
    let answer = chosen.model.answer(request, &Deaf, &cancel).await;
    drop(stop);
    answer
}

fn said(answer: &Answer, policy: &ModelPolicy, took_ms: u64) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text = one_line(&texts.collect::<String>(), WIDTH);
    let usage = answer.usage;
    let cost = policy.price.map_or_else(|| "price unknown".to_owned(), |price| price.cost(usage).to_string());
    let effort = policy.effort.map(|effort| format!("  effort     {}\n", effort.name())).unwrap_or_default();
    format!(
        "{} works\n  it says    {}\n  model      {}\n{effort}  took       {}\n  tokens     {} in, {} out ({cost})\n",
        policy.name,
        if text.is_empty() { "(nothing)" } else { &text },
        answer.model,
        duration(took_ms),
        amount(usage.prompt_tokens()),
        amount(usage.output_tokens),
    )
}

/// The models that the provider lists, the nearest to `name` first; none if it doesn't list any.
async fn listed(name: &str, settings: &ProviderSettings) -> Vec<String> {
    let Ok(model) = settings.provider_model(name) else { return Vec::new() };
    let mut names = model.listed().await.unwrap_or_default();
    let asked = name.split_once('/').map_or(name, |(_, asked)| asked);
    names.sort_by_cached_key(|listed| strsim::damerau_levenshtein(listed, asked));
    names
}

fn wrong(failure: &ModelFailure, name: &str, provider: &Provider, key: KeyState, there: &[String]) -> String {
    let mut out = format!("{name} doesn't work: {}\n", failure.class.words());
    let mut row = |head: &str, text: &str| {
        if !text.is_empty() {
            out.push_str(&format!("  {head:<10} {text}\n"));
        }
    };
    row("it says", &one_line(&failure.message, WIDTH));
    row("status", &failure.status.map(|status| status.to_string()).unwrap_or_default());
    row("request", failure.request_id.as_deref().unwrap_or_default());
    let nearest = there.iter().take(LISTED_MAX).map(|model| format!("{}/{model}", provider.name));
    let more = there.len().saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !there.is_empty() {
        row("it has", &format!("{}{more}", nearest.collect::<Vec<_>>().join(", ")));
    }
    row("address", &super::without_userinfo(&provider.base_url));
    row("try", &advice(failure, provider, key));
    out
}

fn advice(failure: &ModelFailure, provider: &Provider, key: KeyState) -> String {
    let variable = provider.key_env.as_deref().unwrap_or("the key");
    match failure.class {
        ErrorClass::Unauthorized if key == KeyState::NotNeeded => {
            format!("it wants a key after all: set {variable}")
        }
        ErrorClass::Unauthorized => format!("look whether {variable} holds the key of {}", provider.name),
        ErrorClass::Forbidden => "look at the account's rights and credit at the provider".to_owned(),
        ErrorClass::NotFound => format!(
            "look at the model's name and at [providers.{}] base_url (the provider may not know either)",
            provider.name
        ),
        ErrorClass::Transport if provider.free => {
            format!("start {} on this machine, or set [providers.{}] base_url", provider.name, provider.name)
        }
        ErrorClass::RateLimited if failure.message.contains("quota") => {
            "look at the account's credit and limits at the provider".to_owned()
        }
        ErrorClass::RateLimited | ErrorClass::Overloaded | ErrorClass::Server => {
            "try again later; a run tries by itself".to_owned()
        }
        ErrorClass::Stalled | ErrorClass::Cut => {
            "a model that is being loaded may need longer: try again".to_owned()
        }
        ErrorClass::MalformedResponse => {
            format!("look whether [providers.{}] wire is what that server speaks", provider.name)
        }
        ErrorClass::Redirected => {
            format!("set [providers.{}] base_url to the address that answers", provider.name)
        }
        ErrorClass::QuotaUsedUp => failure.class.cause().remedy().to_owned(),
        _ => String::new(),
    }
}
