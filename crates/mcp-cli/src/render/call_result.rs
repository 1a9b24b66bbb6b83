//! Renders the result of a tool call as text. Binary content becomes one line with its type and size.
//!
//! The content is untrusted and is sanitized.

use mcp_host_model::{
    CallFailure, CallMetadata, CallResult, Content, ErrorKind, RawJson, ResourceBody, ResourceContent,
    ServerId, ToolResult, UNKNOWN_MEDIA_TYPE,
};
use serde_json::Value;

use crate::output::{json, sanitize};

/// The content blocks in order, then the structured result unless a block repeats it.
pub(crate) fn result_text(result: &CallResult) -> String {
    let mut text: String = result.content.iter().map(content_text).collect();
    if let Some(structured) = &result.metadata.structured_content
        && !result.content.iter().any(|block| repeats_structured(block, structured))
    {
        text.push_str(&sanitized_block(&json::indented(structured.as_str())));
    }
    text
}

/// The result of a finished task as the result of a call, without the name of the tool and without a duration.
pub(crate) fn tool_call_result(server: &ServerId, result: ToolResult) -> CallResult {
    let ToolResult { content, structured, is_error, .. } = result;
    let mut metadata = CallMetadata::new("");
    metadata.server = Some(server.clone());
    metadata.structured_content = structured;
    if !is_error {
        return CallResult::success(content, metadata);
    }
    let message: String = content.iter().map(content_text).collect();
    let mut failed = CallResult::failure(CallFailure::new(ErrorKind::Tool, message.trim_end()), metadata);
    failed.content = content;
    failed
}

/// One content block: its text, or a line about it.
pub(crate) fn content_text(content: &Content) -> String {
    match content {
        Content::Text(text) => sanitized_block(text),
        Content::Image { data, mime_type } => media_note("image", data, mime_type),
        Content::Audio { data, mime_type } => media_note("audio", data, mime_type),
        Content::Binary { data, mime_type, uri, text } => {
            let about = [mime_type, uri].into_iter().filter_map(|it| it.as_deref());
            if data.is_empty() && text.is_none() {
                note("link", &about.collect::<Vec<_>>())
            } else {
                let size = size_text(decoded_length(data));
                let note = note("resource", &about.chain([size.as_str()]).collect::<Vec<_>>());
                note + &text.as_deref().map(sanitized_block).unwrap_or_default()
            }
        }
        other => match other.missing_member() {
            Some(missing) => {
                let kind = format!("{} content without a valid `{}`", missing.block, missing.member);
                note(&kind, &[&size_text(other.len())])
            }
            None => note("content of unknown type", &[&size_text(other.len())]),
        },
    }
}

/// A line about an image or a sound.
fn media_note(kind: &str, data: &str, mime_type: &str) -> String {
    let mime_type = if mime_type == UNKNOWN_MEDIA_TYPE { "without a `mimeType`" } else { mime_type };
    note(kind, &[mime_type, &size_text(decoded_length(data))])
}

/// A content of a resource: its text, or a line about it.
pub(crate) fn resource_text(content: &ResourceContent) -> String {
    let ResourceContent { uri, mime_type, body, .. } = content;
    match body {
        ResourceBody::Text(text) => sanitized_block(text),
        ResourceBody::Blob(data) => {
            let size = size_text(decoded_length(data));
            let about = mime_type.iter().chain([uri, &size]).map(String::as_str);
            note("resource", &about.collect::<Vec<_>>())
        }
        _ => note("resource of unknown type", &[uri]),
    }
}

/// The sanitized text, ending with a line feed unless it is empty.
pub(crate) fn sanitized_block(text: &str) -> String {
    let mut res = sanitize::block(text);
    if !res.is_empty() && !res.ends_with('\n') {
        res.push('\n');
    }
    res
}

/// The line about content without text: `[image: image/png, 76 bytes]`.
fn note(kind: &str, about: &[&str]) -> String {
    let about: Vec<String> = about.iter().map(|it| sanitize::line(it)).filter(|it| !it.is_empty()).collect();
    format!("[{kind}: {}]\n", about.join(", "))
}

/// The number of bytes that base64 text encodes.
fn decoded_length(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits * 3 / 4
}

/// A number of bytes with a unit, such as `1.5 KiB`.
fn size_text(bytes: usize) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    if bytes == 1 {
        return "1 byte".to_owned();
    }
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut shown = bytes as f64 / 1024.0;
    let mut unit = 0;
    while shown >= 1024.0 && unit + 1 < UNITS.len() {
        shown /= 1024.0;
        unit += 1;
    }
    format!("{shown:.1} {}", UNITS[unit])
}

/// Whether the block repeats the structured result. Many servers send both.
fn repeats_structured(block: &Content, structured: &RawJson) -> bool {
    let Content::Text(text) = block else { return false };
    let value = structured.read::<Value>();
    value.is_ok_and(|value| serde_json::from_str::<Value>(text).is_ok_and(|text| text == value))
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{CallMetadata, ToolResult};

    use super::*;

    #[track_caller]
    fn check(wire: &str, want: &str) {
        let ToolResult { content, structured, is_error: _, .. } = serde_json::from_str(wire).unwrap();
        let mut metadata = CallMetadata::new("t");
        metadata.structured_content = structured;
        let result = CallResult::success(content, metadata);
        assert_eq!(result_text(&result), want);
    }

    #[test]
    fn text_is_sanitized() {
        check(r#"{"content":[{"type":"text","text":"a\n\tb"},{"type":"text","text":"c\n"}]}"#, "a\n\tb\nc\n");
        check(r#"{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m\u0007"}]}"#, "red\n");
        check(r#"{"content":[{"type":"text","text":""}]}"#, "");
        check("{}", "");
    }

    #[test]
    fn binary_content_is_one_line() {
        check(
            r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}"#,
            "[image: image/png, 3 bytes]\n[audio: audio/wav, 1 byte]\n",
        );
        check(
            r#"{"content":[{"type":"resource","resource":{"uri":"a://b","mimeType":"text/plain","text":"hi"}}]}"#,
            "[resource: text/plain, a://b, 2 bytes]\nhi\n",
        );
        check(
            r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}"#,
            "[link: file:///x]\n",
        );
        check(r#"{"content":[{"type":"hologram"}]}"#, "[content of unknown type: 19 bytes]\n");
        // RPT-035
        check(r#"{"content":[{"type":"text"}]}"#, "[text content without a valid `text`: 15 bytes]\n");
        check(
            r#"{"content":[{"type":"image","url":"x"}]}"#,
            "[image content without a valid `data`: 26 bytes]\n",
        );
    }

    #[test]
    fn structured_result_is_printed_once() {
        check(
            r#"{"content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}"#,
            "5\n{\n  \"sum\": 5\n}\n",
        );
        check(
            r#"{"content":[{"type":"text","text":"{ \"sum\": 5 }"}],"structuredContent":{"sum":5}}"#,
            "{ \"sum\": 5 }\n",
        );
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size_text(1023), "1023 bytes");
        assert_eq!(size_text(1536), "1.5 KiB");
        assert_eq!(size_text(5 << 20), "5.0 MiB");
        assert_eq!(size_text(5 << 40), "5120.0 GiB");
    }
}
