//! (m) What the model gateway costs: requests and streams through it, each paired with the same without it.

mod server;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::case::Case;
use crate::measure::{Start, memory_kib_of, raise_open_files, ticks_of};
use crate::model_server::{ModelServer, base_url, open_url, paced_url};
use crate::sample::{Sample, count, in_child, mib};
use crate::table::{self, Target};

use server::GatewayServer;
pub(crate) use server::serve;

/// Requests in a row by one way before the other gets its turn.
const BLOCK: usize = 50;
/// Pieces of a stream of 1 MB/s in a second, each of 10 kB.
pub(crate) const PIECES_A_SECOND: usize = 100;
/// The bytes of such a piece.
pub(crate) const PIECE_BYTES: usize = 10_000;
const REQUEST: &str =
    r#"{"model":"claude","max_tokens":200,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// What is done by both ways.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Requests, one after the other.
    Requests(usize),
    /// Streams of 1 MB/s for a second each, one after the other.
    Paced(usize),
    /// Streams that are open at once.
    Open(usize),
}

/// The two ways to the model server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ways {
    /// The model server itself.
    direct: String,
    /// The gateway.
    through: String,
    /// What the gateway knows the program by.
    token: String,
    /// The gateway's process.
    gateway: u32,
}

/// What one way took.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct WayNumbers {
    /// Median and 99th percentile of the times of requests, or between the pieces of a stream.
    times_us: [u64; 2],
    /// User and system time of the client.
    client_cpu: Duration,
    /// That of the gateway.
    gateway_cpu: Duration,
    /// The growth of the gateway's memory.
    gateway_kib: u64,
    /// The time until all streams are open.
    opened: Duration,
}

/// What both ways took.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct GatewayNumbers {
    direct: WayNumbers,
    through: WayNumbers,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let models = ModelServer::start()?;
    let requests = options.sized(500, 5_000);
    let samples = measured(options, Work::Requests(requests), &base_url(models.port, 0, 0))?;
    table::head("The model gateway: a request and its answer");
    let size = format!("{requests} requests");
    for (name, at) in [("median", 0), ("99th percentile", 1)] {
        pair(&samples, &format!("{name} of the time"), &size, "µs", &|way| us(way.times_us, at));
    }
    each(&samples, "client's CPU", &size, &|way| per_us(way.client_cpu, requests));
    let gateway = values(&samples, &|numbers| per_us(numbers.through.gateway_cpu, requests));
    table::row("gateway's CPU", &size, "µs/request", &gateway, Target::None);

    let seconds = options.sized(2, 10);
    let samples = measured(options, Work::Paced(seconds), &paced_url(models.port, PIECES_A_SECOND))?;
    table::head("The model gateway: a stream of 1 MB/s");
    let size = format!("{seconds} s");
    for (name, at) in [("median", 0), ("99th percentile", 1)] {
        pair(&samples, &format!("{name} of the time between pieces"), &size, "µs", &|way| {
            us(way.times_us, at)
        });
    }
    each(&samples, "client's CPU", &size, &|way| per_us(way.client_cpu, seconds));
    let gateway = values(&samples, &|numbers| per_us(numbers.through.gateway_cpu, seconds));
    table::row("gateway's CPU", &size, "µs/MB", &gateway, Target::None);

    let streams = options.sized(200, 1_000);
    let samples = measured(options, Work::Open(streams), &open_url(models.port))?;
    table::head("The model gateway: streams that are open at once");
    let size = format!("{streams} streams");
    pair(&samples, "all are open after", &size, "ms", &|way| way.opened.as_secs_f64() * 1e3);
    let memory = values(&samples, &|numbers| mib(numbers.through.gateway_kib) * 1024.0 / count(streams));
    table::row("gateway's memory", &size, "KiB/stream", &memory, Target::None);
    let gateway = values(&samples, &|numbers| per_us(numbers.through.gateway_cpu, streams));
    table::row("gateway's CPU to open and to charge one", &size, "µs", &gateway, Target::None);
    Ok(())
}

/// Runs the work with a gateway of its own each time.
fn measured(options: &Options, work: Work, models: &str) -> anyhow::Result<Vec<GatewayNumbers>> {
    (0..options.runs)
        .map(|_| {
            let gateway = GatewayServer::start(models, options.dir())?;
            let ways = gateway.ways(models);
            Ok(in_child(&Case::Gateway { work, ways }, options.dir())?.gateway)
        })
        .collect()
}

/// Prints what each way took, and the median of the differences.
fn pair(samples: &[GatewayNumbers], what: &str, size: &str, unit: &str, part: &dyn Fn(&WayNumbers) -> f64) {
    let of = |name: &str, value: &dyn Fn(&GatewayNumbers) -> f64| {
        table::row(&format!("{what}, {name}"), size, unit, &values(samples, value), Target::None);
    };
    of("direct", &|numbers| part(&numbers.direct));
    of("through the gateway", &|numbers| part(&numbers.through));
    of("difference", &|numbers| part(&numbers.through) - part(&numbers.direct));
}

fn each(samples: &[GatewayNumbers], what: &str, size: &str, part: &dyn Fn(&WayNumbers) -> f64) {
    pair(samples, what, size, "µs", part);
}

fn values(samples: &[GatewayNumbers], value: &dyn Fn(&GatewayNumbers) -> f64) -> Vec<f64> {
    samples.iter().map(value).collect()
}

