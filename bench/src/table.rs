//! The table that is printed: a line a number.

/// Whether a number is to stay below a bound or above it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// Prints the head of a table.
pub(crate) fn head(title: &str) {
    println!("\n### {title}\n\n| what | size | median | min–max | target | |\n|---|---|---:|---:|---:|---|");
}

/// Prints a line: `what` of `size`, measured as `values` in `unit`. Returns the median.
pub(crate) fn row(what: &str, size: &str, unit: &str, values: &[f64], target: Target) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    let least = sorted.first().copied().unwrap_or(f64::NAN);
    let most = sorted.last().copied().unwrap_or(f64::NAN);
    let (bound, met) = match target {
        Target::None => (String::new(), ""),
        Target::AtMost(bound) => (format!("≤ {}", show(bound)), verdict(middle <= bound)),
        Target::AtLeast(bound) => (format!("≥ {}", show(bound)), verdict(middle >= bound)),
    };
    println!(
        "| {what} | {size} | {} {unit} | {}–{} | {bound} | {met} |",
        show(middle),
        show(least),
        show(most)
    );
    middle
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Three significant digits or whole numbers.
fn show(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middling if middling < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
