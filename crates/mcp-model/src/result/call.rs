//! Results of tool calls: as a server sends them, and as a host returns them.

use std::borrow::Cow;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error_kind::ErrorKind;
use crate::json::raw::RawJson;
use crate::json::unescape::UnescapedString;
use crate::result::content::{Content, ContentBlockJson};
use crate::result::kind::{ResultInfo, ResultKind, ResultTypeMember};
use crate::server::id::ServerId;

/// The result of `tools/call`, as a server sends it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolResult {
    /// The content blocks, in order; may be empty.
    pub content: Vec<Content>,
    /// `structuredContent`, any JSON value.
    pub structured: Option<RawJson>,
    /// Whether the tool ran and reported a failure.
    pub is_error: bool,
}

/// A result that [`ToolResult::parse_known_blocks`] has read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedToolResult {
    /// The result.
    pub result: ToolResult,
    /// The kind of the result.
    pub info: ResultInfo,
    /// The length in bytes of its JSON text.
    pub length: usize,
}

impl<'de> Deserialize<'de> for ToolResult {
    /// Reads the `result` member of a response. Fails if it is not an object, or if `resultType` is present and not
    /// `complete`. A block of an unknown form becomes [`Content::Unknown`]; a `content` that is a text or a block
    /// counts as a list of it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolResult, D::Error> {
        #[derive(Deserialize)]
        struct ToolResultJson<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(borrow, rename = "isError")]
            is_error: Option<&'a RawValue>,
            #[serde(borrow, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if !raw.starts_with('{') {
            return Err(D::Error::custom(format_args!("`result` is {}, not an object", name_type(raw))));
        }
        let wire: ToolResultJson<'_> = serde_json::from_str(raw).map_err(D::Error::custom)?;
        if let Some(other) = wire.result_type.filter(|result_type| result_type != "complete") {
            // It may be any text of the server.
            let short: String = other.chars().filter(|char| !char.is_control()).take(40).collect();
            return Err(D::Error::custom(format_args!("its result type is `{short}`")));
        }
        Ok(ToolResult {
            content: wire.content.map(read_content).unwrap_or_default(),
            structured: wire.structured.map(RawJson::copy_of),
            is_error: wire.is_error.is_some_and(|it| matches!(it.get(), "true" | "\"true\"")),
        })
    }
}

/// Reads the `content` of a result: a list of blocks, or what some servers send instead of it.
fn read_content(raw: &RawValue) -> Vec<Content> {
    if let Ok(UnescapedString(text)) = serde_json::from_str(raw.get()) {
        return vec![Content::Text(text)];
    }
    match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(blocks) => blocks.into_iter().map(Content::read).collect(),
        Err(_) => vec![Content::read(raw)],
    }
}

/// The type of a JSON value, with its article.
fn name_type(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(_) | None => "a number",
    }
}

impl ToolResult {
    /// Reads the result at the start of `text` and its kind in one pass, if it is complete and every block has a known
    /// form. Returns `None` for any other result: use [`read_result`](crate::read_result) and [`Deserialize`] for
    /// these. What follows the result is ignored.
    ///
    /// [`Deserialize`] scans each block twice, because it keeps unknown blocks unchanged.
    pub fn parse_known_blocks(text: &str) -> Option<ParsedToolResult> {
        #[derive(Deserialize)]
        struct KnownBlocksJson<'a> {
            #[serde(borrow, default)]
            content: Vec<ContentBlockJson<'a>>,
            #[serde(borrow, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
            #[serde(borrow, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
            /// The task of 2025-11-25.
            task: Option<IgnoredAny>,
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let wire = KnownBlocksJson::deserialize(&mut deserializer).ok()?;
        let length = deserializer.into_iter::<IgnoredAny>().byte_offset();
        let result_type = match (wire.result_type.as_deref(), wire.task) {
            (None, None) => ResultTypeMember::Missing,
            (Some("complete"), None) => ResultTypeMember::Present,
            (_, _) => return None,
        };
        // `collect` would shrink the larger vector in place, which costs more than this allocation.
        let mut content = Vec::with_capacity(wire.content.len());
        for block in wire.content {
            content.push(block.into_content()?);
        }
        let is_error = wire.is_error == Some(true);
        let info = ResultInfo {
            kind: if is_error { ResultKind::ToolError } else { ResultKind::Complete },
            result_type,
            ..ResultInfo::default()
        };
        let structured = wire.structured.map(RawJson::copy_of);
        Some(ParsedToolResult { result: ToolResult { content, structured, is_error }, info, length })
    }

    /// Returns the texts of the text blocks, joined with newlines (HD-110).
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns the texts of the text blocks, joined with newlines. A single block is not copied.
    pub fn into_text(self) -> String {
        into_text(self.content)
    }
}

