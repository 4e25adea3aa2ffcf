//! One entry, a page at a time.

use provost_event::{Image, Seq};

use super::{NAME_BYTES, Trouble, shortened};
use crate::session_log::LogItem;
use crate::{BLOB_URI, ImageData, ToolContext, ToolOutput};

/// Bytes of an answer reserved for the description of the entry.
const FRAME_BYTES: usize = 450;
/// Minimum bytes of the entry on a page, or reading it would take too many pages.
const PAGE_BYTES_MIN: usize = 64;
/// Maximum distance to the next entry that can be shown.
const NEIGHBOURS: u64 = 32;

/// An entry and its neighbours that can be shown too.
struct Found {
    shown: Option<LogItem>,
    older: Option<Seq>,
    newer: Option<Seq>,
}

/// A page of an entry: some of its text, and after the end of the text, one of its pictures. Positions count the
/// bytes of the text, and each picture after it as one.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    begin: usize,
    end: usize,
    picture: Option<usize>,
    next: Option<usize>,
}

pub(super) async fn show(
    context: &ToolContext,
    entry: Seq,
    offset: usize,
    bytes_max: usize,
) -> Result<ToolOutput, Trouble> {
    let found = find(context, entry).await?;
    let Some(shown) = &found.shown else { return Err(Trouble::Missing(no_such(entry, &found))) };
    let (text, pictures) = (shown.text(), shown.images());
    let room = bytes_max.saturating_sub(FRAME_BYTES).max(PAGE_BYTES_MIN);
    let Some(page) = Page::of(&text, pictures.len(), offset, room) else {
        let bytes = text.len();
        return Err(Trouble::Missing(format!(
            "entry {entry} has only {bytes} bytes: nothing is at {offset}"
        )));
    };
    let picture = picture(context, &pictures, page.picture).await?;
    let body = text.get(page.begin..page.end).unwrap_or_default();
    let about = format!("entry {entry}, {}", shortened(&shown.who(), NAME_BYTES));
    let standing = standing(&page, text.len(), pictures.len());
    let missing = page.picture.filter(|_| picture.is_none());
    let missing = missing.map_or_else(String::new, |_| "; that picture is no longer kept".to_owned());
    let whole = whole(shown);
    let around = found.around();
    let output = ToolOutput::ok(format!("{about}:\n{body}\n[{standing}{missing}{whole}{around}]"));
    Ok(ToolOutput { images: picture.into_iter().collect(), ..output })
}

async fn find(context: &ToolContext, entry: Seq) -> Result<Found, Trouble> {
    let until = Seq(entry.0.saturating_add(NEIGHBOURS));
    let read = context.cancel.run_until_cancelled(context.log.before(until)).await;
    let log = read.ok_or(Trouble::Stopped)??;
    let shown = log.shown.iter().find(|shown| shown.entry() == entry).cloned();
    let older = log.shown.iter().map(LogItem::entry).rfind(|seq| *seq < entry);
    let newer = log.shown.iter().map(LogItem::entry).find(|seq| *seq > entry);
    Ok(Found { shown, older, newer })
}

impl Found {
    fn around(&self) -> String {
        let older = self.older.map(|seq| format!("; before it entry {seq}"));
        let newer = self.newer.map(|seq| format!("; after it entry {seq}"));
        [older, newer].into_iter().flatten().collect()
    }
}

fn no_such(entry: Seq, found: &Found) -> String {
    let near = match (found.older, found.newer) {
        (Some(older), Some(newer)) => format!("the nearest are {older} and {newer}"),
        (Some(nearest), None) | (None, Some(nearest)) => format!("the nearest is {nearest}"),
        (None, None) => "`search` finds some".to_owned(),
    };
    format!("entry {entry} has nothing that you have been shown or said before this answer; {near}")
}

impl Page {
    /// The page at `offset`, with at most `room` bytes of text and at least one character; `None` after the end.
    fn of(text: &str, pictures: usize, offset: usize, room: usize) -> Option<Self> {
        let bytes = text.len();
        let is_empty = bytes == 0 && pictures == 0 && offset == 0;
        if offset >= bytes.saturating_add(pictures) && !is_empty {
            return None;
        }
        let begin = text.floor_char_boundary(offset);
        let end = match text.floor_char_boundary(begin.saturating_add(room)) {
            end if end == begin => text.ceil_char_boundary(begin.saturating_add(1)),
            end => end,
        };
        if end < bytes {
            return Some(Self { begin, end, picture: None, next: Some(end) });
        }
        let picture = offset.saturating_sub(bytes);
        let next = Some(picture.saturating_add(1)).filter(|next| *next < pictures);
        Some(Self {
            begin,
            end,
            picture: Some(picture).filter(|picture| *picture < pictures),
            next: next.map(|next| bytes.saturating_add(next)),
        })
    }
}

/// The part of the entry that is shown, and how to continue.
fn standing(page: &Page, bytes: usize, pictures: usize) -> String {
    let Page { begin, end, .. } = page;
    let mut standing = match (bytes, page.picture) {
        (0, _) => "no text".to_owned(),
        _ if begin == end => format!("behind its {bytes} bytes"),
        _ => format!("bytes {begin}-{end} of {bytes}"),
    };
    match page.picture {
        Some(picture) => standing.push_str(&format!("; picture {} of {pictures}", picture.saturating_add(1))),
        None if pictures > 0 => standing.push_str(&format!("; pictures behind them: {pictures}")),
        None => {}
    }
    if let Some(next) = page.next {
        standing.push_str(&format!("; go on with offset {next}"));
    }
    standing
}

/// The id of the whole output, if the entry itself has only part of it.
fn whole(shown: &LogItem) -> String {
    let whole = shown.result().and_then(|result| result.whole.as_ref());
    let way =
        |id| format!("; at first it was cut too: read_file with path \"{BLOB_URI}{id}\" reads the whole");
    whole.map_or_else(String::new, way)
}

async fn picture(
    context: &ToolContext,
    pictures: &[&Image],
    wanted: Option<usize>,
) -> Result<Option<ImageData>, Trouble> {
    let Some(image) = wanted.and_then(|place| pictures.get(place)) else { return Ok(None) };
    let read = context.cancel.run_until_cancelled(ImageData::read(&*context.blobs, &image.blob)).await;
    Ok(read.ok_or(Trouble::Stopped)??)
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn pages_put_together_are_the_text_whatever_their_size() {
        let text = "añb🙂\n".repeat(7);
        for (room, pictures) in [(0, 0), (1, 2), (3, 0), (4, 1), (1_000, 3)] {
            let (mut at, mut read, mut seen) = (Some(0), String::new(), 0);
            while let Some(offset) = at {
                let page = Page::of(&text, pictures, offset, room).expect("a page");
                assert!(page.next.is_none_or(|next| next > offset), "{page:?} doesn't go on");
                read.push_str(&text[page.begin..page.end]);
                seen += usize::from(page.picture.is_some());
                at = page.next;
            }
            assert_eq!((read.as_str(), seen), (text.as_str(), pictures), "{room} bytes, {pictures} pictures");
        }
    }

    #[test]
    fn nothing_is_behind_the_end() {
        assert_eq!(Page::of("abc", 0, 3, 10), None);
        assert_eq!(Page::of("abc", 1, 4, 10), None);
        assert_eq!(Page::of("", 0, usize::MAX, 10), None);
        assert!(Page::of("", 0, 0, 10).is_some(), "an empty result has a page");
        let inside = Page::of("aé", 0, 2, 10).expect("a page");
        assert_eq!((inside.begin, inside.end), (1, 3), "a character is never split");
    }
}
