//! Lists of models, in the providers' formats.

use serde::Deserialize;

/// Gemini's names are within a collection.
const COLLECTION: &str = "models/";

#[derive(Deserialize)]
struct Listing {
    #[serde(alias = "models")]
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(alias = "name")]
    id: String,
}

/// The names in a list; `None` if the text isn't a list of models.
pub(crate) fn names(text: &str) -> Option<Vec<String>> {
    let listing = serde_json::from_str::<Listing>(text).ok()?;
    let bare = |id: String| id.strip_prefix(COLLECTION).map(str::to_owned).unwrap_or(id);
    Some(listing.data.into_iter().map(|listed| bare(listed.id)).collect())
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn lists_of_every_provider_are_read() {
        let openai = r#"{"object":"list","data":[{"id":"gpt-x","object":"model"},{"id":"b"}]}"#;
        assert_eq!(names(openai).unwrap(), ["gpt-x", "b"]);
        let gemini = r#"{"models":[{"name":"models/gemini-x","inputTokenLimit":5}],"nextPageToken":"t"}"#;
        assert_eq!(names(gemini).unwrap(), ["gemini-x"]);
        assert_eq!(names(r#"{"object":"list","data":[]}"#).unwrap(), [""; 0]);
        assert_eq!(names("<html>"), None);
        assert_eq!(names("{}"), None);
    }
}