/// The result of a call, as a host returns it (HD-085 to HD-088).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallResult {
    /// Whether the tool ran and reported no failure.
    pub success: bool,
    /// The content blocks, in order; also those of a failed tool.
    pub content: Vec<Content>,
    /// The error; `None` exactly if `success`.
    pub error: Option<CallFailure>,
    /// The server, the tool and the duration of the call.
    pub metadata: CallMetadata,
}

impl CallResult {
    /// Creates the result of a tool that ran and reported no failure.
    pub fn success(content: Vec<Content>, metadata: CallMetadata) -> CallResult {
        CallResult { success: true, content, error: None, metadata }
    }

    /// Creates the result of a call that failed, without content.
    pub fn failure(error: CallFailure, metadata: CallMetadata) -> CallResult {
        CallResult { success: false, content: Vec::new(), error: Some(error), metadata }
    }

    /// Deserializes the structured result. Fails if the call failed, if the tool returned no structured result, or if
    /// the result does not fit `T`; the error then names the field and the tool.
    ///
    /// ```
    /// # use mcp_host_model::{CallMetadata, CallResult, RawJson};
    /// #[derive(serde::Deserialize)]
    /// struct Weather {
    ///     celsius: f64,
    /// }
    ///
    /// # let mut metadata = CallMetadata::new("forecast");
    /// # metadata.structured_content = Some(RawJson::parse(r#"{"celsius": 21.5}"#.into())?);
    /// # let result = CallResult::success(Vec::new(), metadata);
    /// let weather: Weather = result.structured()?;
    /// assert_eq!(weather.celsius, 21.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, StructuredResultError> {
        if let Some(error) = &self.error {
            return Err(StructuredResultError::Failed(error.clone()));
        }
        let tool = || self.metadata.tool.clone();
        let Some(json) = &self.metadata.structured_content else {
            return Err(StructuredResultError::Missing { tool: tool() });
        };
        let mut deserializer = serde_json::Deserializer::from_str(json.as_str());
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| StructuredResultError::Mismatch {
            tool: tool(),
            field: error.path().to_string(),
            source: error.into_inner(),
        })
    }

    /// Returns the texts of the text blocks, joined with newlines (HD-110).
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns the texts of the text blocks, joined with newlines. A single block is not copied.
    pub fn into_text(self) -> String {
        into_text(self.content)
    }
}

/// The error of [`CallResult::structured`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StructuredResultError {
    /// The call failed.
    #[error(transparent)]
    Failed(CallFailure),
    /// The tool returned no structured result.
    #[error("the tool `{tool}` returned no structured result")]
    Missing {
        /// The server's name of the tool.
        tool: String,
    },
    /// The structured result has another form.
    #[error("the structured result of the tool `{tool}` does not fit at `{field}`")]
    Mismatch {
        /// The server's name of the tool.
        tool: String,
        /// The path of the field, such as `days[0].celsius`; `.` for the whole result.
        field: String,
        /// The error of deserializing the field.
        source: serde_json::Error,
    },
}

/// The failure of a call. Its message names the server and says what to do, and contains no secret.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{kind}: {message}")]
#[non_exhaustive]
pub struct CallFailure {
    /// The error kind.
    pub kind: ErrorKind,
    /// The message.
    pub message: String,
}

impl CallFailure {
    /// Creates a failure.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> CallFailure {
        CallFailure { kind, message: message.into() }
    }
}

/// The server, the tool and the duration of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallMetadata {
    /// The server, if the tool was found.
    pub server: Option<ServerId>,
    /// The server's name of the tool; the requested name if there is no such tool.
    pub tool: String,
    /// The duration of the call.
    #[serde(rename = "duration_ms", serialize_with = "serialize_milliseconds")]
    pub duration: Duration,
    /// The id of the JSON-RPC request, if one was sent.
    pub request_id: Option<u64>,
    /// The structured result, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<RawJson>,
    /// Warnings, one sentence each, such as a structured result that violates the tool's `outputSchema`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The size of the whole result in bytes, if the result was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<usize>,
}

impl CallMetadata {
    /// Creates the metadata of a call for which no request was sent.
    pub fn new(tool: impl Into<String>) -> CallMetadata {
        CallMetadata {
            server: None,
            tool: tool.into(),
            duration: Duration::ZERO,
            request_id: None,
            structured_content: None,
            warnings: Vec::new(),
            full_bytes: None,
        }
    }
}

