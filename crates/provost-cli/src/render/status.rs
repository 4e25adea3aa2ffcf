//! The status of a run in one line of any width.

use console::{Style, measure_text_width};
use provost_event::MicroDollars;

use super::words::tokens;

/// Columns of the bar that shows how much of a limit is used.
const BAR_WIDTH: u64 = 10;
/// From this percentage on the bar warns.
const WARNS_AT: u64 = 80;

/// What the status line says, the important first.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) mark: Mark,
    /// What is done, and for how long.
    pub(super) state: String,
    pub(super) took: String,
    /// `turn 29 of 300`.
    pub(super) turn: Option<String>,
    pub(super) spent: Spent,
    /// Of a workflow: `3 of 5 steps done`.
    pub(super) steps: Option<String>,
    /// The round of the goal's verification.
    pub(super) round: Option<u32>,
    /// `4 of 8 agents at work`.
    pub(super) agents: Option<String>,
}

/// The kind of state: a shape, and a colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mark {
    #[default]
    Working,
    Verifying,
    NeedsYou,
    Waiting,
    Paused,
}

impl Mark {
    const fn shape(self) -> &'static str {
        match self {
            Self::Working => "●",
            Self::Verifying => "◎",
            Self::NeedsYou => "◆",
            Self::Waiting => "◌",
            Self::Paused => "‖",
        }
    }

    fn style(self) -> Style {
        let plain = Style::new().for_stderr();
        match self {
            Self::Working | Self::Verifying => plain.blue(),
            Self::NeedsYou => plain.yellow().bold(),
            Self::Waiting | Self::Paused => plain.dim(),
        }
    }
}

/// What was spent of what limit: money where that is known, else tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) money: Option<MicroDollars>,
    pub(super) money_max: Option<MicroDollars>,
    pub(super) tokens: u64,
    pub(super) tokens_max: Option<u64>,
}

impl Spent {
    fn in_words(self) -> Option<String> {
        match (self.money, self.money_max) {
            (Some(money), Some(max)) => Some(format!("{money} of {max}")),
            (Some(money), None) if self.tokens_max.is_none() => {
                (self.tokens > 0).then(|| format!("{} tokens · {money}", tokens(self.tokens)))
            }
            _ => match self.tokens_max {
                Some(max) => Some(format!("{} of {} tokens", tokens(self.tokens), tokens(max))),
                None => (self.tokens > 0).then(|| format!("{} tokens", tokens(self.tokens))),
            },
        }
    }

    /// The used percentage of the limit that is shown.
    fn percent(self) -> Option<u64> {
        let (used, max) = match (self.money, self.money_max) {
            (Some(money), Some(max)) => (money.0, max.0),
            _ => (self.tokens, self.tokens_max?),
        };
        (max > 0).then(|| used.saturating_mul(100) / max)
    }

    fn bar(self) -> Option<String> {
        let percent = self.percent()?;
        let used = (percent * BAR_WIDTH).div_ceil(100).min(BAR_WIDTH);
        let count = |count: u64| usize::try_from(count).unwrap_or_default();
        let plain = Style::new().for_stderr();
        let style = match percent {
            0..WARNS_AT => plain,
            WARNS_AT..=100 => plain.yellow(),
            _ => plain.red(),
        };
        let bar = format!("{}{}", "━".repeat(count(used)), "─".repeat(count(BAR_WIDTH - used)));
        Some(style.apply_to(bar).to_string())
    }
}

/// The line; what doesn't fit is left out from the right, and the state and what was spent last.
pub(super) fn status_line(status: &Status, width: usize) -> String {
    let mark = status.mark.style().apply_to(status.mark.shape()).to_string();
    let state = Some(format!("{mark} {} {}", status.state, status.took));
    let spent = status.spent.in_words();
    let with_bar = spent.as_ref().map(|spent| match status.spent.bar() {
        Some(bar) => format!("{spent} {bar}"),
        None => spent.clone(),
    });
    let round = status.round.map(|round| format!("round {round}"));
    let (turn, steps, agents) = (status.turn.clone(), status.steps.clone(), status.agents.clone());
    let candidates = [
        vec![state.clone(), turn.clone(), steps.clone(), with_bar.clone(), round.clone(), agents],
        vec![state.clone(), turn.clone(), steps.clone(), with_bar.clone(), round],
        vec![state.clone(), turn.clone(), steps.clone(), with_bar],
        vec![state.clone(), turn, steps.clone(), spent.clone()],
        vec![state.clone(), steps, spent.clone()],
        vec![state.clone(), spent.clone()],
        vec![Some(format!("{mark} {}", spent.or(state).unwrap_or_default()))],
    ];
    let mut shortest = String::new();
    for parts in candidates {
        let line = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if measure_text_width(&line) <= width {
            return line;
        }
        shortest = line;
    }
    console::truncate_str(&shortest, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use provost_event::MicroDollars;

    use super::{Mark, Spent, Status, status_line};

    fn spent(money: u64) -> Spent {
        Spent {
            money: Some(MicroDollars(money)),
            money_max: Some(MicroDollars(8_000_000)),
            tokens: 12_000,
            tokens_max: None,
        }
    }

    #[test]
    fn the_line_fits_any_width_and_keeps_state_and_spend() {
        console::set_colors_enabled_stderr(false);
        let status = Status {
            mark: Mark::Working,
            state: "working".to_owned(),
            took: "41s".to_owned(),
            turn: Some("turn 29 of 300".to_owned()),
            spent: spent(3_120_000),
            steps: None,
            round: Some(3),
            agents: Some("5 of 8 agents at work".to_owned()),
        };
        let lines = [100, 80, 70, 60, 50, 40, 20, 12]
            .map(|width| format!("{width:>3} {}", status_line(&status, width)));
        expect![[r#"
            100 ● working 41s · turn 29 of 300 · $3.12 of $8.00 ━━━━────── · round 3 · 5 of 8 agents at work
             80 ● working 41s · turn 29 of 300 · $3.12 of $8.00 ━━━━────── · round 3
             70 ● working 41s · turn 29 of 300 · $3.12 of $8.00 ━━━━────── · round 3
             60 ● working 41s · turn 29 of 300 · $3.12 of $8.00 ━━━━──────
             50 ● working 41s · turn 29 of 300 · $3.12 of $8.00
             40 ● working 41s · $3.12 of $8.00
             20 ● $3.12 of $8.00
             12 ● $3.12 of …"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn the_bar_is_empty_at_nothing_and_full_beyond_the_limit() {
        console::set_colors_enabled_stderr(false);
        let bars = [0, 80_000, 8_000_000, 9_000_000].map(|money| spent(money).bar().unwrap_or_default());
        assert_eq!(bars, ["──────────", "━─────────", "━━━━━━━━━━", "━━━━━━━━━━"]);
        assert!(Spent::default().bar().is_none(), "without a limit there is no bar");
    }
}
