//! What a run has spent over time, by model, as a drawing.

use maud::{Markup, html};
use provost_event::MicroDollars;
use provost_view::{ModelCurve, SpendCurve, safe};

use super::parts::{absolute, money};

/// The place of the curves in the drawing.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 286.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 110.0;
/// Models with a colour of their own; the rest is one.
const COLOURS: usize = 4;

/// A drawing of it, and a table with the same numbers.
pub(super) fn spend_over_time(curve: &SpendCurve, limit: Option<MicroDollars>) -> Markup {
    let shown = with_rest(&curve.models);
    let total = shown.iter().map(|model| model.total().0).sum::<u64>();
    let says = format!("{} spent; {}", money(MicroDollars(total)), told(&shown));
    html! {
        @if total > 0 { (drawing(curve, &shown, limit, &says)) }
        table.tab {
            thead.vh { tr { th { "Model" } th { "Calls" } th { "Spent" } } }
            tbody { @for (at, model) in shown.iter().enumerate() { tr {
                th scope="row" { span class={ "sw a" (at + 1) } aria-hidden="true" {} (safe(&model.model)) }
                td.num.dim { (provost_event::counted(model.calls, "call")) }
                td.num { @if model.unknown_price_calls == model.calls { "–" } @else { (money(model.total())) } }
            } } }
        }
    }
}

fn told(models: &[ModelCurve]) -> String {
    models
        .iter()
        .map(|model| format!("{} {}", safe(&model.model), money(model.total())))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The most expensive models, and the sum of all others.
fn with_rest(models: &[ModelCurve]) -> Vec<ModelCurve> {
    if models.len() <= COLOURS {
        return models.to_vec();
    }
    let (own, rest) = models.split_at(COLOURS - 1);
    let mut others = ModelCurve {
        model: provost_event::counted(rest.len() as u64, "other model"),
        calls: 0,
        unknown_price_calls: 0,
        cost_micro_usd: Vec::new(),
    };
    for model in rest {
        others.calls += model.calls;
        others.unknown_price_calls += model.unknown_price_calls;
        others.cost_micro_usd.resize(model.cost_micro_usd.len(), MicroDollars(0));
        for (sum, cost) in others.cost_micro_usd.iter_mut().zip(&model.cost_micro_usd) {
            *sum += *cost;
        }
    }
    own.iter().cloned().chain([others]).collect()
}

fn drawing(curve: &SpendCurve, models: &[ModelCurve], limit: Option<MicroDollars>, says: &str) -> Markup {
    let points = curve.at_ms.len();
    let total = models.iter().map(|model| model.total().0).sum::<u64>();
    // A limit far above would press the curves flat; then its number stands beside the bar only.
    let limit = limit.map(|limit| limit.0).filter(|limit| *limit <= total.saturating_mul(4));
    let top = limit.unwrap_or(total).max(total).max(1);
    let x = |at: usize| LEFT + (RIGHT - LEFT) * (at + 1) as f64 / points.max(1) as f64;
    let y = |cost: u64| BOTTOM - (BOTTOM - TOP) * cost as f64 / top as f64;
    let mut below = vec![0_u64; points];
    let mut areas = Vec::new();
    for model in models {
        let above =
            below.iter().zip(&model.cost_micro_usd).map(|(below, cost)| below + cost.0).collect::<Vec<_>>();
        areas.push(area(&below, &above, &x, &y));
        below = above;
    }
    let half = y(top / 2);
    let clock = |at| absolute(at).1.get(11..16).unwrap_or_default().to_owned();
    html! {
        figure { svg.chart viewBox="0 0 290 132" role="img" aria-label=(says) {
            path.grid d={ "M" (LEFT) " " (BOTTOM) "H" (RIGHT) "M" (LEFT) " " (format!("{half:.1}")) "H" (RIGHT) } {}
            @if let Some(limit) = limit { path.lim d={ "M" (LEFT) " " (format!("{:.1}", y(limit))) "H" (RIGHT) } {} text x="284" y=(format!("{:.1}", y(limit) + 10.0)) text-anchor="end" { "limit" } }
            text x="30" y="12" text-anchor="end" { (money(MicroDollars(top))) }
            text x="30" y="113" text-anchor="end" { "0" }
            text x=(LEFT) y="126" { (clock(curve.from_ms)) }
            text x=(RIGHT) y="126" text-anchor="end" { (clock(curve.to_ms)) }
            @for (at, area) in areas.iter().enumerate() { path class={ "a" (at + 1) } d=(area) {} }
        } }
    }
}

/// The area between two lines that begin together on the left.
fn area(below: &[u64], above: &[u64], x: &impl Fn(usize) -> f64, y: &impl Fn(u64) -> f64) -> String {
    let mut path = format!("M{LEFT:.1} {BOTTOM:.1}");
    for (at, cost) in above.iter().enumerate() {
        path.push_str(&format!("L{:.1} {:.1}", x(at), y(*cost)));
    }
    for (at, cost) in below.iter().enumerate().rev() {
        path.push_str(&format!("L{:.1} {:.1}", x(at), y(*cost)));
    }
    path.push('Z');
    path
}
