//! The owner of one terminal, on its thread: records, parses and forwards output, and handles requests. The
//! platforms' loops call it.

mod asks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{Exit, TerminalNoted, WindowSize};

use super::connections::ModelConnections;
use super::device::Device;
use super::ending::Ending;
use super::exposed::ExposedLine;
use super::live::{LiveOutput, WholeOutput};
use super::options::{EventSubscription, OutputSubscription, PtyOptions, Recorder};
use super::queries::Queries;
use super::reader::ScreenReader;
use super::shared::{Inbox, Shared};
use super::typing::{Typing, TypingObserver};
use super::view::TerminalView;
use super::watcher::{WatcherKind, WatcherQueue};

/// Bytes to read before other work.
const CHUNK_BYTES: usize = 64 * 1024;

/// A screen that hasn't changed for this long is settled.
const SETTLED_AFTER: Duration = Duration::from_millis(30);

/// The longest interval between updates of a screen that changes all the time.
const UNSETTLED_MAX: Duration = Duration::from_millis(250);

/// The least time between two samples, and between two ticks, whichever time the reader requests.
const SAMPLE_PAUSE_MIN: Duration = Duration::from_millis(5);
const TICK_PAUSE_MIN: Duration = Duration::from_millis(1);

/// How long the program waits for a person's terminal that takes nothing.
const STALLED_MAX: Duration = Duration::from_secs(10);

/// The reported signal when the end wasn't observed: the guard was killed, and the child with it.
const SIGKILL: i32 = 9;

pub(super) struct Terminal<D> {
    pub(super) device: D,
    shared: Arc<Shared>,
    inbox: Inbox,
    began: Instant,
    size: WindowSize,
    reader: Box<dyn ScreenReader>,
    recorder: Option<Box<dyn Recorder>>,
    hears_output: OutputSubscription,
    hears_events: EventSubscription,
    grace: Duration,
    exposed: ExposedLine,
    connections: Box<dyn ModelConnections>,
    typing: Typing,
    ending: Ending,
    live: LiveOutput,
    whole: WholeOutput,
    queries: Queries,
    buffer: Vec<u8>,
    watchers: Vec<Arc<WatcherQueue>>,
    /// Since when the program waits for a person's terminal.
    stalled_since: Option<Duration>,
    /// The first and the last output since the screen was last settled.
    unsettled: Option<(Duration, Duration)>,
    last_output: Duration,
    last_sample: Option<Duration>,
    last_tick: Option<Duration>,
    last_recorder_tick: Option<Duration>,
}

impl<D: Device> Terminal<D> {
    pub(super) fn new(
        device: D,
        shared: Arc<Shared>,
        inbox: Inbox,
        size: WindowSize,
        options: PtyOptions,
    ) -> Self {
        Self {
            device,
            shared,
            inbox,
            began: Instant::now(),
            size,
            reader: (options.reader)(size),
            recorder: options.recorder,
            hears_output: options.hears_output,
            hears_events: options.hears_events,
            grace: options.grace,
            exposed: ExposedLine::new(options.exposed),
            connections: options.connections,
            typing: Typing::default(),
            ending: Ending::NotAsked,
            live: LiveOutput::default(),
            whole: WholeOutput::default(),
            queries: Queries::new(options.awaits_terminal),
            buffer: vec![0; CHUNK_BYTES],
            watchers: Vec::new(),
            stalled_since: None,
            unsettled: None,
            last_output: Duration::ZERO,
            last_sample: None,
            last_tick: None,
            last_recorder_tick: None,
        }
    }

    /// Whether to read the terminal: neither the output's reader nor the receiver of events nor a person's terminal is
    /// behind.
    pub(super) fn reads(&self) -> bool {
        let output_is_full = self.hears_output == OutputSubscription::Wanted && self.shared.output.is_full();
        let events_are_full = self.hears_events == EventSubscription::Wanted && self.shared.events.is_full();
        !(output_is_full || events_are_full || self.is_stalled())
    }

    fn is_stalled(&self) -> bool {
        self.watchers.iter().any(|watcher| watcher.is_full())
    }

    /// Whether input waits for room in the terminal.
    pub(super) fn wants_to_write(&self) -> bool {
        self.typing.is_blocked()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned()
    }

    /// The time until the next action without an external event; `None`: unlimited.
    pub(super) fn patience(&self) -> Option<Duration> {
        let at = |last: Option<Duration>, pause, wish: Duration| {
            last.map_or(wish, |last| wish.max(last.saturating_add(pause)))
        };
        let watched = self.shared.is_running();
        let tick = self.reader.next_tick().filter(|_| watched);
        let sample = self.reader.next_sample().filter(|_| watched);
        let recording = self.recorder.as_ref().and_then(|recorder| recorder.tick_due());
        let deadlines = [
            tick.map(|wish| at(self.last_tick, TICK_PAUSE_MIN, wish)),
            sample.map(|wish| at(self.last_sample, SAMPLE_PAUSE_MIN, wish)),
            self.settled_at(),
            self.ending.deadline(),
            self.queries.deadline(),
            self.stalled_since.map(|since| since.saturating_add(STALLED_MAX)),
            recording.map(|wish| at(self.last_recorder_tick, TICK_PAUSE_MIN, wish)),
        ];
        let now = self.began.elapsed();
        deadlines.into_iter().flatten().min().map(|deadline| deadline.saturating_sub(now))
    }

