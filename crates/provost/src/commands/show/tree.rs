//! The tree of a run's agents, drawn.

use std::collections::BTreeMap;

use console::{Style, measure_text_width, truncate_str};
use provost_event::{MicroDollars, Outcome};

use super::agents::{Node, State};
use crate::names::labelled;
use crate::render::{Cells, Table, duration, one_line, outcome_in_words, plural, tokens, visible};

/// Of more siblings that are done than these, only the sum is shown.
const DONE_MAX: usize = 3;
/// Of more siblings that have yet to begin than these, only the first are shown.
const IN_LINE_MAX: usize = 5;
const NAME_WIDTH: usize = 20;
const GOAL_WIDTH: usize = 120;
/// Columns of why an agent rests or how it ended.
const REASON_WIDTH: usize = 30;
/// Levels that are drawn; those above are left out.
const LEVELS_MAX: usize = 12;
/// Agents named of those that have made way.
const WAYS_MAX: usize = 4;

/// What the branches are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Branches {
    fork: &'static str,
    last: &'static str,
    through: &'static str,
    more: &'static str,
    dot: &'static str,
}

impl Branches {
    pub(super) const LINES: Self =
        Self { fork: "├ ", last: "└ ", through: "│ ", more: "…", dot: " · " };
    pub(super) const ASCII: Self = Self { fork: "|-", last: "`-", through: "| ", more: "...", dot: ", " };

    /// What the terminal can show, by what it says of itself.
    pub(super) fn choose() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| value.to_lowercase())
        });
        let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let has_utf8 = locale.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"));
        if has_utf8 && !is_dumb { Self::LINES } else { Self::ASCII }
    }
}

/// What is drawn of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that are done, or have yet to begin, are summed up where they are many.
    SummedUp,
    Whole,
}

/// How a tree is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawing {
    pub(super) branches: Branches,
    pub(super) extent: Extent,
    /// The columns there are, if they are known.
    pub(super) width: Option<usize>,
}

/// One line of the tree, before it is set.
struct Row {
    label: String,
    state: String,
    priority: String,
    turns: String,
    tokens: String,
    cost: String,
    time: String,
    goal: String,
    style: Style,
}

/// A column: its head, how it is set, and its cell.
type Column = (&'static str, Cells, fn(&Row) -> &str);

const COLUMNS: [Column; 8] = [
    ("AGENT", Cells::Text, |row| &row.label),
    ("STATE", Cells::CutAtEnd, |row| &row.state),
    ("PRIORITY", Cells::Text, |row| &row.priority),
    ("TURNS", Cells::Numbers, |row| &row.turns),
    ("TOKENS", Cells::Numbers, |row| &row.tokens),
    ("COST", Cells::Numbers, |row| &row.cost),
    ("TIME", Cells::Numbers, |row| &row.time),
    ("GOAL", Cells::CutAtEnd, |row| &row.goal),
];

/// Those that give way on a narrow terminal, the first of them first.
const GIVE_WAY: [&str; 6] = ["GOAL", "PRIORITY", "TIME", "COST", "TURNS", "TOKENS"];
/// Columns that a goal and a state need to say something.
const GOAL_MIN: usize = 12;
const STATE_MIN: usize = 12;
/// While one of these is there, how agents stand isn't cut.
const BEFORE_STATE: [&str; 3] = ["GOAL", "PRIORITY", "TIME"];

/// The tree, a line for each agent or for several that are summed up, below a line of heads.
pub(super) fn lines(nodes: &[Node], drawing: Drawing) -> Vec<String> {
    let rows = Forest::of(nodes, drawing).rows();
    let mut columns = COLUMNS.to_vec();
    if let Some(width) = drawing.width {
        for name in GIVE_WAY {
            if least(&rows, &columns) <= width {
                break;
            }
            columns.retain(|(head, ..)| *head != name);
        }
    }
    set(&rows, &columns, drawing)
}

/// The columns that rows need when what may be cut is cut to what still says something.
fn least(rows: &[Row], columns: &[Column]) -> usize {
    let cuts_state = !columns.iter().any(|(head, ..)| BEFORE_STATE.contains(head));
    let widths = columns.iter().map(|(head, _, cell)| {
        let widest = rows.iter().map(|row| measure_text_width(cell(row))).max().unwrap_or_default();
        let widest = widest.max(head.len());
        match *head {
            "GOAL" => widest.min(GOAL_MIN),
            "STATE" if cuts_state => widest.min(STATE_MIN),
            _ => widest,
        }
    });
    widths.sum::<usize>() + 2 * columns.len().saturating_sub(1)
}

fn set(rows: &[Row], columns: &[Column], drawing: Drawing) -> Vec<String> {
    let heads = columns.iter().map(|(head, cells, _)| (*head, *cells)).collect::<Vec<_>>();
    let mut table = Table::new(&heads);
    for row in rows {
        table.row(columns.iter().map(|(_, _, cell)| cell(row).to_owned()).collect());
    }
    let text = table.lines(drawing.width);
    let styles = std::iter::once(Style::new().dim()).chain(rows.iter().map(|row| row.style.clone()));
    let fitted = |line: &str| {
        let line = match drawing.width {
            Some(width) => truncate_str(line, width, "…"),
            None => line.into(),
        };
        if drawing.branches == Branches::ASCII { line.replace('…', "~") } else { line.into_owned() }
    };
    text.lines().zip(styles).map(|(line, style)| style.apply_to(fitted(line)).to_string()).collect()
}

/// Who stands below whom.
struct Forest<'a> {
    drawing: Drawing,
    below: BTreeMap<Option<u32>, Vec<&'a Node>>,
}

