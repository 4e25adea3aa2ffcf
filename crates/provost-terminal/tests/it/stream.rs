//! Any output, cut anywhere: the same screen, reports and replies, no panic, bounded memory.

use proptest::prelude::*;
use proptest::sample::Index;
use provost_event::WindowSize;
use provost_terminal::{Screen, Signal};

/// Pieces of output, whole, cut and malformed; separated by broken bars.
const PIECES: &str = "hello world¦\r\n¦\n¦\t¦\x08¦\x07¦\x0e¦\x0f¦\x18¦\x1a¦\x1b¦\x1b[m¦\x1b[1;31;7m¦\x1b[38;2;1;2;3m¦\
    \x1b[38;5;200m¦\x1b[H¦\x1b[2J¦\x1b[K¦\x1b[1K¦\x1b[3;4H¦\x1b[99;99H¦\x1b[5A¦\x1b[2B¦\x1b[3C¦\x1b[2D¦\
    \x1b[L¦\x1b[M¦\x1b[2P¦\x1b[4@¦\x1b[3X¦\x1b[2;4r¦\x1b[r¦\x1b[S¦\x1b[T¦\x1b[5b¦\x1b[65535b¦\x1b[?6h¦\
    \x1b[?6l¦\x1b[?7l¦\x1b[?7h¦\x1b[4h¦\x1b[4l¦\x1b(0¦\x1b(B¦\x1b)0¦lqqk¦\x1b7¦\x1b8¦\x1b[s¦\x1b[u¦\x1bc¦\
    \x1bD¦\x1bE¦\x1bM¦\x1b[!p¦\x1b[2Z¦\x1b[I¦\x1b[?1049h¦\x1b[?1049l¦\x1b[?1047h¦\x1b[?1047l¦\x1b[?47h¦\
    \x1b[?47l¦\x1b[?2026h¦\x1b[?2026l¦\x1b[?2004h¦\x1b[?1004h¦\x1b[?1000;1006h¦\x1b[?25l¦\x1b[>7u¦\x1b[<u¦\
    \x1b[=5;1u¦\x1b[?u¦\x1b[c¦\x1b[>c¦\x1b[6n¦\x1b[?2026$p¦\x1b[18t¦\x1b[>4;2m¦\x1b[>4;?m¦\x1b[22;0t¦\
    \x1b[23;0t¦\x1b]0;title\x07¦\x1b]2;other\x1b\\¦\x1b]11;?\x07¦\x1b]4;1;?\x1b\\¦\
    \x1b]7501;state=working:app=x\x1b\\¦\x1b]133;D;1\x07¦\x1b]9;4;1;50\x07¦\x1b]777;notify;a;b\x07¦\
    \x1b]52;c;?\x07¦\x1bP$qm\x1b\\¦\x1bP+q544e\x1b\\¦\x1b_Gi=1;AAAA\x1b\\¦\x1b^pm\x1b\\¦\x1bXsos\x1b\\¦\
    \x1b]unterminated¦\x1bPunterminated¦\x1b[1;2¦\x1b[!!!!¦\x1b[ q¦\x1b[4 q¦\
    日本語¦e\u{301}¦👩\u{200d}👩\u{200d}👧¦❤\u{fe0f}¦─│┌¦ﷺ¦\u{200b}¦🇩🇪¦\u{fffd}";
/// Bytes that aren't text.
const BYTES: &[&[u8]] = &[b"\xe2\x82", b"\xf0\x9f", b"\xff\xfe", b"\xc3\x28", b"\x80\x9b"];

pub(crate) fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let pieces = PIECES.split('¦').map(|piece| piece.as_bytes().to_vec());
    let pieces: Vec<_> = pieces.chain(BYTES.iter().map(|bytes| bytes.to_vec())).collect();
    prop_oneof![
        8 => prop::sample::select(pieces),
        1 => prop::collection::vec(any::<u8>(), 0..12),
        2 => "[ -~]{0,20}".prop_map(String::into_bytes),
    ]
}

pub(crate) fn written() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..40).prop_map(|fragments| fragments.concat())
}

fn window() -> impl Strategy<Value = WindowSize> {
    (1_u16..12, 1_u16..30).prop_map(|(rows, cols)| WindowSize::new(rows, cols))
}

/// The bytes, cut at these positions.
pub(crate) fn cut<'a>(bytes: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let ends = places.iter().copied().chain([bytes.len()]);
    let mut from = 0;
    ends.map(|end| &bytes[std::mem::replace(&mut from, end)..end]).collect()
}

/// The visible state of a screen.
fn seen(screen: &mut Screen) -> (Vec<String>, String, Vec<Signal>, Vec<u8>, Vec<u8>, u64) {
    let state = format!("{:?} {:?} {}", screen.cursor(), screen.modes(), screen.title());
    (
        screen.rows(),
        state,
        screen.take_signals(),
        screen.take_replies(),
        screen.snapshot(),
        screen.fingerprint(),
    )
}

proptest! {
    #[test]
    fn any_stream_keeps_the_law(head in any::<[u8; 3]>(), bytes in written()) {
        crate::stream_law::check(&[&head[..], &bytes].concat());
    }

    #[test]
    fn a_stream_comes_to_the_same_wherever_it_is_cut(
        size in window(),
        bytes in written(),
        places in prop::collection::vec(any::<Index>(), 0..20),
    ) {
        let mut whole = Screen::new(size);
        whole.feed(&bytes);
        let mut parts = Screen::new(size);
        cut(&bytes, &places).into_iter().for_each(|part| parts.feed(part));
        let mut single = Screen::new(size);
        bytes.chunks(1).for_each(|byte| single.feed(byte));
        let seen_whole = seen(&mut whole);
        prop_assert_eq!(&seen_whole, &seen(&mut parts));
        prop_assert_eq!(&seen_whole, &seen(&mut single));
    }

    #[test]
    fn resizing_at_any_point_is_survived(steps in prop::collection::vec((written(), 1_u16..40, 1_u16..60), 1..5)) {
        let mut screen = Screen::new(WindowSize::default());
        for (bytes, rows, cols) in steps {
            screen.feed(&bytes);
            screen.resize(WindowSize::new(rows, cols));
            prop_assert_eq!(screen.rows().len(), usize::from(rows));
            let cursor = screen.cursor();
            prop_assert!(cursor.row < rows && cursor.col <= cols.max(2));
            prop_assert!(screen.runs(rows - 1).iter().all(|run| run.col < cols.max(2)));
        }
    }

    #[test]
    fn a_snapshot_brings_a_fresh_screen_to_the_same(size in window(), bytes in written()) {
        // Where rows are counted from the scroll region, a cursor past the last column is painted on it.
        let bytes = String::from_utf8_lossy(&bytes).replace("\x1b[?6h", "").into_bytes();
        let mut screen = Screen::new(size);
        screen.feed(&bytes);
        let mut fresh = Screen::new(size);
        fresh.feed(&screen.snapshot());
        prop_assert_eq!(screen.rows(), fresh.rows());
        prop_assert_eq!(screen.cursor(), fresh.cursor());
        prop_assert_eq!(screen.title(), fresh.title());
        let mut modes = screen.modes();
        modes.synchronized = false;
        prop_assert_eq!(modes, fresh.modes());
        let styles = |screen: &Screen| (0..size.rows).map(|row| screen.runs(row)).collect::<Vec<_>>();
        prop_assert_eq!(styles(&screen), styles(&fresh));
    }
}
