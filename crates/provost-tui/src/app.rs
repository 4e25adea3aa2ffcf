//! What is shown, and how data and time change it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{Dimension, EffectId, RunId, Seq, SessionId, Timestamp};
use provost_view::{ApprovalQuestion, GroupedRun, GroupedRuns, RunGroup, RunsOfGroup};
use serde_json::{Map, Value};

use crate::draw::{Body, Look};
use crate::line::Line;
use crate::reading::{Picture, RunPicture, Watched};

/// Keys are dead for this long after a question came up or changed: none that was meant for another one counts.
pub(crate) const DEAD_FOR: Duration = Duration::from_millis(500);
/// Rows keep their places while keys are typed, and for this long afterwards.
pub(crate) const SETTLES_AFTER: Duration = Duration::from_secs(3);

/// Where one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Home,
    Run(RunId),
    Inbox,
}

/// The parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Live,
    Agents,
    Goal,
    Cost,
    Changes,
}

impl Tab {
    pub(crate) const ALL: [Self; 5] = [Self::Live, Self::Agents, Self::Goal, Self::Cost, Self::Changes];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Agents => "agents",
            Self::Goal => "goal",
            Self::Cost => "cost",
            Self::Changes => "changes",
        }
    }
}

/// What a typed line is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Filter,
    Say {
        run: RunId,
        agent: u32,
    },
    Resume {
        run: RunId,
    },
    /// With more of what it has used up.
    More {
        run: RunId,
        of: Dimension,
    },
    Fork {
        session: SessionId,
        at: Option<Seq>,
    },
    New {
        is_here: bool,
    },
    Deny {
        question: EffectId,
    },
    /// A field of the answer to what a tool asks; those before it are given.
    Field {
        question: EffectId,
        number: usize,
        given: Map<String, Value>,
    },
    /// Enter alone does it.
    Always {
        question: EffectId,
    },
    /// Enter alone does it.
    Cancel {
        run: RunId,
    },
}

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) line: Line,
}

/// What came of something, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) is_refusal: bool,
}

/// The question that is in view.
#[derive(Debug)]
pub(crate) struct InView {
    pub(crate) id: EffectId,
    /// Since when.
    pub(crate) since: Instant,
    pub(crate) body: Body,
    pub(crate) scroll: usize,
    /// Whether all of it has been in view.
    pub(crate) is_read: bool,
}

/// An open question, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) run: &'a GroupedRun,
    pub(crate) question: &'a ApprovalQuestion,
}

/// The dashboard.
pub(crate) struct App {
    pub(crate) look: Look,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) now: Timestamp,
    pub(crate) screen: Screen,
    /// Where `Esc` leads from the inbox.
    pub(crate) came_from: Screen,
    pub(crate) runs: Arc<GroupedRuns>,
    /// What has come and isn't shown yet, since it would move rows.
    pending: Option<Arc<GroupedRuns>>,
    pub(crate) is_loaded: bool,
    pub(crate) run: Option<Arc<RunPicture>>,
    /// Why the runs can't be read.
    pub(crate) trouble: Option<String>,
    pub(crate) selected: Option<RunId>,
    pub(crate) idle_open: bool,
    pub(crate) filter: String,
    pub(crate) tab: Tab,
    pub(crate) agent: u32,
    /// The first line of a run's part; `None` follows its end.
    pub(crate) scroll: Option<usize>,
    pub(crate) unfolded: bool,
    pub(crate) current: Option<EffectId>,
    pub(crate) whole: bool,
    pub(crate) later: Vec<EffectId>,
    pub(crate) in_view: Option<InView>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) help: bool,
    pub(crate) note: Option<Note>,
    last_key: Option<Instant>,
    /// Where the rows of a run's part end, as they were drawn last.
    pub(crate) part_lines: usize,
    pub(crate) part_rows: usize,
    /// The entry that a line of the live log belongs to, as it was drawn last.
    pub(crate) entries: Vec<Seq>,
    /// The first row of the list that is drawn.
    pub(crate) top: usize,
    pub(crate) detach_key: String,
    pub(crate) folder: PathBuf,
    pub(crate) home: Option<PathBuf>,
}

impl App {
    pub(crate) fn new(look: Look, now: Timestamp) -> Self {
        Self {
            look,
            columns: 80,
            rows: 24,
            now,
            screen: Screen::Home,
            came_from: Screen::Home,
            runs: Arc::new(GroupedRuns::default()),
            pending: None,
            is_loaded: false,
            run: None,
            trouble: None,
            selected: None,
            idle_open: false,
            filter: String::new(),
            tab: Tab::Live,
            agent: 0,
            scroll: None,
            unfolded: false,
            current: None,
            whole: false,
            later: Vec::new(),
            in_view: None,
            prompt: None,
            help: false,
            note: None,
            last_key: None,
            part_lines: 0,
            part_rows: 0,
            entries: Vec::new(),
            top: 0,
            detach_key: String::new(),
            folder: PathBuf::new(),
            home: None,
        }
    }

