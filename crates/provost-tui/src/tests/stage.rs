//! A dashboard over a store with runs, without a terminal.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use provost::prelude::*;
use provost_event::{RunId, SessionId, Timestamp};
use provost_harness::{Backend, Clock, SimulatedClock};
use provost_view::{KeptGroups, SeenRuns};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use crate::app::App;
use crate::draw::{Colours, Glyphs, Look, draw};
use crate::host::{Start, TopHost};
use crate::keys;
use crate::order::{Acting, Order};
use crate::reading::{Picture, Reading};

/// 14:03 of some day.
const NOW: Timestamp = Timestamp(1_790_000_000_000);
const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(super) struct TestHost {
    pub(super) started: Mutex<Vec<Start>>,
    pub(super) kept: Mutex<Vec<String>>,
    seen: Mutex<Vec<(RunId, Timestamp)>>,
}

impl SeenRuns for TestHost {
    fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool {
        self.seen.lock().unwrap().contains(&(run, changed_at))
    }

    fn look_at(&self, run: RunId, changed_at: Timestamp) {
        self.seen.lock().unwrap().push((run, changed_at));
    }
}

#[async_trait]
impl TopHost for TestHost {
    async fn keep_approved(&self, pattern: &str) -> Result<(), String> {
        self.kept.lock().unwrap().push(pattern.to_owned());
        Ok(())
    }

    async fn start(&self, start: Start) -> Result<(), String> {
        self.started.lock().unwrap().push(start);
        Ok(())
    }

    async fn attach(&self, _session: SessionId) -> Result<String, String> {
        Err("no terminal here".to_owned())
    }

    fn detach_key(&self) -> String {
        "Ctrl-\\".to_owned()
    }

    fn folder(&self) -> PathBuf {
        "/work/here".into()
    }
}

pub(super) struct Stage {
    pub(super) app: App,
    pub(super) host: Arc<TestHost>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) clock: Arc<SimulatedClock>,
    /// How long after one run the next is begun.
    pub(super) pause_ms: u64,
    /// Runs that are worked on here.
    pub(super) running: Vec<provost::Run>,
    _folder: tempfile::TempDir,
    reading: Reading,
    kept: KeptGroups,
    last: Option<Picture>,
    at: Instant,
    columns: u16,
    rows: u16,
}

impl Stage {
    pub(super) fn new(columns: u16, rows: u16) -> Self {
        Self::with_look(columns, rows, Look { glyphs: Glyphs::Unicode, colours: Colours::Sixteen })
    }

    pub(super) fn with_look(columns: u16, rows: u16, look: Look) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::at(NOW));
        let store = provost::sqlite::SqliteStore::open(folder.path().join("runs.db")).unwrap();
        let backend: Arc<dyn Backend> =
            Arc::new(provost::backend::EmbeddedBackend::new(store, clock.clone()).unwrap());
        let host = Arc::new(TestHost::default());
        let reading = Reading { backend: backend.clone(), clock: clock.clone(), seen: host.clone() };
        let mut app = App::new(look, NOW);
        app.detach_key = host.detach_key();
        app.folder = host.folder();
        Self {
            app,
            host,
            backend,
            clock,
            pause_ms: 60_000,
            running: Vec::new(),
            _folder: folder,
            reading,
            kept: KeptGroups::default(),
            last: None,
            at: Instant::now(),
            columns,
            rows,
        }
    }

    /// An agent of this store, with this script and a folder of this name.
    pub(super) fn agent(&self, folder: &str, script: &str) -> provost::AgentBuilder {
        let workspace = self._folder.path().join(folder);
        std::fs::create_dir_all(&workspace).unwrap();
        let model = ScriptedModel::parse(script, "script").expect("a script");
        Agent::builder(model).backend(self.backend.clone()).clock(self.clock.clone()).workspace(workspace)
    }

    /// Starts a run, and waits until it has ended or is suspended.
    pub(super) async fn ran(&mut self, number: u64, goal: &str, agent: provost::AgentBuilder) {
        let mut run = agent.build().unwrap().start_as(RunId::from_entropy(number), goal).await.unwrap();
        tokio::time::timeout(DEADLINE, run.finish()).await.expect("it ends").unwrap();
        self.clock.advance_ms(self.pause_ms);
    }

    /// Starts a run, and waits until it asks something.
    pub(super) async fn asks(&mut self, number: u64, goal: &str, agent: provost::AgentBuilder) {
        let id = RunId::from_entropy(number);
        let run = agent.build().unwrap().start_as(id, goal).await.unwrap();
        let control = run.control("test");
        let asked = async {
            while control.approvals().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, asked).await.expect("it asks");
        self.running.push(run);
        self.clock.advance_ms(self.pause_ms);
    }

    /// Reads the store, as the task does.
    pub(super) async fn read(&mut self) {
        self.fit();
        let picture = self.reading.read(&mut self.kept, self.last.as_ref(), self.app.watched()).await;
        self.app.take(&picture, self.at);
        self.last = Some(picture);
        // What is selected now may have to be read too.
        let picture = self.reading.read(&mut self.kept, self.last.as_ref(), self.app.watched()).await;
        self.app.take(&picture, self.at);
        self.last = Some(picture);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self._folder.path().join(name)
    }

    pub(super) const fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
    }

    fn fit(&mut self) {
        (self.app.columns, self.app.rows) = (self.columns, self.rows);
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.at += Duration::from_millis(ms);
        self.app.tick(self.clock.now(), self.at);
    }

    /// Presses keys one after the other, does what they order, and reads again.
    pub(super) async fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.press(match c {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\t' => KeyCode::Tab,
                c => KeyCode::Char(c),
            })
            .await;
        }
    }

    pub(super) async fn press(&mut self, code: KeyCode) {
        self.fit();
        self.app.prepare();
        let order = keys::key(&mut self.app, KeyEvent::new(code, KeyModifiers::NONE), self.at);
        if let Some(Order::Act(act)) = order {
            let (backend, host) = (self.backend.clone(), self.host.clone());
            let note = Acting { backend, by: "ana".to_owned(), host }.perform(act).await;
            self.app.note = note.or(self.app.note.take());
        }
        self.read().await;
    }

    pub(super) fn drawn(&mut self) -> ratatui::buffer::Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.columns, self.rows)).unwrap();
        terminal.draw(|frame| draw(frame, &mut self.app)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The screen as text, without blanks at the ends of lines.
    pub(super) fn screen(&mut self) -> String {
        let buffer = self.drawn();
        let rows = (0..self.rows).map(|y| {
            let line = (0..self.columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
            format!("{}\n", line.trim_end())
        });
        // The folder has another name each time.
        let folder = self._folder.path().file_name().unwrap().to_str().unwrap();
        rows.collect::<String>().replace(folder, ".tmpFOLDER")
    }

    pub(super) fn colours(&mut self) -> usize {
        self.drawn().content.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    }
}
