//! A run with one metered program, a provider, and a gateway between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{Event, RunEvent, SessionEvent};
use provost_event::{
    AgentPolicy, Budget, Channel, Entry, ExternalModelAnswered, ExternalModelCalled, ExternalPolicy,
    Metering, MicroDollars, ModelEntry, ModelPolicy, Price, Record, RunId, RunPolicy, Seq, SessionId,
    TerminalEvent, TerminalNoted, WindowSize,
};
use provost_gateway::{Gateway, GatewayLimits, GatewayOptions, GatewayProviders};
use provost_harness::{Backend, GatewayAccess, ModelGateway as _, Redactor, SystemClock};
use provost_llm::{ModelFacts, Provider, ProviderSettings, WireFormat};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The provider's key, which nothing but the provider may see.
pub(crate) const KEY: &str = "sk-canary-0123456789abcdef";
/// The price of each token in micro-dollars.
const TOKEN_PRICE: u64 = 1;

/// What the provider got.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

type Answer = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

#[derive(Clone)]
struct Scripted {
    answer: Answer,
    seen: Arc<Mutex<Vec<Seen>>>,
}

pub(crate) struct Stage {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) gateway: Gateway,
    pub(crate) access: GatewayAccess,
    pub(crate) client: reqwest::Client,
    seen: Arc<Mutex<Vec<Seen>>>,
    session: SessionId,
}

#[derive(Default)]
pub(crate) struct Staged {
    pub(crate) money: Option<u64>,
    pub(crate) records: bool,
    pub(crate) limits: GatewayLimits,
    pub(crate) models: Vec<String>,
}

async fn provider(State(scripted): State<Scripted>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let seen = Seen {
        path: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    scripted.seen.lock().unwrap().push(seen.clone());
    (scripted.answer)(&seen)
}

pub(crate) fn json(status: u16, body: &str) -> Response {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.header("request-id", "req_7").body(Body::from(body.to_owned())).unwrap()
}

pub(crate) fn sse(body: &str) -> Response {
    let response = Response::builder().header("content-type", "text/event-stream; charset=utf-8");
    response.body(Body::from(body.to_owned())).unwrap()
}

/// A stream of these pieces, which then stays open.
pub(crate) fn open_sse(pieces: &[&str]) -> Response {
    let pieces = pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from((*piece).to_owned())));
    let pieces = pieces.collect::<Vec<_>>();
    let stream = futures::StreamExt::chain(futures::stream::iter(pieces), futures::stream::pending());
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(stream)).unwrap()
}

