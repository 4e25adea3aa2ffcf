//! The loop: keys, data, time and signals change what is shown, and it is drawn again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::StreamExt as _;
use provost_event::SessionId;
use provost_harness::{Backend, Clock};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::app::{App, Note};
use crate::draw::{Colours, Glyphs, Look, draw};
use crate::host::TopHost;
use crate::keys;
use crate::order::{Acting, Order};
use crate::reading::{Picture, Reading, Watched};
use crate::signals::{Signal, Signals};
use crate::terminal::OwnScreen;

/// Ages are drawn again this often while something changes, and while nothing does.
const TICK: Duration = Duration::from_secs(1);
const TICK_AT_REST: Duration = Duration::from_secs(20);
/// What comes within this time after a drawing is drawn with it.
const DRAWS_EVERY: Duration = Duration::from_millis(30);
/// Actions that may be under way at the same time.
const ACTS_MAX: usize = 32;

/// What the dashboard shows, and where.
pub struct TopOptions {
    /// The runs.
    pub backend: Arc<dyn Backend>,
    /// Who the log names for what is done here.
    pub by: String,
    /// What the program around it does for it.
    pub host: Arc<dyn TopHost>,
    /// The user's own folder, which is shown as `~`.
    pub home: Option<PathBuf>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What marks, bars and lines are drawn with.
    pub glyphs: Glyphs,
    /// Whether states have colours.
    pub colours: Colours,
}

/// Why the dashboard ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The terminal can't be used.
    #[error("can't use this terminal")]
    Terminal(#[source] io::Error),
}

/// Shows the dashboard on this process's terminal until the user leaves it, or a signal ends it.
///
/// # Errors
/// When the terminal can't be used.
///
/// # Cancellation
/// The terminal is restored.
pub async fn work(options: TopOptions) -> Result<(), TopError> {
    let TopOptions { backend, by, host, home, clock, glyphs, colours } = options;
    let signals = Signals::listen().map_err(TopError::Terminal)?;
    let screen = OwnScreen::enter().map_err(TopError::Terminal)?;
    let glyphs = match glyphs {
        Glyphs::Unicode if OwnScreen::has_narrow_marks() => Glyphs::Unicode,
        Glyphs::Unicode | Glyphs::Ascii => Glyphs::Ascii,
    };
    let mut app = App::new(Look { glyphs, colours }, clock.now());
    app.detach_key = host.detach_key();
    app.folder = host.folder();
    app.home = home;
    let (wants, watched) = watch::channel(Watched::default());
    let (sender, pictures) = watch::channel(None);
    let mut tasks = JoinSet::new();
    let reading = Reading { backend: backend.clone(), clock: clock.clone(), seen: host.clone() };
    tasks.spawn(reading.work(watched, sender));
    let acting = Arc::new(Acting { backend, by, host });
    let keys = EventStream::new();
    let showing = Showing {
        app,
        clock,
        acting,
        acts: JoinSet::new(),
        pictures,
        wants,
        signals,
        keys: Some(keys),
        screen: Some(screen),
        is_stale: true,
    };
    showing.work().await.map_err(TopError::Terminal)
}

struct Showing {
    app: App,
    clock: Arc<dyn Clock>,
    acting: Arc<Acting>,
    acts: JoinSet<Option<Note>>,
    pictures: watch::Receiver<Option<Picture>>,
    wants: watch::Sender<Watched>,
    signals: Signals,
    /// Absent while another program has the keyboard, or this one is stopped.
    keys: Option<EventStream>,
    screen: Option<OwnScreen>,
    is_stale: bool,
}

enum Next {
    Event(Option<io::Result<Event>>),
    Read,
    Done(Option<Note>),
    Signal(Signal),
    Tick,
}

