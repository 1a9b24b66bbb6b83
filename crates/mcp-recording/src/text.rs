//! The text form of a recording: JSON lines after a header line. Does no I/O.
//!
//! ```text
//! {"format":"mcp-recording","version":1}
//! {"server":"demo","era":"modern","protocol":"2026-07-28"}
//! {"method":"tools/call","params":{"arguments":{"text":"hi"},"name":"echo"},"result":{…}}
//! ```
//!
//! The lines after a server's line belong to that server. A line has no time, no id and no token, so that two
//! recordings can be compared line by line.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_host_model::{MethodName, RawJson};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::recording::{Exchange, Recording, ServerMessage, ServerMessageKind, ServerRecording};

/// The format name in the header line.
const FORMAT: &str = "mcp-recording";

/// The version of the format.
const FORMAT_VERSION: u32 = 1;

/// Why a text is not a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The header line is missing.
    #[error(
        "this is not a recording: its first line is not {{\"format\":\"{FORMAT}\",\"version\":{FORMAT_VERSION}}}"
    )]
    NotARecording,
    /// The format version is not supported.
    #[error("the recording has format version {found}; this program supports only version {FORMAT_VERSION}")]
    Version {
        /// The version of the recording.
        found: u32,
    },
    /// A line is invalid.
    #[error("line {line} of the recording: {message}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The reason.
        message: String,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct HeaderLine {
    format: String,
    version: u32,
}

/// The line that begins a server, as it is written.
#[derive(Serialize)]
struct ServerLine<'a> {
    server: &'a str,
    era: Option<&'static str>,
    protocol: Option<&'static str>,
}

/// A line as it is read: of a server or of an exchange. Exchanges are written in the same form.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineJson<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, rename = "era", skip_serializing_if = "Option::is_none")]
    _era: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "said", skip_serializing_if = "Vec::is_empty")]
    before_response: Vec<MessageJson<'a>>,
    #[serde(borrow, default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "after", skip_serializing_if = "Vec::is_empty")]
    after_response: Vec<MessageJson<'a>>,
}

/// A message from the server: its method is in one of the first two fields.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageJson<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    notification: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    request: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// Reads a member that is present; `null` is a value.
fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Recording {
    /// The recording as text.
    pub fn to_text(&self) -> String {
        let mut res = to_line(&HeaderLine { format: FORMAT.to_owned(), version: FORMAT_VERSION });
        for server_recording in &self.servers {
            let ServerRecording { server, version, exchanges } = &**server_recording;
            let (era, protocol) = (version.map(|it| it.era().as_str()), version.map(|it| it.as_str()));
            res.push_str(&to_line(&ServerLine { server, era, protocol }));
            for exchange in exchanges {
                let response = exchange.response.as_ref().map(Result::as_ref);
                res.push_str(&to_line(&LineJson {
                    method: Some(Cow::Borrowed(exchange.method.as_str())),
                    params: exchange.params.as_ref().and_then(raw_value),
                    before_response: exchange.before_response.iter().map(message_json).collect(),
                    result: response.and_then(Result::ok).and_then(raw_value),
                    error: response.and_then(Result::err).and_then(raw_value),
                    after_response: exchange.after_response.iter().map(message_json).collect(),
                    ..LineJson::default()
                }));
            }
        }
        res
    }

    /// Reads a recording. Fails with the first line that is wrong.
    pub fn parse(text: &str) -> Result<Recording, RecordingError> {
        let mut lines = text.lines().enumerate().filter(|(_, it)| !it.trim().is_empty());
        let header = lines.next().and_then(|(_, it)| serde_json::from_str::<HeaderLine>(it).ok());
        match header {
            Some(HeaderLine { format, version: FORMAT_VERSION }) if format == FORMAT => {}
            Some(HeaderLine { format, version: found }) if format == FORMAT => {
                return Err(RecordingError::Version { found });
            }
            Some(_) | None => return Err(RecordingError::NotARecording),
        }
        let mut servers: Vec<ServerRecording> = Vec::new();
        for (at, text) in lines {
            let line_error = |message: String| RecordingError::Line { line: at + 1, message };
            let line: LineJson<'_> = serde_json::from_str(text).map_err(|it| line_error(it.to_string()))?;
            match (line.server, line.method) {
                (Some(server), None) => {
                    if servers.iter().any(|it| it.server == server) {
                        return Err(line_error(format!("the server `{server}` occurs twice")));
                    }
                    let version = line.protocol.map(|it| it.parse());
                    let version = version
                        .transpose()
                        .map_err(|_| line_error("an unknown protocol version".to_owned()))?;
                    servers.push(ServerRecording { server, version, exchanges: Vec::new() });
                }
                (None, Some(method)) => {
                    let Some(server_recording) = servers.last_mut() else {
                        return Err(line_error("a request before the first server".to_owned()));
                    };
                    let response = match (line.result, line.error) {
                        (Some(_), Some(_)) => return Err(line_error("a result and an error".to_owned())),
                        (Some(it), None) => Some(Ok(RawJson::copy_of(it))),
                        (None, Some(it)) => Some(Err(RawJson::copy_of(it))),
                        (None, None) => None,
                    };
                    server_recording.exchanges.push(Exchange {
                        method: MethodName::from(&*method),
                        params: line.params.map(RawJson::copy_of),
                        before_response: parse_messages(line.before_response).map_err(&line_error)?,
                        response,
                        after_response: parse_messages(line.after_response).map_err(&line_error)?,
                    });
                }
                (Some(_), Some(_)) | (None, None) => {
                    return Err(line_error("it is neither a server nor a request".to_owned()));
                }
            }
        }
        Ok(Recording { servers: servers.into_iter().map(Arc::new).collect(), omitted: 0 })
    }
}

