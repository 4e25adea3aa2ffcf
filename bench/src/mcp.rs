//! Tools of MCP servers: what they cost a turn, and what they cost a request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use provost_event::{Outcome, SandboxPolicy, ToolSpec};
use provost_harness::{AgentHarness, HarnessDeps, Models, NoCallback, NoSandbox, ToolRegistry};
use provost_llm::WireFormat;
use provost_mcp_client::{Catalog, McpServers, Pins, PinsFile, Reach, ServerSetup, ToolDefinition};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::agent::{self, Noop, Store};
use crate::case::Case;
use crate::http;
use crate::measure::Start;
use crate::model_server::{ModelServer, base_url};
use crate::sample::{Sample, count, in_child};
use crate::table::{self, Target};

/// Tools of the server.
const TOOLS: usize = 250;
/// Tokens that they may take of a request, by searching.
const TOKENS_MAX: f64 = 2_000.0;
/// Estimated tokens above which tools are searched for, as the settings have it.
const SEARCH_ABOVE: u64 = 6_000;

/// What an agent is shown of the server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ShownTools {
    /// There is no server.
    None,
    /// Their names, and what finds them.
    Searched,
    /// All of them in full.
    All,
}

/// Measures and prints. `pins`: a folder with what a user has agreed to of real servers, whose tools are counted too.
pub(crate) fn report(options: &Options, pins: Option<&Path>) -> anyhow::Result<()> {
    cpu(options)?;
    table::head("Tokens of tools in a request, by o200k");
    tokens(&format!("{TOOLS} tools of a tracker"), &tracker(), Target::AtMost(TOKENS_MAX))?;
    if let Some(pins) = pins {
        let servers = real(pins)?;
        for server in &servers {
            let size = format!("{} tools", server.tools.len());
            let specs = specs(std::slice::from_ref(server))?;
            table::row(
                &format!("{}, in full", server.server),
                &size,
                "tokens",
                &[cost(&specs)?],
                Target::None,
            );
        }
        tokens(&format!("{} real servers", servers.len()), &servers, Target::None)?;
    }
    Ok(())
}

fn cpu(options: &Options) -> anyhow::Result<()> {
    let server = ModelServer::start()?;
    table::head(&format!("A turn with {TOOLS} tools of an MCP server, over HTTP (anthropic), log durable"));
    let calls = options.sized(200, 1_000);
    let ways = [
        (ShownTools::None, "no tools of servers"),
        (ShownTools::Searched, "250, found by searching"),
        (ShownTools::All, "250, in full"),
    ];
    let mut samples = ways.map(|_| Vec::new());
    for _ in 0..options.runs {
        for ((shown, _), samples) in ways.iter().zip(&mut samples) {
            let case = Case::Mcp { shown: *shown, calls, port: server.port };
            samples.push(in_child(&case, options.dir())?);
        }
    }
    let [without, ..] = &samples;
    let size = format!("{calls} calls");
    for ((shown, what), samples) in ways.iter().zip(&samples) {
        let cpu = samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
        table::row(&format!("{what}: CPU"), &size, "µs/turn", &cpu, Target::None);
        if *shown == ShownTools::None {
            continue;
        }
        let more = samples.iter().zip(without).map(|(with, without)| with.cpu_us() - without.cpu_us());
        table::row(
            &format!("{what}: more than without"),
            &size,
            "µs/turn",
            &more.collect::<Vec<_>>(),
            Target::None,
        );
    }
    Ok(())
}

/// One conversation.
pub(crate) async fn case(shown: ShownTools, calls: usize, port: u16, dir: &Path) -> anyhow::Result<Sample> {
    let (backend, _) = agent::backend(Store::Sqlite, dir)?;
    let model = http::model(WireFormat::Anthropic, &base_url(port, calls, 0))?;
    let mut policy = agent::policy(dir)?;
    let mut tools = ToolRegistry::new().with(Noop::new()?);
    if shown != ShownTools::None {
        let catalog = catalog(&tracker(), dir)?;
        let more = catalog.registry(&McpServers::new(Arc::new(NoSandbox)));
        tools = tools.and(more);
        policy.agent.tools.extend(match shown {
            ShownTools::All => catalog.specs(),
            ShownTools::None | ShownTools::Searched => catalog.offered(SEARCH_ABOVE),
        });
    }
    let harness = AgentHarness::new(HarnessDeps {
        callback: Arc::new(NoCallback),
        ..HarnessDeps::new(Arc::new(backend), Models::new().with(agent::MODEL, Arc::new(model)), tools)
    });
    let start = Start::now()?;
    let mut run = harness.start(agent::run_id(), agent::GOAL, policy).await?;
    let outcome = run.run(&CancellationToken::new()).await?;
    let sample = start.sample(calls + 1)?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "the run came to {outcome:?}");
    Ok(sample)
}

