//! What agents are told of skills before their goal: what there are, and what each is for.

use crate::fence::Label;

/// Maximum bytes of the names and descriptions.
const BYTES_MAX: usize = 8 * 1024;

const HEADING: &str = "Skills: instructions for some kinds of work, by the user or the project. If one fits what you do, \
get it with `skill` first, and follow it as far as the goal allows. They are quoted:\n";

/// The part about these skills, each a name and a description; empty without any.
#[must_use]
pub fn skills_preamble<'a>(skills: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines = skills.map(|(name, description)| Label::Skill.quote_line(&format!("{name}: {description}")));
    let mut text = String::new();
    let mut left_out = 0_usize;
    for line in lines {
        if text.len() + line.len() <= BYTES_MAX {
            text.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if text.is_empty() && left_out == 0 {
        return String::new();
    }
    if left_out > 0 {
        text.push_str(&format!("(and {left_out} more, for which there is no room)\n"));
    }
    format!("{HEADING}{}", text.trim_end())
}