/// A stream of this piece, which breaks when it is told to.
pub(crate) fn broken_sse(piece: &str, breaks: Arc<Notify>) -> Response {
    let piece = Ok(Bytes::from(piece.to_owned()));
    let first = futures::stream::iter([piece]);
    let last = futures::stream::once(async move {
        breaks.notified().await;
        Err(std::io::Error::other("cut"))
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(futures::StreamExt::chain(first, last))).unwrap()
}

impl Stage {
    pub(crate) async fn new(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        Self::with(Staged::default(), answer).await
    }

    pub(crate) async fn with(
        staged: Staged,
        answer: impl Fn(&Seen) -> Response + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let scripted = Scripted { answer: Arc::new(answer), seen: Arc::clone(&seen) };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(provider).with_state(scripted);
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let backend: Arc<dyn Backend> =
            Arc::new(EmbeddedBackend::new(MemoryStore::default(), Arc::new(SystemClock)).unwrap());
        let session = begin(&*backend, staged.money).await;
        let gateway = Gateway::new(GatewayOptions {
            backend: Arc::clone(&backend),
            settings: settings(&format!("http://{address}")),
            providers: GatewayProviders {
                anthropic: "a".to_owned(),
                openai: "o".to_owned(),
                gemini: "g".to_owned(),
            },
            models: staged.models,
            records: staged.records,
            replays: None,
            redactor: Arc::new(Redactor::new([SecretString::from(KEY)])),
            clock: Arc::new(SystemClock),
            limits: staged.limits,
        });
        let access = gateway.open(session).await.unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { backend, gateway, access, client, seen, session }
    }

    /// Posts a body as the program would.
    pub(crate) async fn post(&self, path: &str, body: &str) -> reqwest::Response {
        let request = self.client.post(format!("{}{path}", self.access.url));
        let request = request.bearer_auth(&self.access.token).header("content-type", "application/json");
        request.body(body.to_owned()).send().await.unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) async fn records(&self) -> Vec<Arc<Record>> {
        self.backend.read(self.session.into(), Seq::START, 10_000).await.unwrap()
    }

    pub(crate) async fn called(&self) -> Vec<ExternalModelCalled> {
        let records = self.records().await;
        let called = records.iter().filter_map(|record| match &record.entry {
            Entry::Model(ModelEntry::ExternalCalled(called)) => Some(called.clone()),
            _ => None,
        });
        called.collect()
    }

    /// The settled calls, once there are `count` of them.
    pub(crate) async fn answered(&self, count: usize) -> Vec<ExternalModelAnswered> {
        let look = async {
            loop {
                let records = self.records().await;
                let answered = records.iter().filter_map(|record| match &record.entry {
                    Entry::Model(ModelEntry::ExternalAnswered(answered)) => Some(answered.clone()),
                    _ => None,
                });
                let answered = answered.collect::<Vec<_>>();
                if answered.len() >= count {
                    return answered;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), look).await.expect("the calls are settled")
    }

    pub(crate) async fn close(&self) {
        self.gateway.close(self.session).await;
    }

    pub(crate) fn activity(&self) -> provost_harness::GatewayActivity {
        self.gateway.activity(self.session).unwrap().borrow().clone()
    }
}

fn settings(base_url: &str) -> ProviderSettings {
    let mut settings = ProviderSettings::new("/");
    let families = [
        ("a", WireFormat::Anthropic, "claude"),
        ("o", WireFormat::OpenaiChat, "gpt"),
        ("g", WireFormat::Gemini, "flash"),
    ];
    let price = MicroDollars(TOKEN_PRICE * 1_000_000);
    let price = Price { input: price, output: price, cache_read: price, cache_write: price, long: None };
    for (name, wire, model) in families {
        let provider = Provider {
            key_required: true,
            key_env: Some("KEY".to_owned()),
            ..Provider::new(name, wire, base_url)
        };
        settings.providers = settings.providers.with(provider);
        settings.keys.insert(name.to_owned(), SecretString::from(KEY));
        settings.catalog = settings.catalog.with(ModelFacts {
            name: format!("{name}/{model}"),
            price: Some(price),
            output_tokens_max: Some(4_000),
            ..ModelFacts::default()
        });
    }
    settings
}

async fn begin(backend: &dyn Backend, money: Option<u64>) -> SessionId {
    let external = ExternalPolicy {
        program: "played".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        passes: Vec::new(),
        profile: "generic".to_owned(),
        channel: Channel::Terminal,
        size: WindowSize::default(),
        submits_goal: true,
        attended: false,
        unrecorded: false,
        idle_ms: None,
        metering: Metering::Gateway,
    };
    let model = ModelPolicy { price: Some(Price::FREE), ..ModelPolicy::new("external/played", 1) };
    let agent = AgentPolicy { external: Some(Box::new(external)), ..AgentPolicy::new(model, "/w".into()) };
    let budget = Budget { money: money.map(MicroDollars), ..Budget::default() };
    let policy = Box::new(RunPolicy { budget, ..RunPolicy::new(agent) });
    let run = RunId::from_entropy(7);
    let start = RunEvent::Start { goal: "g".to_owned(), images: Vec::new(), policy, baseline: None };
    backend.post(run.into(), Event::Run(start), None).await.unwrap();
    let session = SessionId::root(run);
    let started = TerminalEvent::Started {
        command: vec!["played".to_owned()],
        pid: 7,
        channel: Channel::Terminal,
        recording: None,
    };
    let noted = SessionEvent::Terminal(Box::new(TerminalNoted::certain(started)));
    backend.post(session.into(), Event::Session(noted), None).await.unwrap();
    session
}
