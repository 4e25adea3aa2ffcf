//! Whether what was written since the last answer may have painted over a line.

/// The output since the last answer, as far as it concerns lines.
#[derive(Debug, Default)]
pub(super) struct Paint {
    /// The cursor was moved back, something was erased or hidden, or a string was written that isn't shown.
    pub(super) moves_back: bool,
    /// Characters that change the direction of writing were written.
    pub(super) reorders: bool,
    /// Something was written on the present line.
    has_text: bool,
    last: At,
    window: [u8; 3],
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Return,
    Escape,
    Control,
}

impl Paint {
    pub(super) fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let [_, first, second] = self.window;
            self.window = [first, second, *byte];
            // U+202A to U+202E, U+2066 to U+2069.
            self.reorders |= matches!(self.window, [0xe2, 0x80, 0xaa..=0xae] | [0xe2, 0x81, 0xa6..=0xa9]);
            if !self.moves_back {
                self.last = self.after(*byte);
            }
        }
    }

    fn after(&mut self, byte: u8) -> At {
        match (self.last, byte) {
            (At::Escape, b'[') => At::Control,
            // Colours and modes move nothing, but one of them hides text.
            (At::Escape, b'=' | b'>' | b'(' | b')') | (At::Control, b'm' | b'h' | b'l') => At::Text,
            (At::Control, b'0'..=b'7' | b'9' | b';' | b':' | b'?') => At::Control,
            (At::Escape | At::Control, _) | (_, 0x08) => self.moved(),
            (_, 0x1b) => At::Escape,
            (_, b'\n') => {
                self.has_text = false;
                At::Text
            }
            // At the beginning of a line it moves nothing: shells write one when they leave their own line.
            (_, b'\r') => {
                if self.has_text {
                    At::Return
                } else {
                    At::Text
                }
            }
            (At::Return, _) => self.moved(),
            _ => {
                self.has_text = true;
                At::Text
            }
        }
    }

    fn moved(&mut self) -> At {
        self.moves_back = true;
        At::Text
    }
}