/// Writes fractional milliseconds, rounded to microseconds.
fn serialize_milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
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
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn check(wire: &str, want: Option<(&str, bool)>) {
        let got = serde_json::from_str::<ToolResult>(wire).ok();
        let in_one_pass = ToolResult::parse_known_blocks(&format!("{wire},\"id\":7}}"));
        if let Some(ParsedToolResult { result, info: _, length }) = in_one_pass {
            assert_eq!((Some(result), length), (got.clone(), wire.len()), "{wire}");
        }
        assert_eq!(
            got.map(|it| {
                assert_eq!(it.text(), it.clone().into_text());
                (it.text(), it.is_error)
            }),
            want.map(|(text, failed)| (text.to_owned(), failed))
        );
    }

    #[test]
    fn hd_085_hd_086_hd_130_content_and_is_error_are_optional() {
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]}"#,
            Some(("a\nb", false)),
        );
        check(r#"{"content":[],"isError":true}"#, Some(("", true)));
        check("{}", Some(("", false)));
        check(r#"{"content":[],"resultType":"complete"}"#, Some(("", false)));
        check(r#"{"content":[],"resultType":"task"}"#, None);
        check("[]", None);
    }

    #[test]
    fn known_blocks_are_read_in_one_pass() {
        let is_known = |wire: &str| ToolResult::parse_known_blocks(wire).is_some();
        let blocks = r#"{"type":"text","text":"a\u0000"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a://b","text":"hi"}}"#;
        let whole = format!(r#"{{"content":[{blocks}],"structuredContent":{{"a":[1]}},"_meta":{{"b":1}}}}"#);
        let text = "a\0";
        check(&whole, Some((text, false)));
        assert!(is_known(&whole));
        for odd in [
            r#"{"content":[{"type":"hologram"}]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[7]}"#,
            r#"{"content":{}}"#,
            r#"{"content":7}"#,
        ] {
            check(odd, Some(("", false)));
            assert!(!is_known(odd), "{odd}");
        }
        check(r#"{"content":[{"type":"text","text":"a"}"#, None);
    }

    // RPT-035
    #[test]
    fn odd_content_is_kept() {
        check(r#"{"content":null,"isError":"true"}"#, Some(("", true)));
        check(r#"{"content":"plain"}"#, Some(("plain", false)));
        check(r#"{"content":{"type":"text","text":"one"}}"#, Some(("one", false)));
        check(r#"{"content":[{"type":"text","text":7},{"type":"text","text":"b"}]}"#, Some(("7\nb", false)));
        // RPT-034
        check(r#"{"content":[{"type":"text","text":"a\ud83d b"}]}"#, Some(("a\u{fffd} b", false)));
    }

    // RPT-032
    #[test]
    fn result_that_is_no_object_is_named() {
        let error = |json: &str| serde_json::from_str::<ToolResult>(json).unwrap_err().to_string();
        assert!(error("\"plain\"").starts_with("`result` is a string, not an object"));
        assert!(error("[{}]").starts_with("`result` is an array, not an object"));
        assert!(error("null").starts_with("`result` is null, not an object"));
    }

    #[test]
    fn structured_results_are_typed() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Day {
            celsius: f64,
        }
        #[track_caller]
        fn check(json: Option<&str>, want: Result<f64, &str>) {
            let mut metadata = CallMetadata::new("forecast");
            metadata.structured_content = json.map(|it| RawJson::parse(it.to_owned().into()).unwrap());
            let days = CallResult::success(Vec::new(), metadata).structured::<BTreeMap<String, Vec<Day>>>();
            let got = days.map(|it| it["days"][0].celsius).map_err(|error| error.to_string());
            assert_eq!(got, want.map_err(str::to_owned));
        }
        check(Some(r#"{"days":[{"celsius":1.5}]}"#), Ok(1.5));
        let at =
            |field: &str| format!("the structured result of the tool `forecast` does not fit at `{field}`");
        check(Some(r#"{"days":[{"celsius":"1.5"}]}"#), Err(&at("days[0].celsius")));
        check(Some(r#"{"days":[{}]}"#), Err(&at("days[0]")));
        check(Some("7"), Err(&at(".")));
        check(None, Err("the tool `forecast` returned no structured result"));
        let failure = CallFailure::new(ErrorKind::Timeout, "no response within 2 s");
        let failed = CallResult::failure(failure, CallMetadata::new("forecast")).structured::<Day>();
        assert_eq!(failed.unwrap_err().to_string(), "MCPTimeoutError: no response within 2 s");
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
                full_bytes: None,
            },
        };
        let public = r#"{"success":false,"content":[],"error":{"kind":"MCPToolError","message":"no"},"metadata":{"server":"s","tool":"t","duration_ms":1.5,"request_id":3"#;
        assert_eq!(serde_json::to_string(&result).unwrap(), format!("{public}}}}}"));
        let mut odd = result;
        odd.metadata.warnings.push("w".into());
        odd.metadata.full_bytes = Some(9);
        let want = format!(r#"{public},"warnings":["w"],"full_bytes":9}}}}"#);
        assert_eq!(serde_json::to_string(&odd).unwrap(), want);
    }
}
