//! The agent's notices about its limits: how far each is used, and that a turn is the last.

use provost_event::{Dimension, ItemKind, LimitOwner, MicroDollars};

use super::Deciding;
use crate::LimitUse;

/// The percentages of a limit at which the agent gets a notice, each once.
const THRESHOLDS: [u8; 3] = [95, 80, 50];

const LAST_TURN: &str = "This is your last turn: tools that you call now are still run, and then you are asked once, \
                         without tools, how far the work has come. Finish what matters most.";
const LAST_OF_RUN: &str = "This is the last turn that the run may take, of all its agents: tools that you call now are \
                           still run, and then you are asked once, without tools, how far the work has come. Finish \
                           what matters most.";

/// The limits that the run reported with a reservation.
#[derive(Debug)]
pub(super) struct ReservedLimits {
    pub(super) limits: Vec<LimitUse>,
    pub(super) is_last_turn: bool,
}

/// Before budget is requested: the agent's own last turn.
pub(in crate::session) fn announce_last_turn(deciding: &mut Deciding<'_>) {
    if deciding.state.turns.is_last() {
        say_last_turn(deciding, LAST_TURN);
    }
}

/// After the reservation: the limits of the run and of the agents above.
pub(in crate::session) fn announce_limits(deciding: &mut Deciding<'_>, heard: &ReservedLimits) {
    // An external agent would take the notice for a task.
    if deciding.state.assignment.is_external() {
        return;
    }
    if heard.is_last_turn {
        say_last_turn(deciding, LAST_OF_RUN);
    }
    let is_last = deciding.state.turns.knows_last_turn();
    for limit in deciding.state.turns.limits_near(&heard.limits) {
        let percent = limit.percent();
        let threshold = THRESHOLDS.into_iter().find(|threshold| *threshold <= percent).unwrap_or(0);
        let dimension = limit.dimension;
        let is_new = threshold > deciding.state.turns.percent_told(dimension);
        if is_new && !(is_last && dimension == Dimension::Turns) {
            deciding.say(ItemKind::LimitNotice { dimension, percent: threshold }, notice(limit, threshold));
        }
    }
}

fn say_last_turn(deciding: &mut Deciding<'_>, body: &str) {
    if !deciding.state.assignment.is_external() && !deciding.state.turns.knows_last_turn() {
        deciding.say(ItemKind::LastTurn, body);
    }
}

/// The agent's notice once `threshold` percent of a limit are used.
fn notice(limit: LimitUse, threshold: u8) -> String {
    let owner = match limit.owner {
        LimitOwner::Run => "the run's",
        LimitOwner::Agent => "your",
    };
    let used = limit.used;
    let most = limit.limit;
    let amounts = match limit.dimension {
        Dimension::Tokens => format!("tokens: {used} of {most}"),
        Dimension::Money => format!("money: {} of {}", MicroDollars(used), MicroDollars(most)),
        Dimension::Turns => format!("turns: {used} of {most}"),
        Dimension::WallTime => format!("time: {} of {} seconds", used / 1_000, most / 1_000),
    };
    let advice = match threshold {
        95 => "Finish what matters most now; at the limit the work stops.",
        80 => "Bring the work to an end in time; at the limit it stops.",
        _ => "Plan the rest of the work within it.",
    };
    format!("{}% of {owner} limit is used ({amounts}). {advice}", limit.percent())
}
