//! Content blocks of results.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::json::raw::RawJson;
use crate::json::unescape::UnescapedString;

/// One block of a result (HD-089, HD-107 to HD-111).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// For example `image/png`.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Base64.
        data: String,
        /// For example `audio/wav`.
        mime_type: String,
    },
    /// An embedded resource, or a link to one (HD-111, X-23).
    Binary {
        /// Base64; empty for a link.
        data: String,
        /// The media type, if known.
        mime_type: Option<String>,
        /// The URI.
        uri: Option<String>,
        /// The text of a resource that is text.
        text: Option<String>,
    },
    /// A block of an unknown type, kept unchanged (HD-132).
    Unknown(RawJson),
}

impl Content {
    /// Reads a block. A block of an unknown form becomes [`Content::Unknown`], so that it does not affect the others.
    pub fn read(raw: &RawValue) -> Content {
        let parse_other_text = || {
            let IncompleteBlockJson { kind, text, resource: _ } = serde_json::from_str(raw.get()).ok()?;
            let text = text.filter(|_| kind.as_deref() == Some("text"))?;
            Some(Content::Text(text.get().to_owned()))
        };
        parse_known(raw.get())
            .or_else(parse_other_text)
            .unwrap_or_else(|| Content::Unknown(RawJson::copy_of(raw)))
    }

    /// The type of an unknown block and the member that it lacks, if its type is known.
    pub fn missing_member(&self) -> Option<MissingMember> {
        let Content::Unknown(raw) = self else { return None };
        let IncompleteBlockJson { kind, text: _, resource } = raw.read().ok()?;
        match kind?.as_ref() {
            "text" => Some(MissingMember { block: "text", member: "text" }),
            "image" => Some(MissingMember { block: "image", member: "data" }),
            "audio" => Some(MissingMember { block: "audio", member: "data" }),
            "resource_link" => Some(MissingMember { block: "resource_link", member: "uri" }),
            "resource" if resource.is_some() => {
                Some(MissingMember { block: "resource", member: "resource.text" })
            }
            "resource" => Some(MissingMember { block: "resource", member: "resource" }),
            _ => None,
        }
    }

    /// Returns the text of a text block or of an embedded text resource.
    pub fn text(&self) -> Option<&str> {
        match self {
            Content::Text(text) => Some(text),
            Content::Binary { text, .. } => text.as_deref(),
            Content::Image { .. } | Content::Audio { .. } | Content::Unknown(_) => None,
        }
    }

    /// Returns the number of bytes of the content, by which results are limited. Binary content counts in Base64.
    pub fn len(&self) -> usize {
        match self {
            Content::Text(text) => text.len(),
            Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
            Content::Binary { data, text, .. } => data.len() + text.as_ref().map_or(0, String::len),
            Content::Unknown(raw) => raw.as_bytes().len(),
        }
    }

    /// Returns whether the block is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A member that a block of a known type lacks, or that has another type there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingMember {
    /// The type of the block.
    pub block: &'static str,
    /// The member.
    pub member: &'static str,
}

/// A content block that lacks members, as a server sends it.
#[derive(Deserialize)]
struct IncompleteBlockJson<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
}

/// A content block of any type, as a server sends it.
#[derive(Deserialize)]
pub(crate) struct ContentBlockJson<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<UnescapedString>,
    data: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    uri: Option<String>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
}

/// The media type of images and sounds whose type the server does not name.
pub const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";