fn us(times: [u64; 2], at: usize) -> f64 {
    Duration::from_micros(times.get(at).copied().unwrap_or_default()).as_secs_f64() * 1e6
}

fn per_us(time: Duration, pieces: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count(pieces)
}

/// Does the work by both ways in turns, so that both see the same machine.
pub(crate) async fn case(work: Work, ways: &Ways) -> anyhow::Result<Sample> {
    raise_open_files()?;
    let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let mut direct = Way::new(&client, format!("{}/v1/messages", ways.direct), None);
    let url = format!("{}/anthropic/v1/messages", ways.through);
    let mut through = Way::new(&client, url, Some((ways.token.clone(), ways.gateway)));
    let gateway = match work {
        Work::Requests(requests) => {
            for way in [&direct, &through] {
                way.send().await?.bytes().await?;
            }
            for _ in 0..requests.div_ceil(BLOCK) {
                direct.requests(BLOCK.min(requests)).await?;
                through.requests(BLOCK.min(requests)).await?;
            }
            GatewayNumbers { direct: direct.numbers(), through: through.numbers() }
        }
        Work::Paced(seconds) => {
            for _ in 0..seconds {
                direct.stream().await?;
                through.stream().await?;
            }
            GatewayNumbers { direct: direct.numbers(), through: through.numbers() }
        }
        Work::Open(streams) => {
            direct.open(streams).await?;
            through.open(streams).await?;
            GatewayNumbers { direct: direct.numbers(), through: through.numbers() }
        }
    };
    Ok(Sample { gateway, ..Start::now()?.sample(1)? })
}

/// One way, and what it has taken.
struct Way<'c> {
    client: &'c Client,
    url: String,
    gateway: Option<(String, u32)>,
    times: Vec<Duration>,
    numbers: WayNumbers,
}

impl<'c> Way<'c> {
    const fn new(client: &'c Client, url: String, gateway: Option<(String, u32)>) -> Self {
        let numbers = WayNumbers {
            times_us: [0; 2],
            client_cpu: Duration::ZERO,
            gateway_cpu: Duration::ZERO,
            gateway_kib: 0,
            opened: Duration::ZERO,
        };
        Self { client, url, gateway, times: Vec::new(), numbers }
    }

    async fn send(&self) -> anyhow::Result<Response> {
        let request = self.client.post(&self.url).header("content-type", "application/json").body(REQUEST);
        let request = match &self.gateway {
            Some((token, _)) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await?;
        ensure!(response.status() == 200, "{}: {}", response.status(), response.text().await?);
        Ok(response)
    }

    async fn requests(&mut self, requests: usize) -> anyhow::Result<()> {
        let used = self.begin()?;
        for _ in 0..requests {
            let began = Instant::now();
            self.send().await?.bytes().await?;
            self.times.push(began.elapsed());
        }
        self.end(used)
    }

    async fn stream(&mut self) -> anyhow::Result<()> {
        let used = self.begin()?;
        let mut response = self.send().await?;
        let (mut bytes, mut last) = (0, Instant::now());
        while let Some(piece) = response.chunk().await? {
            bytes += piece.len();
            self.times.push(last.elapsed());
            last = Instant::now();
        }
        ensure!(bytes > PIECES_A_SECOND * PIECE_BYTES, "only {bytes} bytes came");
        self.end(used)
    }

    async fn open(&mut self, streams: usize) -> anyhow::Result<()> {
        let used = self.begin()?;
        let before = self.gateway_kib()?;
        let began = Instant::now();
        let opening = (0..streams).map(|_| async {
            let mut response = self.send().await?;
            response.chunk().await?.context("a stream is empty")?;
            anyhow::Ok(response)
        });
        let open = try_join_all(opening).await?;
        self.numbers.opened = began.elapsed();
        self.numbers.gateway_kib = self.gateway_kib()?.saturating_sub(before);
        drop(open);
        self.settle().await?;
        self.end(used)
    }

    /// Waits until the gateway has nothing more to do: its streams are charged once they are given up.
    async fn settle(&self) -> anyhow::Result<()> {
        let Some((_, gateway)) = &self.gateway else { return Ok(()) };
        let mut before = ticks_of(*gateway)?;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = ticks_of(*gateway)?;
            if now == before {
                return Ok(());
            }
            before = now;
        }
    }

    fn gateway_kib(&self) -> anyhow::Result<u64> {
        self.gateway.as_ref().map_or(Ok(0), |(_, gateway)| memory_kib_of(*gateway, "VmRSS"))
    }

    fn begin(&self) -> anyhow::Result<(Start, Duration)> {
        let gateway = self.gateway.as_ref().map_or(Ok(Duration::ZERO), |(_, gateway)| ticks_of(*gateway))?;
        Ok((Start::now()?, gateway))
    }

    fn end(&mut self, (client, gateway): (Start, Duration)) -> anyhow::Result<()> {
        self.numbers.client_cpu += client.sample(1)?.cpu;
        if let Some((_, process)) = &self.gateway {
            self.numbers.gateway_cpu += ticks_of(*process)?.saturating_sub(gateway);
        }
        Ok(())
    }

    fn numbers(&mut self) -> WayNumbers {
        self.times.sort_unstable();
        let at = |place: usize| {
            let time = self.times.get(place).copied().unwrap_or_default();
            u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
        };
        let times_us = [at(self.times.len() / 2), at(self.times.len() * 99 / 100)];
        WayNumbers { times_us, ..self.numbers }
    }
}
