//! Results of tool calls: from the protocol, and from a host.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error_kind::ErrorKind;
use crate::json::raw::RawJson;
use crate::result::content::{Content, ContentBlockJson};
use crate::server::id::ServerId;

/// The result of `tools/call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The content blocks, in order; may be empty.
    pub content: Vec<Content>,
    /// `structuredContent`, any JSON value.
    pub structured: Option<RawJson>,
    /// The tool ran and reported a failure.
    pub is_error: bool,
}

impl<'de> Deserialize<'de> for ToolResult {
    /// Reads the `result` member of a response. Fails if it is not an object, if `content` is not an array, or if
    /// `resultType` is present and not `complete`. A block of an unknown form becomes [`Content::Unknown`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolResult, D::Error> {
        #[derive(Deserialize)]
        struct ToolResultJson<'a> {
            #[serde(borrow, default)]
            content: Vec<&'a RawValue>,
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
            #[serde(borrow, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
        }
        let wire = ToolResultJson::deserialize(deserializer)?;
        if let Some(other) = wire.result_type.filter(|it| it != "complete") {
            let short: String = other.chars().filter(|it| !it.is_control()).take(40).collect();
            return Err(serde::de::Error::custom(format_args!("its result type is `{short}`")));
        }
        Ok(ToolResult {
            content: wire.content.into_iter().map(Content::read).collect(),
            structured: wire.structured.map(RawJson::copy_of),
            is_error: wire.is_error == Some(true),
        })
    }
}

impl ToolResult {
    /// Reads the result at the start of `text` in one pass if every block has a known form. Otherwise returns `None`,
    /// and [`Deserialize`] decides. What follows the result is ignored.
    ///
    /// [`Deserialize`] scans a block twice, to keep unknown blocks unchanged; this avoids that for large ones.
    pub fn parse_known_blocks(text: &str) -> Option<ToolResult> {
        #[derive(Deserialize)]
        struct Plain<'a> {
            #[serde(borrow, default)]
            content: Vec<ContentBlockJson<'a>>,
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
            #[serde(borrow, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
        }
        let plain = Plain::deserialize(&mut serde_json::Deserializer::from_str(text)).ok()?;
        if plain.result_type.is_some_and(|it| it != "complete") {
            return None;
        }
        // `collect` would shrink the larger vector in place, which costs more than this allocation.
        let mut content = Vec::with_capacity(plain.content.len());
        for block in plain.content {
            content.push(block.content()?);
        }
        Some(ToolResult {
            content,
            structured: plain.structured.map(RawJson::copy_of),
            is_error: plain.is_error == Some(true),
        })
    }

    /// Returns the text blocks, joined with newlines (HD-110).
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns the text blocks, joined with newlines, without a copy if there is one block.
    pub fn into_text(self) -> String {
        into_text(self.content)
    }
}

/// A host's result of a call (HD-085 to HD-088): `{success, content, error, metadata}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallResult {
    /// The tool ran and reported no failure.
    pub success: bool,
    /// The content blocks, in order; also those of a failed tool.
    pub content: Vec<Content>,
    /// The error; `None` exactly if `success`.
    pub error: Option<CallFailure>,
    /// The circumstances.
    pub metadata: CallMetadata,
}

impl CallResult {
    /// Returns the text blocks, joined with newlines (HD-110).
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns the text blocks, joined with newlines, without a copy if there is one block.
    pub fn into_text(self) -> String {
        into_text(self.content)
    }
}

/// The error of a call. Names the server and what to do, never a secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallFailure {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The message.
    pub message: String,
}

/// The circumstances of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallMetadata {
    /// The server, if one was found.
    pub server: Option<ServerId>,
    /// The server's name of the tool; the requested name if there is no such tool.
    pub tool: String,
    /// The duration of the call.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
    /// The id of the JSON-RPC request, if one was sent.
    pub request_id: Option<u64>,
    /// The structured result, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<RawJson>,
    /// Warnings, one sentence each, such as a structured result that violates the tool's `outputSchema`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Rounded to microseconds.
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

fn join_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|it| match it {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } | Content::Audio { .. } | Content::Binary { .. } | Content::Unknown(_) => {
                None
            }
        })
        .collect();
    texts.join("\n")
}

fn into_text(mut content: Vec<Content>) -> String {
    match content.as_mut_slice() {
        [Content::Text(only)] => std::mem::take(only),
        several => join_text(several),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wire: &str, want: Option<(&str, bool)>) {
        let got = serde_json::from_str::<ToolResult>(wire).ok();
        // Reading in one pass must agree, or give up.
        let plain = ToolResult::parse_known_blocks(&format!("{wire},\"id\":7}}"));
        assert!(plain.is_none() || plain == got, "{wire}");
        assert_eq!(
            got.map(|it| {
                assert_eq!(it.text(), it.clone().into_text());
                (it.text(), it.is_error)
            }),
            want.map(|(text, failed)| (text.to_owned(), failed))
        );
    }

    #[test]
    fn hd_085_hd_086_hd_130_results_read_with_and_without_content() {
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]}"#,
            Some(("a\nb", false)),
        );
        check(r#"{"content":[],"isError":true}"#, Some(("", true)));
        check("{}", Some(("", false)));
        check(r#"{"content":[],"resultType":"complete"}"#, Some(("", false)));
        check(r#"{"content":[],"resultType":"task"}"#, None);
        check(r#"{"content":{}}"#, None);
        check("[]", None);
    }

    #[test]
    fn known_blocks_are_read_in_one_pass() {
        let is_plain = |wire: &str| ToolResult::parse_known_blocks(wire).is_some();
        let blocks = r#"{"type":"text","text":"a\u0000"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a://b","text":"hi"}}"#;
        let whole = format!(r#"{{"content":[{blocks}],"structuredContent":{{"a":[1]}},"_meta":{{"b":1}}}}"#);
        let text = "a\0";
        check(&whole, Some((text, false)));
        assert!(is_plain(&whole));
        for odd in [
            r#"{"content":[{"type":"hologram"}]}"#,
            r#"{"content":[{"type":"text","text":7}]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[7]}"#,
        ] {
            check(odd, Some(("", false)));
            assert!(!is_plain(odd), "{odd}");
        }
        check(r#"{"content":[{"type":"text","text":"a"}"#, None);
    }

    #[test]
    fn hd_087_hd_088_call_result_is_serialized() {
        let result = CallResult {
            success: false,
            content: vec![],
            error: Some(CallFailure { kind: ErrorKind::Tool, message: "no".into() }),
            metadata: CallMetadata {
                server: Some(ServerId::parse("s").unwrap()),
                tool: "t".into(),
                duration: Duration::from_micros(1500),
                request_id: Some(3),
                structured_content: None,
                warnings: Vec::new(),
            },
        };
        let public = r#"{"success":false,"content":[],"error":{"kind":"MCPToolError","message":"no"},"metadata":{"server":"s","tool":"t","duration_ms":1.5,"request_id":3"#;
        assert_eq!(serde_json::to_string(&result).unwrap(), format!("{public}}}}}"));
        let mut odd = result;
        odd.metadata.warnings.push("w".into());
        assert_eq!(serde_json::to_string(&odd).unwrap(), format!(r#"{public},"warnings":["w"]}}}}"#));
    }
}