fn message_json(ServerMessage { kind, method, params }: &ServerMessage) -> MessageJson<'_> {
    let params = params.as_ref().and_then(raw_value);
    let method = Some(Cow::Borrowed(method.as_str()));
    match kind {
        ServerMessageKind::Notification => MessageJson { notification: method, request: None, params },
        ServerMessageKind::Request => MessageJson { notification: None, request: method, params },
    }
}

fn parse_messages(messages: Vec<MessageJson<'_>>) -> Result<Vec<ServerMessage>, String> {
    let message = |MessageJson { notification, request, params }: MessageJson<'_>| {
        let (kind, method) = match (notification, request) {
            (Some(method), None) => (ServerMessageKind::Notification, method),
            (None, Some(method)) => (ServerMessageKind::Request, method),
            (Some(_), Some(_)) | (None, None) => {
                return Err("a server message must be a notification or a request".to_owned());
            }
        };
        Ok(ServerMessage { kind, method: MethodName::from(&*method), params: params.map(RawJson::copy_of) })
    };
    messages.into_iter().map(message).collect()
}

/// A recorded value in the form that serde writes.
fn raw_value(json: &RawJson) -> Option<&RawValue> {
    json.read().ok()
}

/// Serializes a value as a line.
fn to_line(value: &impl Serialize) -> String {
    let mut res = serde_json::to_string(value).expect("the keys are strings");
    res.push('\n');
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\":\"mcp-recording\",\"version\":1}\n";

    #[test]
    fn recording_round_trips_byte_for_byte() {
        let text = [
            HEAD,
            r#"{"server":"a","era":"modern","protocol":"2026-07-28"}"#,
            "\n",
            r#"{"method":"tools/call","params":{"name":"x"},"said":[{"notification":"n","params":{"progressToken":0}},{"request":"roots/list"}],"result":{"b":1.0,"a":[]},"after":[{"notification":"m"}]}"#,
            "\n",
            r#"{"method":"ping","result":null}"#,
            "\n",
            r#"{"server":"b","era":null,"protocol":null}"#,
            "\n",
            r#"{"method":"x","error":{"code":1,"message":"no"}}"#,
            "\n",
            r#"{"method":"y"}"#,
            "\n",
        ];
        let text = text.concat();
        let recording = Recording::parse(&text).unwrap();
        assert_eq!(recording.to_text(), text);
        assert_eq!(recording.servers().len(), 2);
        assert_eq!(recording.server("b").unwrap().exchanges[1].response, None);
        assert!(recording.server("c").is_none());
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(Recording::parse(text).unwrap_err().to_string(), want);
    }

    #[test]
    fn error_names_the_line() {
        let none = r#"this is not a recording: its first line is not {"format":"mcp-recording","version":1}"#;
        check("", none);
        check("servers: {}\n", none);
        check("{\"format\":\"har\",\"version\":1}\n", none);
        check(
            "{\"format\":\"mcp-recording\",\"version\":2}",
            "the recording has format version 2; this program supports only version 1",
        );
        let at = |line: &str| format!("{HEAD}\n{line}\n");
        check(&at("{\"method\":\"x\"}"), "line 3 of the recording: a request before the first server");
        check(&at("{}"), "line 3 of the recording: it is neither a server nor a request");
        check(
            &at("{\"server\":\"a\",\"protocol\":\"1999\"}"),
            "line 3 of the recording: an unknown protocol version",
        );
        check(
            &at("{\"server\":\"a\"}\n{\"server\":\"a\"}"),
            "line 4 of the recording: the server `a` occurs twice",
        );
        check(
            &at("{\"server\":\"a\"}\n{\"method\":\"x\",\"result\":1,\"error\":{}}"),
            "line 4 of the recording: a result and an error",
        );
        let unknown = Recording::parse(&at("{\"sever\":\"a\"}")).unwrap_err().to_string();
        assert!(unknown.starts_with("line 3 of the recording: unknown field `sever`"), "{unknown}");
    }
}
