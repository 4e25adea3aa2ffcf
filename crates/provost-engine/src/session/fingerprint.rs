//! Fingerprints of texts, as snapshots store them.

/// A fingerprint of these texts, the same in every version, since snapshots store it. FNV-1a over 64 bits, as its
/// authors published it, with a byte between the texts that doesn't occur in UTF-8.
pub(super) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