    /// Reads the available output, or the first part of it; returns the number of bytes.
    pub(super) fn read(&mut self) -> usize {
        let mut buffer = std::mem::take(&mut self.buffer);
        let count = self.device.read(&mut buffer);
        if let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) {
            self.output(bytes);
        }
        self.buffer = buffer;
        count
    }

    /// Handles output of the program.
    fn output(&mut self, bytes: &[u8]) {
        let now = self.began.elapsed();
        let hidden = if self.reader.exposes_secret() { self.exposed.hidden(bytes) } else { None };
        self.record(|recorder| recorder.output(now, hidden.as_deref().unwrap_or(bytes)));
        let replies = self.reader.output(now, bytes);
        self.live.pass(bytes, &mut self.whole);
        if self.shared.is_running() {
            let replies = self.queries.take(now, || self.whole.queries(), replies);
            self.reply(&replies);
        }
        if self.hears_output == OutputSubscription::Wanted {
            self.shared.output.add(bytes);
        }
        self.show();
        self.last_output = now;
        self.unsettled = Some((self.unsettled.map_or(now, |(first, _)| first), now));
        self.pass_on_events();
    }

    /// The program has ended; all its output was read.
    pub(super) fn exited(&mut self, exit: Exit) {
        let now = self.began.elapsed();
        self.typing.fail_all();
        self.reader.exited(now, exit);
        self.pass_on_events();
        self.settle();
        self.shared.set_ended();
        self.shared.status.send_modify(|status| status.exit = Some(exit));
        if let Some(next) = self.ending.exited(now, self.grace) {
            self.carry_out(next);
        }
    }

    /// The guard has ended, and all output was read; `is_all_ended` is whether no process was observed to be left.
    pub(super) fn gone(&mut self, is_all_ended: bool) {
        if !is_all_ended {
            tracing::warn!(
                "the guard of a program at a terminal was killed; what the program forked may be left"
            );
        }
        if self.shared.is_running() {
            self.exited(Exit::Signal(SIGKILL));
        }
        self.shared.status.send_modify(|status| status.is_all_ended = is_all_ended);
        self.ending = Ending::Over;
        self.finish();
    }

    /// Handles the requests since the last call, and types queued input.
    pub(super) fn obey(&mut self) {
        self.shared.is_awake();
        while let Ok(ask) = self.inbox.asks.try_recv() {
            self.answer(ask);
        }
        self.forget_closed();
        while self.typing.has_room()
            && let Ok(typed) = self.inbox.typed.try_recv()
        {
            self.typing.add(typed);
        }
        if self.shared.is_running() {
            self.go_on_typing();
        } else {
            self.typing.fail_all();
        }
    }

    /// Does what is due.
    pub(super) fn pass_time(&mut self) {
        let now = self.began.elapsed();
        if self.shared.is_running() {
            let due = |wish: Option<Duration>, last: Option<Duration>, pause| {
                wish.is_some_and(|wish| wish <= now)
                    && last.is_none_or(|last: Duration| now >= last.saturating_add(pause))
            };
            if due(self.reader.next_sample(), self.last_sample, SAMPLE_PAUSE_MIN) {
                self.last_sample = Some(now);
                let wants = self.reader.wants_connections();
                let connections = wants.then_some(self.connections.as_mut() as &mut dyn ModelConnections);
                let mut sample = self.device.sample(connections);
                sample.model_calls = self.connections.model_calls();
                // Output from before the kernel was sampled is handled before the sample.
                if self.reads() {
                    self.read();
                }
                self.reader.kernel(self.began.elapsed(), sample);
            }
            if due(self.reader.next_tick(), self.last_tick, TICK_PAUSE_MIN) {
                self.last_tick = Some(now);
                self.reader.tick(self.began.elapsed());
            }
            self.pass_on_events();
        }
        if self.settled_at().is_some_and(|at| at <= now) {
            self.settle();
        }
        let replies = self.queries.due(now);
        self.reply(&replies);
        self.give_up_stalled(now);
        if self.recorder.as_ref().and_then(|recorder| recorder.tick_due()).is_some_and(|due| due <= now) {
            self.last_recorder_tick = Some(now);
            self.record(|recorder| recorder.tick(now));
        }
        while let Some(next) = self.ending.next(now) {
            self.carry_out(next);
        }
    }

    fn show(&mut self) {
        self.forget_closed();
        let asked = self.watchers.iter().rposition(|watcher| watcher.kind() == WatcherKind::Terminal);
        for (place, watcher) in self.watchers.iter().enumerate() {
            if Some(place) == asked {
                watcher.add(&self.whole.with_queries());
            } else {
                watcher.add(&self.whole.shown);
            }
        }
        self.whole.clear();
    }

    /// Drops closed watchers. What the last terminal hasn't answered is answered in its place.
    fn forget_closed(&mut self) {
        self.watchers.retain(|watcher| !watcher.is_closed());
        let is_any = self.watchers.iter().any(|watcher| watcher.kind() == WatcherKind::Terminal);
        if self.queries.has_terminal() && !is_any {
            let replies = self.queries.terminal_left(self.began.elapsed());
            self.reply(&replies);
        }
    }

    fn reply(&mut self, replies: &[u8]) {
        if self.shared.is_running() {
            self.typing.reply(replies);
            self.go_on_typing();
        }
    }

    /// A terminal that has taken nothing for long gets a snapshot instead of what it has missed.
    fn give_up_stalled(&mut self, now: Duration) {
        if !self.is_stalled() {
            self.stalled_since = None;
        } else if now.saturating_sub(*self.stalled_since.get_or_insert(now)) >= STALLED_MAX {
            self.watchers.iter().filter(|watcher| watcher.is_full()).for_each(|watcher| watcher.spoil());
        }
    }

    fn go_on_typing(&mut self) {
        let Self { typing, device, reader, recorder, exposed, began, size, last_output, .. } = self;
        let mut at_desk = AtDesk {
            began: *began,
            reader: reader.as_mut(),
            exposed,
            size: *size,
            last_output: *last_output,
            reads_lines: device.line_modes().is_some_and(|modes| modes.canonical),
            recorder,
            error: None,
        };
        typing.go_on(device, &mut at_desk);
        if let Some(error) = at_desk.error {
            self.stop_recording(&error);
        }
        self.pass_on_events();
    }

    fn pass_on_events(&mut self) {
        for detected in self.reader.take() {
            let noted: &TerminalNoted = &detected.noted;
            self.record(|recorder| recorder.event(detected.at, noted));
            if self.hears_events == EventSubscription::Wanted {
                self.shared.events.add(detected);
            }
        }
    }

    fn record(&mut self, record: impl FnOnce(&mut dyn Recorder) -> std::io::Result<()>) {
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = record(recorder.as_mut())
        {
            self.stop_recording(&error);
        }
    }

    fn stop_recording(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "a terminal's recording breaks off");
        self.recorder = None;
    }

    /// When the screen counts as settled, if it isn't yet.
    fn settled_at(&self) -> Option<Duration> {
        let (first, last) = self.unsettled?;
        Some(last.saturating_add(SETTLED_AFTER).min(first.saturating_add(UNSETTLED_MAX)))
    }

    fn settle(&mut self) {
        if self.unsettled.take().is_some() {
            self.shared.revision.send_modify(|revision| *revision = revision.wrapping_add(1));
        }
    }
}

