//! `read_file` of pictures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use expect_test::{Expect, expect};
use provost_event::{BlobId, ImageKind, ToolStatus};
use provost_harness::IMAGE_BYTES_MAX;
use serde_json::json;

use crate::fixture::{Fixture, Kept};

fn png(width: u32, height: u32) -> Vec<u8> {
    let (width, height) = (width.to_be_bytes(), height.to_be_bytes());
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
        &width[..],
        &height,
        b"\x08\x06\0\0\0\x1f\x15\xc4\x89",
        b"\0\0\0\0IEND\xaeB`\x82",
    ]
    .concat()
}

/// With a segment that contains a smaller picture's frame header and end, and fill bytes before the real ones.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let frame = |w: u16, h: u16| {
        [&b"\xff\xc2\0\x0b\x08"[..], &h.to_be_bytes(), &w.to_be_bytes(), b"\x01\x01\x11\0"].concat()
    };
    let thumbnail = [&b"\xff\xd8"[..], &frame(1, 1), b"\xff\xd9"].concat();
    let length = u16::try_from(thumbnail.len() + 2).unwrap().to_be_bytes();
    [
        &b"\xff\xd8\xff\xe1"[..],
        &length,
        &thumbnail,
        b"\xff\xff",
        &frame(width, height),
        b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x12\x34",
        b"\xff\xd9",
    ]
    .concat()
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [b"GIF89a", &width.to_le_bytes()[..], &height.to_le_bytes(), b"\0\0\0;"].concat()
}

fn webp(chunk: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    [b"RIFF", &length(12 + body.len())[..], b"WEBP", chunk, &length(body.len()), body].concat()
}

/// Status, text, and the attached pictures.
async fn check(fixture: &Fixture, path: &str, expect: Expect) {
    let output = fixture.call("read_file", json!({"path": path})).await;
    let images =
        output.images.iter().map(|image| format!("+ {:?} of {} bytes\n", image.kind(), image.bytes().len()));
    expect.assert_eq(&format!("{}{}", fixture.shown(&output), images.collect::<String>()));
}

#[tokio::test]
async fn each_kind_is_shown_with_its_size() {
    let kinds = [
        ("a", png(640, 480), ImageKind::Png, "image/png, 640×480, 45 B"),
        ("b", jpeg(300, 20), ImageKind::Jpeg, "image/jpeg, 300×20, 52 B"),
        ("c", gif(1, 2), ImageKind::Gif, "image/gif, 1×2, 14 B"),
        (
            "d",
            webp(b"VP8 ", b"\x30\x01\0\x9d\x01\x2a\x10\x40\x20\0"),
            ImageKind::Webp,
            "image/webp, 16×32, 30 B",
        ),
        ("e", webp(b"VP8L", b"\x2f\x0f\xc0\x07\0\0"), ImageKind::Webp, "image/webp, 16×32, 26 B"),
        ("f", webp(b"VP8X", b"\0\0\0\0\x0f\0\0\x1f\0\0"), ImageKind::Webp, "image/webp, 16×32, 30 B"),
    ];
    for (path, bytes, kind, text) in kinds {
        let output = Fixture::new().file(path, &bytes).call("read_file", json!({"path": path})).await;
        assert_eq!((output.status, output.text.as_str()), (ToolStatus::Ok, text), "{path}");
        let images = output.images.iter().map(|image| (image.kind(), image.bytes())).collect::<Vec<_>>();
        assert_eq!(images, [(kind, bytes.as_slice())], "{path}");
    }
}

