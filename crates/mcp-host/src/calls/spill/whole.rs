//! A part of a result as a file: what stands in it, and what its name ends with. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_model::{Content, RawJson};

/// A part of a result that its caller has no room for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Whole {
    Text(String),
    Block(Content),
    Structured(RawJson),
}

impl Whole {
    /// What stands in the file, and what its name ends with.
    pub(super) fn file(&self) -> (std::borrow::Cow<'_, [u8]>, &'static str) {
        let (data, mime_type) = match self {
            Whole::Text(text) | Whole::Block(Content::Text(text)) => return (text.as_bytes().into(), "txt"),
            Whole::Structured(raw) | Whole::Block(Content::Unknown(raw)) => {
                return (raw.as_bytes().into(), "json");
            }
            Whole::Block(Content::Binary { data, text: Some(text), .. }) if data.is_empty() => {
                return (text.as_bytes().into(), "txt");
            }
            Whole::Block(Content::Image { data, mime_type } | Content::Audio { data, mime_type }) => {
                (data, Some(mime_type.as_str()))
            }
            Whole::Block(Content::Binary { data, mime_type, .. }) => (data, mime_type.as_deref()),
        };
        match STANDARD.decode(data) {
            Ok(bytes) => (bytes.into(), extension(mime_type)),
            Err(_) => (data.as_bytes().into(), "base64"),
        }
    }
}

/// What the name of a file ends with that holds this. Never the server's own words.
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
