//! The modes of a terminal that only the emulator needs.

use super::charset::Charsets;

/// Maximum keyboard settings on a stack, a limit that kitty's protocol allows; the oldest is dropped.
const KEYBOARD_STACK_MAX: usize = 16;

/// State that the library doesn't keep. The pairs are for the main and the alternate screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) synchronized: bool,
    pub(crate) focus_reports: bool,
    pub(crate) scheme_reports: bool,
    pub(crate) graphemes: bool,
    pub(crate) clips: bool,
    pub(crate) inserts: bool,
    pub(crate) modify_other_keys: u8,
    pub(crate) charsets: Charsets,
    pub(crate) saved_charsets: Charsets,
    keyboards: [Keyboard; 2],
    grids: [Grid; 2],
}

/// A stack of keyboard flags; the last is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Keyboard {
    below: Vec<u8>,
    flags: u8,
}

/// The scroll region, and the origin of row numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    /// First and last row, from 0; `None`: all.
    pub(crate) region: Option<(u16, u16)>,
    pub(crate) origin: bool,
    pub(crate) saved_origin: bool,
}

impl Kept {
    fn keyboard(&self, alternate: bool) -> &Keyboard {
        let [main, other] = &self.keyboards;
        if alternate { other } else { main }
    }

    fn keyboard_mut(&mut self, alternate: bool) -> &mut Keyboard {
        let [main, other] = &mut self.keyboards;
        if alternate { other } else { main }
    }

    pub(crate) const fn grid(&self, alternate: bool) -> Grid {
        let [main, other] = self.grids;
        if alternate { other } else { main }
    }

    pub(crate) const fn grid_mut(&mut self, alternate: bool) -> &mut Grid {
        let [main, other] = &mut self.grids;
        if alternate { other } else { main }
    }

    /// The window has a new size: the scroll region is the whole window.
    pub(crate) fn forget_regions(&mut self) {
        for grid in &mut self.grids {
            grid.region = None;
        }
    }

    pub(crate) fn keyboard_flags(&self, alternate: bool) -> u8 {
        self.keyboard(alternate).flags
    }

    /// `CSI > flags u`.
    pub(crate) fn push_keyboard(&mut self, alternate: bool, flags: u16) {
        let keyboard = self.keyboard_mut(alternate);
        keyboard.below.push(keyboard.flags);
        if keyboard.below.len() > KEYBOARD_STACK_MAX {
            keyboard.below.remove(0);
        }
        keyboard.flags = known_flags(flags);
    }

    /// `CSI < count u`.
    pub(crate) fn pop_keyboard(&mut self, alternate: bool, count: u16) {
        let keyboard = self.keyboard_mut(alternate);
        for _ in 0..usize::from(count).min(KEYBOARD_STACK_MAX + 1) {
            keyboard.flags = keyboard.below.pop().unwrap_or(0);
        }
    }

    /// `CSI = flags ; how u`: 1 sets all, 2 adds, 3 removes.
    pub(crate) fn set_keyboard(&mut self, alternate: bool, flags: u16, how: u16) {
        let keyboard = self.keyboard_mut(alternate);
        let flags = known_flags(flags);
        keyboard.flags = match how {
            0 | 1 => flags,
            2 => keyboard.flags | flags,
            3 => keyboard.flags & !flags,
            _ => keyboard.flags,
        };
    }

    /// The sequences that restore the keyboard state on a reset terminal.
    pub(crate) fn keyboard_painted(&self, alternate: bool) -> String {
        let keyboard = self.keyboard(alternate);
        let mut levels = keyboard.below.iter().chain([&keyboard.flags]);
        let lowest = levels.next().filter(|flags| **flags != 0).map(|flags| format!("\x1b[={flags}u"));
        lowest.into_iter().chain(levels.map(|flags| format!("\x1b[>{flags}u"))).collect()
    }
}

/// The protocol has five flags.
fn known_flags(flags: u16) -> u8 {
    u8::try_from(flags & 0b1_1111).unwrap_or(0)
}