fn tokens(what: &str, servers: &[Pins], target: Target) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let catalog = catalog(servers, dir.path())?;
    let all = catalog.specs();
    let size = format!("{} tools", all.len());
    table::row(&format!("{what}, in full"), &size, "tokens", &[cost(&all)?], Target::None);
    table::row(&format!("{what}, by searching"), &size, "tokens", &[cost(&catalog.offered(0))?], target);
    Ok(())
}

fn specs(servers: &[Pins]) -> anyhow::Result<Vec<ToolSpec>> {
    let dir = tempfile::tempdir()?;
    Ok(catalog(servers, dir.path())?.specs())
}

/// Tokens of tools as a request has them.
fn cost(specs: &[ToolSpec]) -> anyhow::Result<f64> {
    let tokenizer = tiktoken_rs::o200k_base()?;
    let of = |spec: &ToolSpec| {
        let parts = [spec.name.as_str(), &spec.description, spec.input_schema.text()];
        parts.map(|text| tokenizer.encode_ordinary(text).len()).iter().sum::<usize>()
    };
    Ok(count(specs.iter().map(of).sum()))
}

/// The tools of servers that the user has agreed to, in `dir`.
fn catalog(servers: &[Pins], dir: &Path) -> anyhow::Result<Catalog> {
    let mut setups = Vec::new();
    for pins in servers {
        let file = PinsFile::of(dir, &pins.server, "bench");
        file.write(pins)?;
        setups.push(setup(pins, file.path().to_owned(), dir));
    }
    let (catalog, notices) = Catalog::read(setups);
    ensure!(notices.is_empty(), "{notices:?}");
    Ok(catalog)
}

fn setup(pins: &Pins, file: PathBuf, dir: &Path) -> ServerSetup {
    ServerSetup {
        name: pins.server.clone(),
        reach: Reach::Program {
            command: "true".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: dir.to_owned(),
        },
        written: pins.written.clone(),
        tools: Vec::new(),
        idempotent: Vec::new(),
        subjects: std::collections::BTreeMap::new(),
        always_load: false,
        timeout: Duration::from_secs(60),
        sandbox: SandboxPolicy::default(),
        pins: file,
    }
}

/// A server with many tools.
fn tracker() -> Vec<Pins> {
    let kinds = ["create", "list", "read", "update", "delete"];
    let things = ["issue", "pull_request", "branch", "release", "review_comment"];
    let text = |what: &str| serde_json::json!({ "type": "string", "description": what });
    let all = (0..).flat_map(|round| things.map(|thing| (round, thing)));
    let all = all.flat_map(|(round, thing)| kinds.map(|kind| (round, thing, kind))).take(TOOLS);
    let tools = all.map(|(round, thing, kind): (usize, _, _)| ToolDefinition {
        name: format!("{kind}_{thing}_{round}"),
        title: None,
        description: format!("{kind} a {thing} of a project; the result has its number and address."),
        input_schema: serde_json::json!({
            "type": "object",
            "properties": {
                "project": text("The project, as owner/name."), "id": text("The number."),
                "body": text("The text, as Markdown."),
            },
            "required": ["project"],
        }),
        output_schema: None,
        annotations: serde_json::Value::Null,
    });
    vec![Pins::new("tracker", &["command: tracker".to_owned()], tools.collect())]
}

/// What a user has agreed to, from the folder `mcp` of a state folder.
fn real(folder: &Path) -> anyhow::Result<Vec<Pins>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut servers = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            servers.extend(PinsFile::at(path).read()?);
        }
    }
    servers.sort_by(|a, b| a.server.cmp(&b.server));
    ensure!(!servers.is_empty(), "{} has nothing that was agreed to", folder.display());
    Ok(servers)
}
