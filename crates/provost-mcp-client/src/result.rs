//! Results of servers for models.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::ToolStatus;
use provost_harness::{ImageData, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Pictures of a result.
const IMAGES_MAX: usize = 8;

/// A result as a model gets it: its texts one after another, its pictures, and notes on what a model can't be given.
pub(crate) fn output_of(result: &CallToolResult) -> ToolOutput {
    let mut parts = Vec::new();
    let mut images = Vec::new();
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => parts.push(text.text.clone()),
            ContentBlock::Image(image) => match picture(&image.data) {
                Ok(picture) if images.len() < IMAGES_MAX => images.push(picture),
                Ok(_) => parts.push(format!("[a further picture; {IMAGES_MAX} are shown at most]")),
                Err(why) => parts.push(format!("[a picture that can't be shown: {why}]")),
            },
            ContentBlock::Audio(audio) => {
                parts.push(format!("[a sound ({}), which isn't shown]", audio.mime_type));
            }
            ContentBlock::Resource(embedded) => parts.push(contents(&embedded.resource)),
            ContentBlock::ResourceLink(link) => {
                parts.push(format!("[a link to the resource {} ({})]", link.uri, link.name));
            }
            _ => parts.push("[content of a kind that isn't known]".to_owned()),
        }
    }
    // Servers repeat it as text, for clients that don't know it.
    if let Some(structured) = &result.structured_content
        && parts.is_empty()
    {
        parts.push(structured.to_string());
    }
    let is_error = result.is_error == Some(true);
    let status = if is_error { ToolStatus::Error } else { ToolStatus::Ok };
    ToolOutput { status, images, ..ToolOutput::ok(parts.join("\n")) }
}

fn picture(data: &str) -> Result<ImageData, String> {
    let bytes = STANDARD.decode(data.as_bytes()).map_err(|_| "it isn't base64".to_owned())?;
    ImageData::new(bytes).map_err(|error| error.to_string())
}

fn contents(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[the resource {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, blob, .. } => {
            format!("[the resource {uri}, {} bytes that are no text]", blob.len() / 4 * 3)
        }
        _ => "[a resource of a kind that isn't known]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use provost_event::ToolStatus;
    use serde_json::json;

    use super::output_of;

    #[test]
    fn each_part_of_a_result_is_shown_or_named() {
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let result = json!({
            "content": [
                { "type": "text", "text": "one" },
                { "type": "image", "data": png, "mimeType": "image/png" },
                { "type": "image", "data": "%%%", "mimeType": "image/png" },
                { "type": "audio", "data": "", "mimeType": "audio/wav" },
                { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
                { "type": "resource_link", "uri": "file:///b", "name": "b" }
            ],
            "structuredContent": { "n": 1 },
            "isError": true
        });
        let output = output_of(&serde_json::from_value(result).unwrap());
        assert_eq!(output.status, ToolStatus::Error);
        assert_eq!(output.images.len(), 1);
        assert_eq!(
            output.text,
            "one\n[a picture that can't be shown: it isn't base64]\n[a sound (audio/wav), which isn't shown]\n\
             [the resource file:///a]\ninside\n[a link to the resource file:///b (b)]"
        );
        let only = output_of(&serde_json::from_value(json!({ "structuredContent": { "n": 1 } })).unwrap());
        assert_eq!(only.text, r#"{"n":1}"#);
    }
}