#[tokio::test]
async fn what_is_a_picture_its_bytes_say_and_lines_asked_for_are_no_matter() {
    let fixture = Fixture::new().file("notes.txt", png(2, 2)).file("text.gif", "GIF89a is a format\n");
    let shown = expect![[r#"
        Ok
        image/png, 2×2, 45 B
        + Png of 45 bytes
    "#]];
    check(&fixture, "notes.txt", shown).await;
    let text = expect![[r#"
        Ok
        1	GIF89a is a format
        [lines 1-1 of 1]
    "#]];
    check(&fixture, "text.gif", text).await;
    let lines = fixture.call("read_file", json!({"path": "notes.txt", "offset": 7, "limit": 1})).await;
    assert_eq!((lines.status, lines.images.len()), (ToolStatus::Ok, 1), "{}", lines.text);
}

#[tokio::test]
async fn a_kept_picture_is_shown_too() {
    let mut fixture = Fixture::new();
    fixture.blobs = Arc::new(Kept(BTreeMap::from([(BlobId("a-hash".into()), gif(1, 1))])));
    let shown = expect![[r#"
        Ok
        image/gif, 1×1, 14 B
        + Gif of 14 bytes
    "#]];
    check(&fixture, "output:a-hash", shown).await;
}

#[tokio::test]
async fn a_picture_may_be_as_large_as_models_take_and_no_byte_larger() {
    let mut bytes = png(640, 480);
    bytes.resize(IMAGE_BYTES_MAX, 0);
    let fixture = Fixture::new().file("most", &bytes).file("more", [&bytes[..], b"\0"].concat());
    let most = expect![[r#"
        Ok
        image/png, 640×480, 3.6 MB
        + Png of 3750000 bytes
    "#]];
    check(&fixture, "most", most).await;
    let more = expect![[r#"
        Error
        `more` can't be shown: the image has 3750001 bytes, and models take at most 3750000; scale it down
    "#]];
    check(&fixture, "more", more).await;
}

#[tokio::test]
async fn a_huge_one_is_not_read_to_its_end() {
    let fixture = Fixture::new();
    let mut file = File::create(fixture.path("huge")).unwrap();
    file.write_all(&png(1, 1)).unwrap();
    file.set_len(1 << 40).unwrap();
    let refused = expect![[r#"
        Error
        `huge` can't be shown: the image has 1099511627776 bytes, and models take at most 3750000; scale it down
    "#]];
    check(&fixture, "huge", refused).await;
}

#[tokio::test]
async fn a_side_may_be_as_long_as_models_take_and_no_pixel_longer() {
    let fixture = Fixture::new().file("most", png(8_000, 1)).file("more", png(1, 8_001));
    let most = expect![[r#"
        Ok
        image/png, 8000×1, 45 B
        + Png of 45 bytes
    "#]];
    check(&fixture, "most", most).await;
    let more = expect![[r#"
        Error
        `more` can't be shown: it has 1×8001 pixels, and models take at most 8000 a side; scale it down
    "#]];
    check(&fixture, "more", more).await;
}

/// A picture that a provider can't read would end the run: the conversation would keep it for good.
#[tokio::test]
async fn one_that_is_damaged_or_cut_is_not_shown() {
    let whole = [png(2, 2), jpeg(2, 2), gif(2, 2)[..10].to_vec(), webp(b"VP8X", b"\0\0\0\0\x0f\0\0\x1f\0\0")];
    for bytes in whole {
        for end in [12, bytes.len() / 2, bytes.len() - 1] {
            let cut = &bytes[..end.min(bytes.len() - 1)];
            let output = Fixture::new().file("cut", cut).call("read_file", json!({"path": "cut"})).await;
            assert_eq!(output.images, [], "{cut:?}");
        }
    }
    let fixture = Fixture::new().file("nothing", png(0, 2)).file("cut", &png(2, 2)[..40]);
    let nothing = expect![[r#"
        Error
        `nothing` can't be shown: it is damaged, or not all of it is there (image/png, 45 B)
    "#]];
    check(&fixture, "nothing", nothing).await;
    let cut = expect![[r#"
        Error
        `cut` can't be shown: it is damaged, or not all of it is there (image/png, 40 B)
    "#]];
    check(&fixture, "cut", cut).await;
}
