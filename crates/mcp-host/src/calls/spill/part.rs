//! Parts of results that are written to files: their content and file extension. Does no I/O.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_host_model::{Content, RawJson};

/// A part of a tool result that is written to a file, because the result exceeds its size limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SpillPart {
    /// A text whose beginning stays in the result.
    Text(String),
    /// A block that the result leaves out.
    Block(Content),
    /// The structured content.
    Structured(RawJson),
}

impl SpillPart {
    /// Returns the content and the extension of the file.
    pub(super) fn file_content(&self) -> (std::borrow::Cow<'_, [u8]>, &'static str) {
        let (data, mime_type) = match self {
            SpillPart::Text(text) | SpillPart::Block(Content::Text(text)) => {
                return (text.as_bytes().into(), "txt");
            }
            SpillPart::Structured(raw) | SpillPart::Block(Content::Unknown(raw)) => {
                return (raw.as_bytes().into(), "json");
            }
            // An embedded resource that is a text.
            SpillPart::Block(Content::Binary { data, text: Some(text), .. }) if data.is_empty() => {
                return (text.as_bytes().into(), "txt");
            }
            SpillPart::Block(Content::Image { data, mime_type } | Content::Audio { data, mime_type }) => {
                (data, Some(mime_type.as_str()))
            }
            SpillPart::Block(Content::Binary { data, mime_type, .. }) => (data, mime_type.as_deref()),
            SpillPart::Block(block) => {
                return (serde_json::to_vec(block).unwrap_or_default().into(), "json");
            }
        };
        match STANDARD.decode(data) {
            Ok(bytes) => (bytes.into(), extension(mime_type)),
            Err(_) => (data.as_bytes().into(), "base64"),
        }
    }
}

/// Returns the file extension for a MIME type. A server cannot choose another one.
fn extension(mime_type: Option<&str>) -> &'static str {
    match mime_type {
        Some("image/png") => "png",
        Some("image/jpeg") => "jpg",
        Some("image/gif") => "gif",
        Some("image/webp") => "webp",
        Some("audio/wav" | "audio/x-wav") => "wav",
        Some("audio/mpeg") => "mp3",
        Some("audio/ogg") => "ogg",
        Some("application/pdf") => "pdf",
        Some("application/zip") => "zip",
        Some("text/plain") => "txt",
        Some(_) | None => "bin",
    }
}