impl<'a> Forest<'a> {
    fn of(nodes: &'a [Node], drawing: Drawing) -> Self {
        let mut below: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for node in nodes {
            below.entry(node.parent).or_default().push(node);
        }
        Self { drawing, below }
    }

    fn children(&self, of: Option<u32>) -> &[&'a Node] {
        self.below.get(&of).map_or(&[], Vec::as_slice)
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        // A tree may be deeper than the stack; what is to be drawn next is on top.
        let mut open = self.shown(None, &[]);
        while let Some(Shown { guides, place, what }) = open.pop() {
            let branch = match place {
                Place::Top => "",
                Place::Last => self.drawing.branches.last,
                Place::Amid => self.drawing.branches.fork,
            };
            let stem = self.stem(&guides, branch);
            match what {
                What::Agent(node) => {
                    rows.push(agent_row(&stem, node));
                    let mut below = guides;
                    match place {
                        Place::Top => {}
                        Place::Last => below.push(false),
                        Place::Amid => below.push(true),
                    }
                    open.extend(self.shown(Some(node.number()), &below));
                }
                What::Sum(nodes) => rows.push(sum_row(&stem, &nodes, self.drawing.branches)),
            }
        }
        rows
    }

    /// The lines that lead down to a row, and its own branch.
    fn stem(&self, guides: &[bool], branch: &str) -> String {
        let Branches { through, more, .. } = self.drawing.branches;
        let left_out = guides.len().saturating_sub(LEVELS_MAX);
        let start = if left_out > 0 { more } else { "" };
        let lines = guides.iter().skip(left_out).map(|goes_on| if *goes_on { through } else { "  " });
        format!("{start}{}{branch}", lines.collect::<String>())
    }

