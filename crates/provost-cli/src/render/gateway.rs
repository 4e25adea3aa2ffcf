//! What passed the model gateway, for people.

use provost_view::{GatewayCalls, GatewayUse};

use super::{Cells, Table, amount, one_line, plural};

const MODEL_WIDTH: usize = 60;

/// A line for each model.
pub(crate) fn gateway_lines(used: &GatewayUse) -> Vec<String> {
    if used.models.is_empty() {
        return vec!["no model call has passed it".to_owned()];
    }
    let line = |(model, calls): (&str, &GatewayCalls)| {
        let ends = [
            (calls.failed, "failed"),
            (calls.aborted, "aborted"),
            (calls.unconfirmed, "unconfirmed"),
            (calls.open, "open"),
        ];
        let ends = ends.iter().filter(|(count, _)| *count > 0);
        let ends = ends.map(|(count, how)| format!("{} {how}", amount(*count))).collect::<Vec<_>>();
        let ends = if ends.is_empty() { String::new() } else { format!(" ({})", ends.join(", ")) };
        let refused =
            if calls.refused == 0 { String::new() } else { format!(", {} refused", amount(calls.refused)) };
        let tokens = plural(calls.spent.tokens(), "token");
        let made = plural(calls.forwarded, "call");
        format!("{}: {made}{ends}{refused}, {tokens}, {}", one_line(model, MODEL_WIDTH), money(calls))
    };
    used.models.iter().map(|of| line((&of.model, &of.calls))).collect()
}

/// A table with a row for each model, and one for their sum.
pub(crate) fn gateway_table(used: &GatewayUse, title: &str, width: Option<usize>) -> String {
    if used.models.is_empty() {
        return format!("\n{title}\n   no model call has passed it\n");
    }
    let mut table = Table::new(&[
        ("MODEL", Cells::CutAtEnd),
        ("CALLS", Cells::Numbers),
        ("ANSWERED", Cells::Numbers),
        ("FAILED", Cells::Numbers),
        ("ABORTED", Cells::Numbers),
        ("UNCONFIRMED", Cells::Numbers),
        ("OPEN", Cells::Numbers),
        ("REFUSED", Cells::Numbers),
        ("TOKENS", Cells::Numbers),
        ("COST", Cells::Numbers),
    ]);
    let mut row = |model: &str, calls: &GatewayCalls| {
        let GatewayCalls { forwarded, answered, failed, aborted, unconfirmed, open, refused, .. } = *calls;
        let counts = [forwarded, answered, failed, aborted, unconfirmed, open, refused, calls.spent.tokens()];
        let cells = std::iter::once(one_line(model, MODEL_WIDTH));
        table.row(cells.chain(counts.map(amount)).chain([money(calls)]).collect());
    };
    used.models.iter().for_each(|of| row(&of.model, &of.calls));
    if used.models.len() > 1 {
        row("all", &used.total);
    }
    format!("\n{title}\n{}", table.lines(width))
}

fn money(calls: &GatewayCalls) -> String {
    let cost = calls.spent.cost_micro_usd;
    match calls.spent.unknown_price_calls {
        0 => cost.to_string(),
        all if all == calls.spent.calls => "unknown price".to_owned(),
        some => format!("{cost} ({} of unknown price)", plural(some, "call")),
    }
}
