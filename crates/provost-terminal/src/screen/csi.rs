//! The parts of a control sequence.

/// The most parameters that are read; a sequence with more isn't one that Provost answers to.
const PARAMETERS_MAX: usize = 32;

/// A control sequence, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Csi {
    /// `<`, `=`, `>` or `?` if it starts with one, then the bytes between parameters and the last, then the last.
    pub(crate) name: String,
    /// `None` where one was left out.
    parameters: Vec<Option<u16>>,
}

impl Csi {
    /// Takes a sequence apart, from behind its `ESC [`; `None` if it isn't well formed or has parts of parameters.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (prefix, rest) = match body.split_first() {
            Some((first @ b'<'..=b'?', rest)) => (Some(*first), rest),
            _ => (None, body),
        };
        let end = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b';')).unwrap_or(rest.len());
        let (numbers, last) = rest.split_at(end);
        let (final_byte, between) = last.split_last()?;
        let is_formed =
            between.iter().all(|b| (0x20..=0x2f).contains(b)) && (0x40..=0x7e).contains(final_byte);
        if !is_formed {
            return None;
        }
        let name = prefix.iter().chain(last).map(|b| char::from(*b)).collect();
        let parameters =
            if numbers.is_empty() { Vec::new() } else { numbers.split(|b| *b == b';').map(number).collect() };
        (parameters.len() <= PARAMETERS_MAX).then_some(Self { name, parameters })
    }

    /// How many parameters there are.
    pub(crate) const fn len(&self) -> usize {
        self.parameters.len()
    }

    /// A parameter, 0 if it isn't there.
    pub(crate) fn parameter(&self, index: usize) -> u16 {
        self.parameters.get(index).copied().flatten().unwrap_or(0)
    }

    /// A parameter that says how often; at least 1.
    pub(crate) fn count(&self, index: usize) -> u16 {
        self.parameter(index).max(1)
    }

    /// All parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = u16> + '_ {
        self.parameters.iter().map(|parameter| parameter.unwrap_or(0))
    }
}

/// Saturates; `None` for no digits.
fn number(digits: &[u8]) -> Option<u16> {
    let digit =
        |value: u16, byte: &u8| value.saturating_mul(10).saturating_add(u16::from(byte.wrapping_sub(b'0')));
    (!digits.is_empty()).then(|| digits.iter().fold(0, digit))
}
