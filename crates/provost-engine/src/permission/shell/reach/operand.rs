//! Operands to which an otherwise reading program writes: `uniq IN OUT`.

use super::super::program::{Operands, Options};
use super::{At, Reach, Word};
use crate::permission::glob::HOLE;

const WRITES: &str = "it writes the file that its second operand names";
const SETS: &str = "it sets what its operand names";

impl Reach {
    pub(super) fn operands(&mut self, options: &Options, at: At<'_>) {
        if options.operands == Operands::Reads {
            return;
        }
        let mut operands = Vec::new();
        for place in places(options, at.arguments) {
            let Some(word) = at.arguments.get(place) else { continue };
            // The shell may expand it to several words.
            operands.extend(std::iter::repeat_n((place, word), if word.splits { 2 } else { 1 }));
        }
        match options.operands {
            Operands::Reads => {}
            Operands::WritesSecond => {
                if let Some((place, _)) = operands.get(1) {
                    self.unread(WRITES, at, *place);
                }
            }
            Operands::Sets => self.sets(at, &operands, |value| !value.starts_with('+')),
            Operands::SetsByName => self.sets(at, &operands, |value| value.contains(['=', HOLE])),
        }
    }

    fn sets(&mut self, at: At<'_>, operands: &[(usize, &Word)], does: impl Fn(&str) -> bool) {
        for (place, _) in operands.iter().filter(|(_, word)| does(&word.value)) {
            self.unread(SETS, at, *place);
        }
    }
}

/// The positions of operands; if uncertain, too many rather than too few.
fn places(options: &Options, arguments: &[Word]) -> Vec<usize> {
    // Some programs take no options after the first operand.
    let mut found = Vec::new();
    let mut only_operands = false;
    let mut place = 0;
    while let Some(word) = arguments.get(place) {
        let value = word.value.as_str();
        let here = place;
        place += 1;
        if only_operands || !value.starts_with('-') || value == "-" {
            only_operands |= options.operands == Operands::WritesSecond;
            found.push(here);
        } else if value == "--" {
            only_operands = true;
        } else if takes_next(options, value) {
            // A value that expands to several words is followed by operands.
            found.extend(arguments.get(place).filter(|next| next.splits).map(|_| place));
            place += 1;
        }
    }
    found
}

/// Whether the next word is an option's value.
fn takes_next(options: &Options, option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    match letters.strip_prefix('-') {
        Some(long) => options.valued_long.iter().any(|known| known.starts_with(long)),
        // Programs differ in how they read several letters in one word.
        None => letters.chars().count() == 1 && options.valued.contains(letters),
    }
}