    /// What is drawn directly below an agent, the last first.
    fn shown(&self, of: Option<u32>, guides: &[bool]) -> Vec<Shown<'a>> {
        let children = self.children(of);
        let sums_up = self.drawing.extent == Extent::SummedUp;
        let sums_done = sums_up && children.iter().filter(|node| self.is_over(node)).count() > DONE_MAX;
        let in_line = children.iter().filter(|node| node.state == State::InLine).count();
        let mut room_in_line = if sums_up && in_line > IN_LINE_MAX { IN_LINE_MAX - 1 } else { usize::MAX };
        let (mut all, mut later, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for node in children {
            if node.state == State::InLine {
                match room_in_line.checked_sub(1) {
                    Some(left) => {
                        room_in_line = left;
                        all.push(What::Agent(node));
                    }
                    None => later.push(*node),
                }
            } else if sums_done && self.is_over(node) {
                done.push(*node);
            } else {
                all.push(What::Agent(node));
            }
        }
        all.extend([later, done].into_iter().filter(|sum| !sum.is_empty()).map(What::Sum));
        let last = all.len().saturating_sub(1);
        let place = |at: usize| match of {
            None => Place::Top,
            Some(_) if at == last => Place::Last,
            Some(_) => Place::Amid,
        };
        let shown = all.into_iter().enumerate();
        let shown = shown.map(|(at, what)| Shown { guides: guides.to_vec(), place: place(at), what });
        let mut shown = shown.collect::<Vec<_>>();
        shown.reverse();
        shown
    }

    /// Whether its work is over, and that of those who worked for it.
    fn is_over(&self, node: &Node) -> bool {
        node.is_done() && self.children(Some(node.number())).iter().all(|below| below.is_done())
    }
}

/// A row to be drawn.
struct Shown<'a> {
    /// Whether the line of each level above goes on below this row.
    guides: Vec<bool>,
    place: Place,
    what: What<'a>,
}

/// Where a row stands among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nobody is above it.
    Top,
    Amid,
    Last,
}

