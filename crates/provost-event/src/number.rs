//! Numbers for display: one form for all text that isn't read by programs.

/// A number with thousands separators: `999`, `12,400`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, given in the singular: `1 turn`, `1,030 turns`, `2 entries`, `3 searches`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    let ends_in = |ends: &[&str]| ends.iter().any(|end| noun.ends_with(end));
    let plural = match noun.strip_suffix('y') {
        Some(stem) if !ends_in(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends_in(&["s", "x", "ch", "sh"]) => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::{counted, grouped};

    #[test]
    fn digits_stand_in_groups_of_three() {
        let shown = [0, 999, 1_000, 54_321, 2_000_000, u64::MAX].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "54,321", "2,000,000", "18,446,744,073,709,551,615"]);
    }

    #[test]
    fn a_noun_has_the_number_of_its_count() {
        let shown =
            [(0, "turn"), (1, "turn"), (2, "tool call"), (1_030, "token"), (1, "entry"), (3, "entry")];
        let shown = shown.map(|(count, noun)| counted(count, noun));
        assert_eq!(shown, ["0 turns", "1 turn", "2 tool calls", "1,030 tokens", "1 entry", "3 entries"]);
        let shown = ["day", "search", "process", "box"].map(|noun| counted(2, noun));
        assert_eq!(shown, ["2 days", "2 searches", "2 processes", "2 boxes"]);
    }
}