impl Showing {
    async fn work(mut self) -> io::Result<()> {
        let mut ticked = Instant::now();
        let mut drawn: Option<Instant> = None;
        loop {
            if self.is_stale {
                self.draw()?;
                drawn = Some(Instant::now());
            }
            let next = self.next(ticked, drawn).await;
            let order = match next {
                Next::Event(Some(event)) => self.event(event?),
                // The terminal is gone.
                Next::Event(None) => return Ok(()),
                Next::Read => {
                    let picture = self.pictures.borrow_and_update().clone();
                    if let Some(picture) = picture.filter(|picture| !self.app.shows(picture)) {
                        self.app.take(&picture, Instant::now());
                        self.is_stale = true;
                    }
                    None
                }
                Next::Done(note) => {
                    self.is_stale |= note.is_some();
                    self.app.note = note.or(self.app.note.take());
                    None
                }
                Next::Signal(Signal::Ends) => return Ok(()),
                Next::Signal(Signal::Stops) => Some(Order::Suspend),
                Next::Signal(Signal::Continues) => Some(Order::Redraw),
                Next::Tick => {
                    ticked = Instant::now();
                    self.app.tick(self.clock.now(), ticked);
                    self.is_stale = true;
                    None
                }
            };
            if let Some(order) = order {
                match order {
                    Order::Quit => return Ok(()),
                    Order::Act(act) if self.acts.len() < ACTS_MAX => {
                        let acting = self.acting.clone();
                        self.acts.spawn(async move { acting.perform(act).await });
                    }
                    Order::Act(_) => {
                        let text = "not done: too much is under way; try again".to_owned();
                        self.app.note = Some(Note { text, is_refusal: true });
                    }
                    Order::Attach(session) => self.attach(session).await?,
                    Order::Redraw => self.come_back()?,
                    Order::Suspend => self.suspend()?,
                }
                self.is_stale = true;
            }
            self.want();
        }
    }

    /// Tells the reading task what is shown now.
    fn want(&self) {
        let watched = self.app.watched();
        self.wants.send_if_modified(|wanted| std::mem::replace(wanted, watched) != watched);
    }

    async fn next(&mut self, ticked: Instant, drawn: Option<Instant>) -> Next {
        let tick = ticked + if self.app.is_busy() { TICK } else { TICK_AT_REST };
        let tick = self.app.settles_at().map_or(tick, |settles| settles.min(tick));
        let reads_at = drawn.map_or_else(Instant::now, |drawn| drawn + DRAWS_EVERY);
        let Self { keys, pictures, acts, signals, .. } = self;
        tokio::select! {
            biased;
            signal = signals.next() => Next::Signal(signal),
            event = async {
                match keys {
                    Some(keys) => keys.next().await,
                    None => std::future::pending().await,
                }
            } => Next::Event(event),
            Some(done) = acts.join_next() => Next::Done(done.unwrap_or_default()),
            changed = async {
                tokio::time::sleep_until(reads_at.into()).await;
                pictures.changed().await
            } => match changed {
                Ok(()) => Next::Read,
                Err(_) => std::future::pending().await,
            },
            () = tokio::time::sleep_until(tick.into()) => Next::Tick,
        }
    }

    fn event(&mut self, event: Event) -> Option<Order> {
        self.is_stale = true;
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                keys::key(&mut self.app, key, Instant::now())
            }
            Event::Paste(text) => {
                keys::paste(&mut self.app, &text);
                None
            }
            Event::Resize(..) => None,
            _ => {
                self.is_stale = false;
                None
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.is_stale = false;
        let Some(screen) = &mut self.screen else { return Ok(()) };
        let app = &mut self.app;
        screen.terminal.draw(|frame| draw(frame, app))?;
        Ok(())
    }

    fn leave(&mut self) {
        // The keyboard first: its thread must not take what isn't meant for the dashboard.
        self.keys = None;
        self.screen = None;
    }

    fn come_back(&mut self) -> io::Result<()> {
        self.leave();
        self.screen = Some(OwnScreen::enter()?);
        // Its screen is empty, so that all is drawn. (To clear it would ask for the cursor, beside the keyboard.)
        self.keys = Some(EventStream::new());
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        provost_process::stop_this_process();
        self.come_back()
    }

    async fn attach(&mut self, session: SessionId) -> io::Result<()> {
        self.leave();
        let attached = self.acting.host.attach(session).await;
        self.app.note = Some(match attached {
            Ok(text) => Note { text, is_refusal: false },
            Err(text) => Note { text, is_refusal: true },
        });
        self.come_back()
    }
}
