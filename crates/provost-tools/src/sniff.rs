//! The format of a file that isn't text.

/// Bytes to check at the beginning of a file.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// The first bytes of well-known formats.
const MAGIC: [(&[u8], &str); 17] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document or package made of one)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"MZ", "a Windows program or library"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "Ogg media"),
    (b"\xff\xfe", "UTF-16 text (`iconv -f UTF-16 -t UTF-8` turns it into UTF-8)"),
    (b"\xfe\xff", "UTF-16 text (`iconv -f UTF-16 -t UTF-8` turns it into UTF-8)"),
];

/// The format of a file that begins with `head`, unless it is text.
pub(crate) fn not_text(head: &[u8]) -> Option<&'static str> {
    // A PDF may begin like text, but isn't useful as text.
    let has_nul = head.contains(&0);
    let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind);
    match known {
        Some(kind) if has_nul || std::str::from_utf8(head).is_err() || head.starts_with(b"%PDF-") => {
            Some(kind)
        }
        _ if has_nul => Some("binary data"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::not_text;

    #[test]
    fn text_that_begins_like_a_format_stays_text() {
        assert_eq!(not_text(b"MZ is how programs begin"), None);
        assert_eq!(not_text(b"GIF89a\0\0"), Some("a GIF image"));
        assert_eq!(not_text(b"caf\xe9"), None);
        assert_eq!(not_text(b""), None);
        assert_eq!(not_text(b"a\0"), Some("binary data"));
    }
}