    /// What of the store has to be read for what is shown.
    pub(crate) fn watched(&self) -> Watched {
        let run = match self.screen {
            Screen::Run(run) => Some(run),
            Screen::Home if self.is_wide() => self.selected,
            Screen::Home | Screen::Inbox => None,
        };
        let is_open = matches!(self.screen, Screen::Run(_));
        let agent = if is_open { self.agent } else { 0 };
        Watched { run: run.map(|run| (run, agent)), changes: is_open && self.tab == Tab::Changes }
    }

    /// Whether a run is shown beside the list.
    pub(crate) const fn is_wide(&self) -> bool {
        self.columns >= 140
    }

    /// Takes in what was read.
    pub(crate) fn take(&mut self, picture: &Picture, at: Instant) {
        self.now = picture.at;
        self.trouble.clone_from(&picture.trouble);
        self.run.clone_from(&picture.run);
        self.is_loaded = true;
        if self.keeps_places(at) && !asks_more(&self.runs, &picture.runs) {
            self.runs = Arc::new(in_old_places(&self.runs, &picture.runs));
            self.pending = Some(picture.runs.clone());
        } else {
            self.settle(picture.runs.clone());
        }
        self.keep_selection();
        self.keep_question(at);
    }

    /// Whether a picture says nothing new but the time.
    pub(crate) fn shows(&self, picture: &Picture) -> bool {
        let is_same_run = match (&self.run, &picture.run) {
            (Some(shown), Some(read)) => Arc::ptr_eq(shown, read),
            (None, None) => true,
            _ => false,
        };
        let runs = self.pending.as_ref().unwrap_or(&self.runs);
        self.is_loaded && is_same_run && self.trouble == picture.trouble && **runs == *picture.runs
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Timestamp, at: Instant) {
        self.now = now;
        if !self.keeps_places(at)
            && let Some(runs) = self.pending.take()
        {
            self.settle(runs);
            self.keep_selection();
        }
    }

    fn settle(&mut self, runs: Arc<GroupedRuns>) {
        self.pending = None;
        self.runs = runs;
    }

    /// When rows may move again, if some wait for that.
    pub(crate) fn settles_at(&self) -> Option<Instant> {
        self.pending.as_ref().and(self.last_key).map(|key| key + SETTLES_AFTER)
    }

    fn keeps_places(&self, at: Instant) -> bool {
        self.screen == Screen::Home && self.last_key.is_some_and(|key| at < key + SETTLES_AFTER)
    }

    pub(crate) const fn typed_at(&mut self, at: Instant) {
        self.last_key = Some(at);
    }

    /// Whether what is shown says something new each second.
    pub(crate) fn is_busy(&self) -> bool {
        let moves = |group: &RunsOfGroup| {
            matches!(group.group, RunGroup::NeedsYou | RunGroup::Working | RunGroup::Waiting)
                && group.runs.iter().any(|run| run.item.outcome.is_none())
        };
        self.runs.groups.iter().any(moves)
    }

    /// The runs in the list, in its order, without folded and filtered ones.
    pub(crate) fn listed(&self) -> Vec<&GroupedRun> {
        let is_shown = |group: &&RunsOfGroup| group.group != RunGroup::Idle || self.shows_idle();
        let groups = self.runs.groups.iter().filter(is_shown);
        groups.flat_map(|group| &group.runs).filter(|run| self.matches(run)).collect()
    }

    /// A filter looks at folded runs too.
    pub(crate) const fn shows_idle(&self) -> bool {
        self.idle_open || !self.filter.is_empty()
    }