impl<D> Terminal<D> {
    /// Tells all waiting callers that the terminal has ended.
    fn finish(&mut self) {
        let now = self.began.elapsed();
        if let Some(mut recorder) = self.recorder.take()
            && let Err(error) = recorder.finish(now)
        {
            tracing::warn!(%error, "a terminal's recording could not be finished");
        }
        self.typing.fail_all();
        self.shared.set_ended();
        self.shared.output.close();
        self.shared.events.close();
        for watcher in self.watchers.drain(..) {
            watcher.close();
        }
        self.shared.status.send_modify(|status| {
            status.exit.get_or_insert(Exit::Signal(SIGKILL));
            status.is_gone = true;
        });
    }
}

/// However the thread ends, no caller waits for ever.
impl<D> Drop for Terminal<D> {
    fn drop(&mut self) {
        self.inbox.asks.close();
        self.inbox.typed.close();
        self.finish();
    }
}

/// Records what is typed.
struct AtDesk<'a> {
    began: Instant,
    reader: &'a mut dyn ScreenReader,
    exposed: &'a mut ExposedLine,
    size: WindowSize,
    last_output: Duration,
    reads_lines: bool,
    recorder: &'a mut Option<Box<dyn Recorder>>,
    error: Option<std::io::Error>,
}

impl TypingObserver for AtDesk<'_> {
    fn begun(&mut self, label: &'static str) {
        if let Some(recorder) = self.recorder
            && let Err(error) = recorder.input_marker(self.began.elapsed(), label)
        {
            self.error = Some(error);
        }
    }

    fn typed(&mut self, bytes: &[u8]) {
        if self.reader.exposes_secret() {
            self.exposed.typed(bytes);
        }
        self.reader.input(self.began.elapsed(), bytes);
    }

    fn view(&self) -> TerminalView {
        TerminalView { reads_lines: self.reads_lines, ..self.reader.view(self.size, self.last_output) }
    }
}
