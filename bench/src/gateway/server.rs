//! A gateway in a process of its own, so that its cost is its own: a run with one metered program, its log on disk.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use provost_engine::{Event, RunEvent, SessionEvent};
use provost_event::{
    AgentPolicy, Channel, ExternalPolicy, Metering, ModelPolicy, Price, RunPolicy, SessionId, TerminalEvent,
    TerminalNoted,
};
use provost_gateway::{Gateway, GatewayLimits, GatewayOptions, GatewayProviders};
use provost_harness::{Backend, ModelGateway as _, Redactor, SystemClock};
use provost_llm::{ModelFacts, Provider, ProviderSettings, WireFormat};
use secrecy::SecretString;

use super::Ways;
use crate::agent::{self, Store};

/// The gateway's process; it ends with this.
pub(super) struct GatewayServer {
    child: Child,
    url: String,
    token: String,
}

impl GatewayServer {
    /// Starts one in front of the model server at `models`, with its log in `dir`.
    pub(super) fn start(models: &str, dir: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve-gateway")
            .arg(models)
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the gateway")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the gateway has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let url = words.next().context("the gateway says no address")?;
        let token = words.next().context("the gateway says no token")?;
        Ok(Self { child, url, token })
    }

    pub(super) fn ways(&self, models: &str) -> Ways {
        Ways {
            direct: models.to_owned(),
            through: self.url.clone(),
            token: self.token.clone(),
            gateway: self.child.id(),
        }
    }
}

impl Drop for GatewayServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Serves until standard input ends, which it does with the parent.
pub(crate) fn serve(models: &str, dir: &Path) -> anyhow::Result<()> {
    crate::measure::raise_open_files()?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let (backend, _) = agent::backend(Store::Sqlite, dir)?;
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let session = begin(&*backend, dir).await?;
        let gateway = Gateway::new(GatewayOptions {
            backend,
            settings: settings(models),
            providers: GatewayProviders {
                anthropic: "bench".to_owned(),
                openai: "bench".to_owned(),
                gemini: "bench".to_owned(),
            },
            models: Vec::new(),
            records: false,
            replays: None,
            redactor: Arc::new(Redactor::default()),
            clock: Arc::new(SystemClock),
            limits: GatewayLimits::default(),
        });
        let access = gateway.open(session).await.map_err(|error| anyhow!(error))?;
        println!("{} {}", access.url, access.token);
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        Ok(())
    })
}

fn settings(models: &str) -> ProviderSettings {
    let mut settings = ProviderSettings::new("/");
    let provider = Provider {
        key_required: true,
        key_env: Some("KEY".to_owned()),
        ..Provider::new("bench", WireFormat::Anthropic, models)
    };
    settings.providers = settings.providers.with(provider);
    settings.keys.insert("bench".to_owned(), SecretString::from("sk-bench"));
    settings.catalog = settings.catalog.with(ModelFacts {
        name: "bench/claude".to_owned(),
        price: Some(Price::FREE),
        output_tokens_max: Some(4_000),
        ..ModelFacts::default()
    });
    settings
}

/// Starts a run whose program has started.
async fn begin(backend: &dyn Backend, dir: &Path) -> anyhow::Result<SessionId> {
    let external = ExternalPolicy { metering: Metering::Gateway, ..ExternalPolicy::new("bench", "generic") };
    let model = ModelPolicy { price: Some(Price::FREE), ..ModelPolicy::new("external/bench", 1) };
    let agent = AgentPolicy { external: Some(Box::new(external)), ..AgentPolicy::new(model, dir.to_owned()) };
    let run = agent::run_id();
    let policy = Box::new(RunPolicy::new(agent));
    let start = RunEvent::Start { goal: "measure".to_owned(), images: Vec::new(), policy, baseline: None };
    backend.post(run.into(), Event::Run(start), None).await?;
    let session = SessionId::root(run);
    let command = vec!["bench".to_owned()];
    let started = TerminalEvent::Started { command, pid: 1, channel: Channel::Terminal, recording: None };
    let noted = SessionEvent::Terminal(Box::new(TerminalNoted::certain(started)));
    backend.post(session.into(), Event::Session(noted), None).await?;
    Ok(session)
}
