//! Secrets that are typed while the terminal shows them: their echo isn't recorded, and their value is passed on to
//! whatever removes secrets from stored texts.

use secrecy::zeroize::Zeroizing;

use super::options::ExposedSecret;

/// The longest line that is kept.
const LINE_BYTES_MAX: usize = 4096;

/// The line that is being typed at such a prompt.
#[derive(Default)]
pub(super) struct ExposedLine {
    line: Zeroizing<Vec<u8>>,
    tell: Option<ExposedSecret>,
}

impl ExposedLine {
    pub(super) fn new(tell: Option<ExposedSecret>) -> Self {
        Self { line: Zeroizing::default(), tell }
    }

    /// These bytes were typed at the prompt.
    pub(super) fn typed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => self.end(),
                0x08 | 0x7f => drop(self.line.pop()),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        if let (Some(tell), Ok(line)) = (&self.tell, std::str::from_utf8(&line)) {
            tell(line.trim());
        }
    }

    /// The output for the recording, while this is typed: without its characters.
    pub(super) fn hidden(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let hide = |byte: &u8| if *byte > b' ' { b'*' } else { *byte };
        (!self.line.is_empty()).then(|| bytes.iter().map(hide).collect())
    }
}