impl ContentBlockJson<'_> {
    /// Converts the block if it has a known form.
    pub(crate) fn into_content(self) -> Option<Content> {
        #[derive(Deserialize)]
        struct EmbeddedResourceJson {
            uri: Option<String>,
            #[serde(rename = "mimeType")]
            mime_type: Option<String>,
            text: Option<UnescapedString>,
            blob: Option<String>,
        }
        match self.kind.as_ref() {
            "text" => Some(Content::Text(self.text?.0)),
            "image" => {
                let mime_type = self.mime_type.unwrap_or_else(|| UNKNOWN_MEDIA_TYPE.to_owned());
                Some(Content::Image { data: self.data?, mime_type })
            }
            "audio" => {
                let mime_type = self.mime_type.unwrap_or_else(|| UNKNOWN_MEDIA_TYPE.to_owned());
                Some(Content::Audio { data: self.data?, mime_type })
            }
            "resource_link" => Some(Content::Binary {
                data: String::new(),
                mime_type: self.mime_type,
                uri: Some(self.uri?),
                text: None,
            }),
            "resource" => {
                let EmbeddedResourceJson { uri, mime_type, text, blob } =
                    serde_json::from_str(self.resource?.get()).ok()?;
                let text = text.map(|it| it.0);
                let data = match (&blob, &text) {
                    (Some(blob), _) => blob.clone(),
                    (None, Some(text)) => BASE64_STANDARD.encode(text),
                    (None, None) => return None,
                };
                Some(Content::Binary { data, mime_type, uri, text })
            }
            _ => None,
        }
    }
}

fn parse_known(json: &str) -> Option<Content> {
    serde_json::from_str::<ContentBlockJson<'_>>(json).ok()?.into_content()
}

impl Serialize for Content {
    /// Writes the public form: `{"type":"text","text"}`, `{"type":"image","data","mime_type"}` and the same for
    /// `audio`, or `{"type":"binary","data","mime_type","uri","text"?}`. An unknown block is written unchanged.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Content::Unknown(raw) => return raw.serialize(serializer),
            Content::Text(_) | Content::Image { .. } | Content::Audio { .. } | Content::Binary { .. } => {
                serializer.serialize_map(None)?
            }
        };
        match self {
            Content::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Content::Image { data, mime_type } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mime_type", mime_type)?;
            }
            Content::Audio { data, mime_type } => {
                map.serialize_entry("type", "audio")?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mime_type", mime_type)?;
            }
            Content::Binary { data, mime_type, uri, text } => {
                map.serialize_entry("type", "binary")?;
                map.serialize_entry("data", data)?;
                map.serialize_entry("mime_type", mime_type)?;
                map.serialize_entry("uri", uri)?;
                if let Some(text) = text {
                    map.serialize_entry("text", text)?;
                }
            }
            Content::Unknown(_) => {}
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wire: &str, want: &str) {
        let content = Content::read(serde_json::from_str(wire).unwrap());
        assert_eq!(serde_json::to_string(&content).unwrap(), want);
    }

    #[test]
    fn hd_107_to_hd_111_blocks_are_serialized_by_type() {
        check(r#"{"type":"text","text":"a\nb"}"#, r#"{"type":"text","text":"a\nb"}"#);
        check(
            r#"{"data":"AA==","mimeType":"image/png","type":"image"}"#,
            r#"{"type":"image","data":"AA==","mime_type":"image/png"}"#,
        );
        check(
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
            r#"{"type":"audio","data":"AA==","mime_type":"audio/wav"}"#,
        );
        check(
            r#"{"type":"resource","resource":{"uri":"a://b","mimeType":"text/plain","text":"hi"}}"#,
            r#"{"type":"binary","data":"aGk=","mime_type":"text/plain","uri":"a://b","text":"hi"}"#,
        );
        check(
            r#"{"type":"resource","resource":{"uri":"a://b","blob":"AAE="}}"#,
            r#"{"type":"binary","data":"AAE=","mime_type":null,"uri":"a://b"}"#,
        );
        check(
            r#"{"type":"resource_link","uri":"file:///x","name":"x"}"#,
            r#"{"type":"binary","data":"","mime_type":null,"uri":"file:///x"}"#,
        );
    }

    #[test]
    fn hd_132_unknown_and_malformed_blocks_are_kept() {
        for text in [r#"{"type":"hologram","x":[1]}"#, r#"{"type":"image"}"#, r#"{"text":"no type"}"#, "7"] {
            check(text, text);
        }
    }
}
