//! The parts of a control sequence.

/// Maximum parameters; Provost replies to no sequence with more.
const PARAMETERS_MAX: usize = 32;

/// A parsed control sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Csi {
    /// `<`, `=`, `>` or `?` if it starts with one, then the intermediate bytes, then the final byte.
    pub(crate) name: String,
    /// `None` for an omitted parameter.
    parameters: Vec<Option<u16>>,
}

impl Csi {
    /// Parses a sequence without its `ESC [`; `None` if it is malformed or has subparameters.
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

    /// A parameter, 0 if it is absent.
    pub(crate) fn parameter(&self, index: usize) -> u16 {
        self.parameters.get(index).copied().flatten().unwrap_or(0)
    }

    /// A repeat count; at least 1.
    pub(crate) fn count(&self, index: usize) -> u16 {
        self.parameter(index).max(1)
    }

    /// All parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = u16> + '_ {
        self.parameters.iter().map(|parameter| parameter.unwrap_or(0))
    }
}

/// Saturates; `None` without digits.
fn number(digits: &[u8]) -> Option<u16> {
    let digit =
        |value: u16, byte: &u8| value.saturating_mul(10).saturating_add(u16::from(byte.wrapping_sub(b'0')));
    (!digits.is_empty()).then(|| digits.iter().fold(0, digit))
}
