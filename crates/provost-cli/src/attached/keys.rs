//! Which of what is typed is the key that detaches.

use provost_config::DetachKey;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed<'a> {
    /// Keys for the program.
    Keys(&'a [u8]),
    /// The key that detaches, behind these.
    Detach {
        /// Keys for the program.
        before: &'a [u8],
    },
}

/// Looks for the key in every form that a terminal may send: as a byte, and where the program asked for distinct
/// keys, as `CSI code ; 5 u` or `CSI 27 ; 5 ; code ~`.
pub(crate) fn read(typed: &[u8], key: DetachKey) -> Typed<'_> {
    let plain = key.byte();
    let code = u32::from((plain | 0x40).to_ascii_lowercase());
    let forms = [
        vec![plain],
        format!("\u{1b}[{code};5u").into_bytes(),
        format!("\u{1b}[{code};5:1u").into_bytes(),
        format!("\u{1b}[27;5;{code}~").into_bytes(),
    ];
    let first = forms.iter().filter_map(|form| typed.windows(form.len()).position(|part| part == form)).min();
    match first.and_then(|at| typed.get(..at)) {
        Some(before) => Typed::Detach { before },
        None => Typed::Keys(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::{DetachKey, Typed, read};

    #[test]
    fn the_key_is_found_however_it_is_sent_and_nothing_behind_it_is_typed() {
        let key = DetachKey::default();
        for typed in ["ab\u{1c}cd", "ab\u{1b}[92;5u", "ab\u{1b}[92;5:1u", "ab\u{1b}[27;5;92~x"] {
            assert_eq!(read(typed.as_bytes(), key), Typed::Detach { before: b"ab" }, "{typed:?}");
        }
        for typed in ["", "ab\\", "\u{1b}[A", "\u{1b}[92;1u"] {
            assert_eq!(read(typed.as_bytes(), key), Typed::Keys(typed.as_bytes()), "{typed:?}");
        }
        let key = "ctrl-q".parse().unwrap();
        assert_eq!(read("\u{1b}[113;5u".as_bytes(), key), Typed::Detach { before: b"" });
    }
}
