//! Estimates how many tokens a text has, where no provider has counted it yet.

/// Tokens around each block of a request.
pub(crate) const BLOCK_TOKENS: u64 = 8;
/// Tokens of an image: providers take some 1,600 for one of the largest size that they don't scale down.
pub const IMAGE_TOKENS: u64 = 1_600;

/// Classes of bytes that tokenizers separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Punctuation,
    /// Punctuation that occurs in encoded bytes.
    Joint,
    /// Part of a character outside ASCII.
    Other,
}

impl Class {
    const fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            b' ' | b'\t' | b'\n' | b'\r' => Self::Space,
            b'+' | b'/' | b'-' | b'_' | b'=' => Self::Joint,
            0x80.. => Self::Other,
            _ => Self::Punctuation,
        }
    }

    /// Tokens of `length` consecutive bytes of this class.
    const fn tokens(self, length: u64) -> u64 {
        match self {
            Self::Lower => length.div_ceil(6),
            Self::Upper | Self::Digit => length.div_ceil(3),
            // The space before a word belongs to it.
            Self::Space if length <= 1 => 0,
            Self::Space => 1 + length / 16,
            Self::Punctuation | Self::Joint => (2 * length).div_ceil(3),
            Self::Other => length.div_ceil(2),
        }
    }
}

/// The current stretch of letters, digits and the characters that join them.
#[derive(Debug, Default)]
struct TokenRun {
    bytes: u64,
    /// Runs of one class in it.
    runs: u64,
    tokens: u64,
}

impl TokenRun {
    /// Adds a finished run of one class. Returns the tokens that this settles.
    fn end_of(&mut self, class: Class, length: u64) -> u64 {
        if matches!(class, Class::Space | Class::Punctuation | Class::Other) {
            return std::mem::take(self).tokens() + class.tokens(length);
        }
        self.bytes += length;
        self.runs += 1;
        self.tokens += class.tokens(length);
        0
    }

    /// Long stretches that often change class are encoded bytes, in which tokenizers find almost no words: base64
    /// has almost three tokens in four bytes with OpenAI's.
    const fn tokens(&self) -> u64 {
        let is_encoded = self.bytes >= ENCODED_BYTES && self.runs * 4 >= self.bytes;
        let encoded = (3 * self.bytes).div_ceil(4);
        if is_encoded && encoded > self.tokens { encoded } else { self.tokens }
    }
}

/// Minimum bytes of a stretch that counts as encoded.
const ENCODED_BYTES: u64 = 20;

/// Tokens of `text`, by the shapes of its words: slightly more than most tokenizers count, for prose and code as
/// well as for numbers, encoded bytes and other scripts. Takes time linear in its length.
#[must_use]
pub fn tokens_of(text: &str) -> u64 {
    let mut sum = 0_u64;
    let mut class = Class::Space;
    let mut length = 0_u64;
    let mut stretch = TokenRun::default();
    for next in text.bytes().map(Class::of) {
        if next == class {
            length += 1;
            continue;
        }
        if class == Class::Upper && next == Class::Lower && length == 1 {
            class = next;
            length = 2;
            continue;
        }
        sum += stretch.end_of(class, length);
        class = next;
        length = 1;
    }
    sum + stretch.end_of(class, length) + stretch.tokens()
}

#[cfg(test)]
mod tests {
    use super::tokens_of;

    #[test]
    fn shapes_of_text_count_differently() {
        assert_eq!(tokens_of(""), 0);
        assert_eq!(tokens_of("the quick brown fox"), 4);
        assert_eq!(tokens_of("Hello, World!"), 4);
        assert_eq!(tokens_of("123456"), 2);
        assert_eq!(tokens_of(&"0123456789abcdef".repeat(100)), 500);
        assert!(tokens_of(&"3f9a0c7de1b2".repeat(100)) > 700);
        assert_eq!(tokens_of(r#"{"a":1,"b":[2,3]}"#), 16);
        assert_eq!(tokens_of("T3JpZ2luYWwgZGF0YSBpcyBmYXIgYXdheQ=="), 27);
        assert!(tokens_of("こんにちは") >= 5);
        assert!(tokens_of(&" ".repeat(160)) <= 12);
    }
}