    pub(crate) fn matches(&self, run: &GroupedRun) -> bool {
        let item = &run.item;
        let folder = item.workspace.display().to_string();
        let agents = run.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(" ");
        let text =
            format!("{} {folder} {} {} {} {agents}", item.goal, item.run, item.model, run.group.title());
        let text = text.to_lowercase();
        self.filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    pub(crate) fn found(&self, run: RunId) -> Option<&GroupedRun> {
        self.runs.runs().find(|found| found.item.run == run)
    }

    /// The run that keys act on.
    pub(crate) fn at_hand(&self) -> Option<&GroupedRun> {
        match self.screen {
            Screen::Run(run) => self.found(run),
            Screen::Home => self.found(self.selected?),
            Screen::Inbox => self.asked_now().map(|asked| asked.run),
        }
    }

    /// The picture of the run that is shown, if it was read.
    pub(crate) fn picture(&self) -> Option<&RunPicture> {
        let run = match self.screen {
            Screen::Run(run) => run,
            Screen::Home | Screen::Inbox => self.selected?,
        };
        self.run.as_deref().filter(|picture| picture.details.item.run == run)
    }

    /// The open questions: those put off last, otherwise the longest wait first.
    pub(crate) fn asked(&self) -> Vec<Asked<'_>> {
        let of = |run| move |question| Asked { run, question };
        let mut all = self.runs.runs().flat_map(|run| run.asks.iter().map(of(run))).collect::<Vec<_>>();
        let put_off = |id: EffectId| self.later.iter().position(|later| *later == id);
        let place = |asked: &Asked<'_>| (put_off(asked.question.id()), asked.question.since);
        all.sort_by_key(place);
        all
    }

    pub(crate) fn asked_now(&self) -> Option<Asked<'_>> {
        let current = self.current?;
        self.asked().into_iter().find(|asked| asked.question.id() == current)
    }

    fn keep_selection(&mut self) {
        let listed = self.listed();
        let is_there = |run: RunId| listed.iter().any(|listed| listed.item.run == run);
        if !self.selected.is_some_and(is_there) {
            self.selected = listed.first().map(|run| run.item.run);
        }
    }

    /// Chooses the question in view; a new one has all its dead time.
    pub(crate) fn keep_question(&mut self, at: Instant) {
        let asked = self.asked().iter().map(|asked| asked.question.id()).collect::<Vec<_>>();
        self.later.retain(|id| asked.contains(id));
        if !self.current.is_some_and(|id| asked.contains(&id)) {
            self.current = asked.first().copied();
        }
        if self.screen != Screen::Inbox {
            self.in_view = None;
            return;
        }
        let is_prompted = |id| move |prompt: &Prompt| prompt.purpose.question() == Some(id);
        if let Some(gone) = self.in_view.as_ref().map(|shown| shown.id).filter(|id| Some(*id) != self.current)
            && self.prompt.as_ref().is_some_and(is_prompted(gone))
        {
            // What was typed for a question that is gone answers no other one.
            self.prompt = None;
        }
        if self.in_view.as_ref().map(|shown| shown.id) != self.current {
            self.in_view = self.current.map(|id| InView {
                id,
                since: at,
                body: Body::default(),
                scroll: 0,
                is_read: false,
            });
        }
    }

    /// Computes what drawing and keys need of the question in view.
    pub(crate) fn prepare(&mut self) {
        let Some(mut shown) = self.in_view.take() else { return };
        if let Some(asked) = self.asked_now() {
            let place = crate::draw::question_place(self);
            shown.body.fit(&asked, place.columns);
            let most = shown.body.lines().len().saturating_sub(place.rows);
            shown.scroll = shown.scroll.min(most);
            shown.is_read |= shown.scroll == most;
        }
        self.in_view = Some(shown);
    }
}

impl Purpose {
    /// The question that it answers.
    pub(crate) const fn question(&self) -> Option<EffectId> {
        match self {
            Self::Deny { question } | Self::Field { question, .. } | Self::Always { question } => {
                Some(*question)
            }
            Self::Filter
            | Self::Say { .. }
            | Self::Resume { .. }
            | Self::More { .. }
            | Self::Fork { .. }
            | Self::New { .. }
            | Self::Cancel { .. } => None,
        }
    }
}

/// Whether a run began to need the user.
fn asks_more(before: &GroupedRuns, now: &GroupedRuns) -> bool {
    let asking = |runs: &GroupedRuns| {
        let asking = runs.groups.iter().filter(|group| group.group == RunGroup::NeedsYou);
        asking.flat_map(|group| &group.runs).map(|run| run.item.run).collect::<Vec<_>>()
    };
    let before = asking(before);
    asking(now).iter().any(|run| !before.contains(run))
}

/// What is new, with the rows where they are; new runs wait.
fn in_old_places(before: &GroupedRuns, now: &GroupedRuns) -> GroupedRuns {
    let new = now.runs().map(|run| (run.item.run, run)).collect::<HashMap<_, _>>();
    let groups = before.groups.iter().map(|group| RunsOfGroup {
        group: group.group,
        runs: group
            .runs
            .iter()
            .map(|run| new.get(&run.item.run).map_or_else(|| run.clone(), |new| (*new).clone()))
            .collect(),
    });
    GroupedRuns { groups: groups.collect(), ..now.clone() }
}
