//! A picture's header: its size, and whether the file is complete.
//!
//! A provider refuses a whole request because of one invalid picture, and the conversation keeps that picture: so
//! it is checked first.

use provost_event::ImageKind;

/// Maximum pixels of a side: Anthropic's limit; other providers scale larger pictures down.
pub(crate) const SIDE_MAX: u32 = 8_000;

/// Width and height in pixels; `None` for a damaged or incomplete picture.
pub(crate) fn sides(kind: ImageKind, bytes: &[u8]) -> Option<(u32, u32)> {
    let (width, height) = match kind {
        ImageKind::Png => png(bytes),
        ImageKind::Jpeg => jpeg(bytes),
        ImageKind::Gif => gif(bytes),
        ImageKind::Webp => webp(bytes),
    }?;
    (width > 0 && height > 0).then_some((width, height))
}

/// The PNG specification: the chunk IHDR comes first, IEND last.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let has_end = bytes.windows(8).rev().any(|end| end == b"IEND\xae\x42\x60\x82");
    let has_header = field(bytes, 12)? == *b"IHDR";
    let sides = (u32::from_be_bytes(field(bytes, 16)?), u32::from_be_bytes(field(bytes, 20)?));
    (has_header && has_end).then_some(sides)
}

/// ITU-T T.81, annex B: segments up to the frame header, and an end-of-image marker after the scans.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = field(bytes, at)? else { return None };
        match marker {
            // A fill byte.
            0xff => at += 1,
            // Markers without a segment.
            0x01 | 0xd0..=0xd7 => at += 2,
            // Frame headers; the three excluded numbers are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => break,
            _ => at += 2 + usize::from(u16::from_be_bytes(field(bytes, at + 2)?)),
        }
    }
    let [height, width] = [at + 5, at + 7].map(|at| Some(u16::from_be_bytes(field(bytes, at)?)));
    let has_end = bytes.get(at..)?.windows(2).rev().any(|end| end == [0xff, 0xd9]);
    has_end.then_some((width?.into(), height?.into()))
}

/// The GIF89a specification, the logical screen descriptor. A file cut off after it still has a first frame.
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let [width, height] = [6, 8].map(|at| Some(u16::from_le_bytes(field(bytes, at)?)));
    Some((width?.into(), height?.into()))
}

/// RFC 9649: a simple file, a lossless one, or an extended one, by the first chunk.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let length = usize::try_from(u32::from_le_bytes(field(bytes, 4)?)).ok()?;
    if bytes.len() < length.checked_add(8)? {
        return None;
    }
    match &field::<4>(bytes, 12)? {
        b"VP8 " if field(bytes, 23)? == [0x9d, 0x01, 0x2a] => {
            let [width, height] = [26, 28].map(|at| Some(u16::from_le_bytes(field(bytes, at)?) & 0x3fff));
            Some((width?.into(), height?.into()))
        }
        b"VP8L" if field(bytes, 20)? == [0x2f] => {
            let packed = u32::from_le_bytes(field(bytes, 21)?);
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let [a, b, c, d, e, f] = field(bytes, 24)?;
            Some((u32::from_le_bytes([a, b, c, 0]) + 1, u32::from_le_bytes([d, e, f, 0]) + 1))
        }
        _ => None,
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