enum What<'a> {
    Agent(&'a Node),
    /// Several, in one row.
    Sum(Vec<&'a Node>),
}

fn agent_row(stem: &str, node: &Node) -> Row {
    let of = |limit: Option<String>| limit.map(|limit| format!("/{limit}")).unwrap_or_default();
    let budget = node.budget;
    Row {
        label: format!("{stem}{}", labelled(node.number(), &one_line(&node.name, NAME_WIDTH))),
        state: state_in_words(&node.state),
        priority: node.priority.map(|priority| priority.to_string()).unwrap_or_default(),
        turns: format!("{}{}", node.turns, of(node.turns_max.map(|max| max.to_string()))),
        tokens: format!("{}{}", tokens(node.tokens), of(budget.tokens.map(tokens))),
        cost: format!("{}{}", money(node.cost), of(budget.money.map(|money| money.to_string()))),
        time: format!("{}{}", duration(node.worked_ms), of(budget.wall_time_ms.map(duration))),
        goal: one_line(&node.goal, GOAL_WIDTH),
        style: style(&node.state),
    }
}

fn money(cost: Option<MicroDollars>) -> String {
    cost.map_or_else(|| "?".to_owned(), |cost| cost.to_string())
}

fn style(state: &State) -> Style {
    let plain = Style::new();
    match state {
        State::Working => plain,
        State::Asks | State::Rests(_) => plain.yellow(),
        State::InLine | State::Yields(_) | State::Furloughed(_) => plain.cyan(),
        State::Done(Outcome::Completed { .. }) => plain.dim(),
        State::Done(_) => plain.red(),
    }
}

/// How an agent stands, in a few words.
pub(super) fn state_in_words(state: &State) -> String {
    let way = |to: &Option<u32>| to.map(|to| format!(" for {to}")).unwrap_or_default();
    match state {
        State::InLine | State::Working | State::Asks => state.word().to_owned(),
        State::Yields(to) => format!("makes way{}", way(to)),
        State::Furloughed(to) => format!("furloughed{}", way(to)),
        State::Rests(outcome) => format!("rests: {}", in_short(outcome)),
        State::Done(Outcome::Completed { verdict: None }) => "done".to_owned(),
        State::Done(Outcome::Completed { verdict: Some(verdict) }) => format!("done, verdict {verdict}"),
        State::Done(outcome) => in_short(outcome),
    }
}

fn in_short(outcome: &Outcome) -> String {
    one_line(&visible(&outcome_in_words(outcome)), REASON_WIDTH)
}

fn sum_row(stem: &str, nodes: &[&Node], branches: Branches) -> Row {
    let in_line = nodes.iter().all(|node| node.state == State::InLine);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in nodes.iter().filter_map(|node| node.state.outcome()) {
        *outcomes.entry(outcome.word()).or_default() += 1;
    }
    let completed = outcomes.get("completed") == Some(&nodes.len());
    let outcomes = outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>();
    let sum = |of: fn(&Node) -> u64| nodes.iter().map(|node| of(node)).fold(0, u64::saturating_add);
    let add = |sum: MicroDollars, node: &&Node| node.cost.map(|cost| sum + cost);
    let cost = nodes.iter().try_fold(MicroDollars(0), add);
    let (what, style) = match (in_line, completed) {
        (true, _) => ("more in line", Style::new().cyan()),
        (false, true) => ("done", Style::new().dim()),
        (false, false) => ("done", Style::new().red()),
    };
    let shown = |text: String| if in_line { String::new() } else { text };
    Row {
        label: format!("{stem}{} {} {what}", branches.more, nodes.len()),
        state: outcomes.join(", "),
        priority: String::new(),
        turns: shown(sum(|node| node.turns.into()).to_string()),
        tokens: shown(tokens(sum(|node| node.tokens))),
        cost: shown(money(cost)),
        time: shown(duration(sum(|node| node.worked_ms))),
        goal: String::new(),
        style,
    }
}

/// How many agents stand how, against the slots there are, of which so many are `held` if anybody works; then who has
/// made way for whom.
pub(super) fn head(nodes: &[Node], held: Option<usize>, slots: usize, drawing: Drawing) -> Vec<String> {
    let count = |word: &str| nodes.iter().filter(|node| node.state.word() == word).count();
    let words = ["working", "needs approval", "making way", "furloughed", "in line", "resting", "done"];
    let counted = words.into_iter().map(|word| (count(word), word)).filter(|(count, _)| *count > 0);
    let counted = counted.map(|(count, word)| match word {
        "needs approval" if count > 1 => format!("{count} need approval"),
        _ => format!("{count} {word}"),
    });
    let dot = drawing.branches.dot;
    let slots = plural(slots as u64, "slot");
    let slots = held.map_or_else(|| slots.clone(), |held| format!("{held} of {slots}"));
    let mut lines = vec![format!("{slots}{dot}{}", counted.collect::<Vec<_>>().join(", "))];
    let ways = nodes.iter().filter_map(|node| {
        let to = node.state.to()?;
        let verb = if matches!(node.state, State::Yields(_)) { "makes way" } else { "has made way" };
        Some(format!("{} {verb} for {to}", node.number()))
    });
    let ways = ways.collect::<Vec<_>>();
    if !ways.is_empty() {
        let more = ways.len().saturating_sub(WAYS_MAX);
        let more = (more > 0).then(|| format!("{more} more"));
        let shown = ways.into_iter().take(WAYS_MAX).chain(more).collect::<Vec<_>>();
        lines.push(shown.join(dot));
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use provost_event::{Budget, PauseReason, Priority, RunId, SessionId, Timestamp, Verdict};

    use super::*;

    fn node(number: u32, parent: Option<u32>, name: &str, state: State) -> Node {
        Node {
            session: SessionId { run: RunId::from_entropy(1), agent: number },
            parent,
            depth: 0,
            name: name.to_owned(),
            goal: "find out what is slow and why it is".to_owned(),
            model: String::new(),
            priority: (!matches!(state, State::Done(_))).then_some(Priority::Normal),
            state,
            turns: 3,
            turns_max: Some(40),
            tokens: 12_400,
            cost: Some(MicroDollars(20_000)),
            budget: Budget::default(),
            worked_ms: 80_000,
            spawned_at: Timestamp(0),
            asks: Vec::new(),
        }
    }

    const DONE: State = State::Done(Outcome::Completed { verdict: None });

    fn drawing(width: Option<usize>) -> Drawing {
        Drawing { branches: Branches::LINES, extent: Extent::SummedUp, width }
    }

    #[track_caller]
    fn check(nodes: &[Node], drawing: Drawing, expected: Expect) {
        console::set_colors_enabled(false);
        let lines = lines(nodes, drawing);
        if let Some(width) = drawing.width {
            assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{lines:#?}");
        }
        expected.assert_eq(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    fn team() -> Vec<Node> {
        let mut limited = node(1, Some(0), "lead", State::Working);
        limited.budget =
            Budget { tokens: Some(50_000), money: Some(MicroDollars(500_000)), wall_time_ms: Some(600_000) };
        let asked = PauseReason::Asked { by: "ann".to_owned() };
        vec![
            node(0, None, "root", State::Working),
            limited,
            node(2, Some(1), "one", State::Furloughed(Some(5))),
            node(3, Some(1), "two", State::Rests(Outcome::Paused { why: asked })),
            node(4, Some(3), "deep", State::Asks),
            node(5, Some(0), "urgent", State::Yields(None)),
            node(6, Some(0), "later", State::InLine),
            node(7, Some(0), "gone", State::Done(Outcome::Cancelled { by: "bob".to_owned() })),
            node(8, Some(0), "fine", State::Done(Outcome::Completed { verdict: Some(Verdict::Pass) })),
        ]
    }

    #[test]
    fn a_tree_shows_who_works_for_whom_and_how_each_stands() {
        check(
            &team(),
            drawing(None),
            expect![[r#"
            AGENT         STATE                 PRIORITY  TURNS       TOKENS           COST          TIME  GOAL
            0 root        working               normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 1 lead      working               normal     3/40  12.4k/50.0k  $0.0200/$0.50  1m20s/10m00s  find out what is slow and why it is
            │ ├ 2 one     furloughed for 5      normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            │ └ 3 two     rests: paused by ann  normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            │   └ 4 deep  needs approval        normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 5 urgent    makes way             normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 6 later     in line               normal     3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            ├ 7 gone      cancelled by bob                 3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
            └ 8 fine      done, verdict PASS               3/40        12.4k        $0.0200         1m20s  find out what is slow and why it is
        "#]],
        );
    }

    #[test]
    fn on_a_narrow_terminal_goals_are_cut_and_then_columns_give_way() {
        check(
            &team(),
            drawing(Some(100)),
            expect![[r#"
                AGENT         STATE                 PRIORITY  TURNS       TOKENS           COST          TIME
                0 root        working               normal     3/40        12.4k        $0.0200         1m20s
                ├ 1 lead      working               normal     3/40  12.4k/50.0k  $0.0200/$0.50  1m20s/10m00s
                │ ├ 2 one     furloughed for 5      normal     3/40        12.4k        $0.0200         1m20s
                │ └ 3 two     rests: paused by ann  normal     3/40        12.4k        $0.0200         1m20s
                │   └ 4 deep  needs approval        normal     3/40        12.4k        $0.0200         1m20s
                ├ 5 urgent    makes way             normal     3/40        12.4k        $0.0200         1m20s
                ├ 6 later     in line               normal     3/40        12.4k        $0.0200         1m20s
                ├ 7 gone      cancelled by bob                 3/40        12.4k        $0.0200         1m20s
                └ 8 fine      done, verdict PASS               3/40        12.4k        $0.0200         1m20s
            "#]],
        );
        check(
            &team(),
            drawing(Some(60)),
            expect![[r#"
            AGENT         STATE                 TURNS       TOKENS
            0 root        working                3/40        12.4k
            ├ 1 lead      working                3/40  12.4k/50.0k
            │ ├ 2 one     furloughed for 5       3/40        12.4k
            │ └ 3 two     rests: paused by ann   3/40        12.4k
            │   └ 4 deep  needs approval         3/40        12.4k
            ├ 5 urgent    makes way              3/40        12.4k
            ├ 6 later     in line                3/40        12.4k
            ├ 7 gone      cancelled by bob       3/40        12.4k
            └ 8 fine      done, verdict PASS     3/40        12.4k
        "#]],
        );
        check(
            &team(),
            drawing(Some(30)),
            expect![[r#"
                AGENT         STATE
                0 root        working
                ├ 1 lead      working
                │ ├ 2 one     furloughed for 5
                │ └ 3 two     rests: paused b…
                │   └ 4 deep  needs approval
                ├ 5 urgent    makes way
                ├ 6 later     in line
                ├ 7 gone      cancelled by bob
                └ 8 fine      done, verdict P…
            "#]],
        );
    }

    #[test]
    fn a_terminal_that_knows_only_ascii_gets_that() {
        check(
            &team()[..4],
            Drawing { branches: Branches::ASCII, ..drawing(Some(60)) },
            expect![[r#"
                AGENT      STATE           TURNS       TOKENS           COST
                0 root     working          3/40        12.4k        $0.0200
                `-1 lead   working          3/40  12.4k/50.0k  $0.0200/$0.50
                  |-2 one  furloughed fo~   3/40        12.4k        $0.0200
                  `-3 two  rests: paused~   3/40        12.4k        $0.0200
            "#]],
        );
    }

    fn wide() -> Vec<Node> {
        let mut nodes = vec![node(0, None, "root", State::Working)];
        nodes.extend((1..=40).map(|number| node(number, Some(0), "done", DONE)));
        let failed = State::Done(Outcome::Cancelled { by: "bob".to_owned() });
        nodes.extend((41..=43).map(|number| node(number, Some(0), "failed", failed.clone())));
        nodes.extend((44..=60).map(|number| node(number, Some(0), "later", State::InLine)));
        nodes.push(node(61, Some(0), "last", State::Working));
        // Its own is still at work, as it may be for a moment.
        nodes.push(node(62, Some(0), "over", DONE));
        nodes.push(node(63, Some(62), "below", State::Working));
        nodes
    }

    #[test]
    fn many_that_are_done_or_wait_in_the_line_are_summed_up() {
        check(
            &wide(),
            drawing(Some(80)),
            expect![[r#"
                AGENT                STATE                      TURNS  TOKENS     COST    TIME
                0 root               working                     3/40   12.4k  $0.0200   1m20s
                ├ 44 later           in line                     3/40   12.4k  $0.0200   1m20s
                ├ 45 later           in line                     3/40   12.4k  $0.0200   1m20s
                ├ 46 later           in line                     3/40   12.4k  $0.0200   1m20s
                ├ 47 later           in line                     3/40   12.4k  $0.0200   1m20s
                ├ 61 last            working                     3/40   12.4k  $0.0200   1m20s
                ├ 62 over            done                        3/40   12.4k  $0.0200   1m20s
                │ └ 63 below         working                     3/40   12.4k  $0.0200   1m20s
                ├ … 13 more in line
                └ … 43 done          3 cancelled, 40 completed    129  533.2k    $0.86  57m20s
            "#]],
        );
        let all = lines(&wide(), Drawing { extent: Extent::Whole, ..drawing(None) });
        assert_eq!(all.len(), 1 + wide().len(), "everybody has a line, below the heads");
    }

    #[test]
    fn a_deep_tree_keeps_its_numbers_in_sight() {
        let parent = |number: u32| number.checked_sub(1);
        let nodes = (0..20).map(|number| node(number, parent(number), "x", State::Working));
        let drawn = lines(&nodes.collect::<Vec<_>>(), drawing(Some(60)));
        expect![[r#"
            …                        └ 17 x  working   3/40   12.4k
            …                        └ 18 x  working   3/40   12.4k
            …                        └ 19 x  working   3/40   12.4k"#]]
        .assert_eq(&drawn[18..].join("\n"));
        let deepest = (0..50_000).map(|number| node(number, parent(number), "x", State::Working));
        assert_eq!(lines(&deepest.collect::<Vec<_>>(), drawing(Some(60))).len(), 50_001);
    }

    #[test]
    fn the_head_counts_agents_and_says_who_makes_way_for_whom() {
        let head = head(&team(), Some(4), 4, drawing(None)).join("\n");
        expect![[r#"
            4 of 4 slots · 2 working, 1 needs approval, 1 making way, 1 furloughed, 1 in line, 1 resting, 2 done
            2 has made way for 5"#]].assert_eq(&head);
    }
}
