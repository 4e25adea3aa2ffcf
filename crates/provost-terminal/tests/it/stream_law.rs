//! Properties of any stream of bytes. The fuzz target checks the same.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use provost_event::WindowSize;
use provost_terminal::{CastWriter, Detector, Mask, Profile, Screen};

const SECRET: &str = "sk-abcdefgh12";
static PROFILE: LazyLock<Arc<Profile>> = LazyLock::new(|| Arc::new(Profile::for_command("sh", &[])));

/// The first three bytes are the window size and the position of the cut.
///
/// # Panics
/// If a property doesn't hold.
pub(crate) fn check(input: &[u8]) {
    let Some(([rows, cols, cut], bytes)) = input.split_first_chunk::<3>() else { return };
    let size = WindowSize::new(u16::from(rows % 24) + 1, u16::from(cols % 80) + 1);
    let step = usize::from(cut % 16) + 1;
    screens_agree(size, bytes, step);
    recordings_agree(bytes, step);
    detectors_agree(size, bytes, step);
}

fn screens_agree(size: WindowSize, bytes: &[u8], step: usize) {
    let mut whole = Screen::new(size);
    whole.feed(bytes);
    let mut parts = Screen::new(size);
    bytes.chunks(step).for_each(|part| parts.feed(part));
    assert_eq!(whole.rows(), parts.rows());
    assert_eq!(whole.snapshot(), parts.snapshot());
    assert_eq!(whole.take_signals(), parts.take_signals());
    assert_eq!(whole.take_replies(), parts.take_replies());
    assert!(whole.take_replies().is_empty() && whole.title().len() <= 4 * 1_024);
    let mut fresh = Screen::new(size);
    fresh.feed(&whole.snapshot());
    assert_eq!(fresh.rows(), whole.rows());
    // A resize and a repeat of everything don't fail.
    whole.resize(WindowSize::new(size.cols, size.rows));
    whole.feed(bytes);
    assert_eq!(whole.rows().len(), usize::from(size.cols));
}

fn recordings_agree(bytes: &[u8], step: usize) {
    let mask: Mask = Arc::new(|text| text.replace(SECRET, "[secret]").into());
    let recorded = |step: usize, mask: Option<Mask>| {
        let mut writer = CastWriter::new(Vec::new(), &Default::default(), mask).expect("a vector takes all");
        bytes.chunks(step).for_each(|part| writer.output(Duration::ZERO, part).expect("a vector takes all"));
        outputs(&writer.finish().expect("a vector takes all"))
    };
    let whole = recorded(bytes.len().max(1), None);
    assert_eq!(whole, String::from_utf8_lossy(bytes));
    assert_eq!(whole, recorded(step, None));
    // A line is only held up to a limit.
    if bytes.len() < 8_000 {
        let masked = recorded(step, Some(mask.clone()));
        assert_eq!(masked, recorded(bytes.len().max(1), Some(mask)));
        assert!(whole.contains(SECRET) || masked.len() <= whole.len());
    }
}

fn outputs(recording: &[u8]) -> String {
    let events = provost_terminal::CastReader::new(recording).expect("a recording");
    let outputs = events.map(|event| match event.expect("an event").what {
        provost_terminal::Happened::Output(text) => text,
        other => panic!("{other:?}"),
    });
    outputs.collect()
}

fn detectors_agree(size: WindowSize, bytes: &[u8], step: usize) {
    let detected = |step: usize| {
        let mut detector = Detector::new(Arc::clone(&PROFILE), size);
        bytes.chunks(step).for_each(|part| detector.output(Duration::from_millis(1), part));
        detector.tick(Duration::from_secs(5));
        detector.take()
    };
    assert_eq!(detected(bytes.len().max(1)), detected(step));
}
