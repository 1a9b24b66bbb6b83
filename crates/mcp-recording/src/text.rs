//! A recording as text: JSON lines, the first of which says what it is. Pure.
//!
//! ```text
//! {"format":"mcp-recording","version":1}
//! {"server":"demo","era":"modern","protocol":"2026-07-28"}
//! {"method":"tools/call","params":{"arguments":{"text":"hi"},"name":"echo"},"result":{…}}
//! ```
//!
//! The lines after a server's line belong to that server. A line has no time, no id and no token, so that two recordings
//! can be compared line by line.

use std::sync::Arc;

use mcp_model::RawJson;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::recording::{Exchange, RecordedResponse, Recording, ServerMessage, ServerRecording};

/// What the first line says.
const FORMAT: &str = "mcp-recording";
/// The version of the format.
const VERSION: u32 = 1;

/// Why a text is no recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It does not begin as one.
    #[error("this is no recording: its first line is not {{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}")]
    NotARecording,
    /// It is of a version that this build does not read.
    #[error("the recording has version {found} of the format, and only version {VERSION} is known here")]
    Version {
        /// Which.
        found: u32,
    },
    /// A line is none of a recording.
    #[error("line {line} of the recording: {message}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
}

#[derive(Serialize)]
struct ServerLine<'a> {
    server: &'a str,
    era: Option<&'static str>,
    protocol: Option<&'static str>,
}

#[derive(Serialize)]
struct ExchangeLine<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    said: Vec<MessageOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<MessageOut<'a>>,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawJson>,
}

/// A line as it is read: a server's, or an exchange.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineIn<'a> {
    #[serde(default)]
    server: Option<String>,
    #[serde(default, rename = "era")]
    _era: Option<String>,
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    said: Vec<MessageIn<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    after: Vec<MessageIn<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageIn<'a> {
    #[serde(default)]
    notification: Option<String>,
    #[serde(default)]
    request: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// A result of `null` is a result.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Recording {
    /// The recording as text.
    pub fn to_text(&self) -> String {
        let mut res = line(&Header { format: FORMAT.to_owned(), version: VERSION });
        for tape in &self.servers {
            let ServerRecording { server, version, exchanges } = &**tape;
            let (era, protocol) = (version.map(|it| it.era().as_str()), version.map(|it| it.as_str()));
            res.push_str(&line(&ServerLine { server, era, protocol }));
            for Exchange { method, params, before_response: said, response: reply, after_response: after } in
                exchanges
            {
                let (result, error) = match reply {
                    Some(RecordedResponse::Result(it)) => (Some(it), None),
                    Some(RecordedResponse::Error(it)) => (None, Some(it)),
                    None => (None, None),
                };
                let (said, after) = (messages_out(said), messages_out(after));
                let params = params.as_ref();
                res.push_str(&line(&ExchangeLine { method, params, said, result, error, after }));
            }
        }
        res
    }

    /// Reads a recording. Fails with the first line that is wrong.
    pub fn parse(text: &str) -> Result<Recording, RecordingError> {
        let mut lines = text.lines().enumerate().filter(|(_, it)| !it.trim().is_empty());
        let header = lines.next().and_then(|(_, it)| serde_json::from_str::<Header>(it).ok());
        match header {
            Some(Header { format, version: VERSION }) if format == FORMAT => {}
            Some(Header { format, version: found }) if format == FORMAT => {
                return Err(RecordingError::Version { found });
            }
            Some(_) | None => return Err(RecordingError::NotARecording),
        }
        let mut tapes: Vec<ServerRecording> = Vec::new();
        for (at, text) in lines {
            let refused = |message: String| RecordingError::Line { line: at + 1, message };
            let line: LineIn<'_> = serde_json::from_str(text).map_err(|it| refused(it.to_string()))?;
            match (line.server, line.method) {
                (Some(server), None) => {
                    if tapes.iter().any(|it| it.server == server) {
                        return Err(refused(format!("the server `{server}` is there already")));
                    }
                    let version = line.protocol.map(|it| it.parse());
                    let version =
                        version.transpose().map_err(|_| refused("an unknown protocol".to_owned()))?;
                    tapes.push(ServerRecording { server, version, exchanges: Vec::new() });
                }
                (None, Some(method)) => {
                    let Some(tape) = tapes.last_mut() else {
                        return Err(refused("a request before the first server".to_owned()));
                    };
                    let reply = match (line.result, line.error) {
                        (Some(_), Some(_)) => return Err(refused("a result and an error".to_owned())),
                        (Some(it), None) => Some(RecordedResponse::Result(RawJson::copy_of(it))),
                        (None, Some(it)) => Some(RecordedResponse::Error(RawJson::copy_of(it))),
                        (None, None) => None,
                    };
                    tape.exchanges.push(Exchange {
                        method,
                        params: line.params.map(RawJson::copy_of),
                        before_response: messages_in(line.said).map_err(&refused)?,
                        response: reply,
                        after_response: messages_in(line.after).map_err(&refused)?,
                    });
                }
                (Some(_), Some(_)) | (None, None) => {
                    return Err(refused("it is neither a server's nor a request".to_owned()));
                }
            }
        }
        Ok(Recording { servers: tapes.into_iter().map(Arc::new).collect(), omitted: 0 })
    }
}

fn messages_out(said: &[ServerMessage]) -> Vec<MessageOut<'_>> {
    let mut res = Vec::with_capacity(said.len());
    for it in said {
        res.push(match it {
            ServerMessage::Notification { method, params } => {
                MessageOut { notification: Some(method), request: None, params: params.as_ref() }
            }
            ServerMessage::Request { method, params } => {
                MessageOut { notification: None, request: Some(method), params: params.as_ref() }
            }
        });
    }
    res
}

fn messages_in(said: Vec<MessageIn<'_>>) -> Result<Vec<ServerMessage>, String> {
    let one = |MessageIn { notification, request, params }: MessageIn<'_>| {
        let params = params.map(RawJson::copy_of);
        match (notification, request) {
            (Some(method), None) => Ok(ServerMessage::Notification { method, params }),
            (None, Some(method)) => Ok(ServerMessage::Request { method, params }),
            (Some(_), Some(_)) | (None, None) => {
                Err("what a server says is a notification or a request".to_owned())
            }
        }
    };
    said.into_iter().map(one).collect()
}

fn line(value: &impl Serialize) -> String {
    let mut res = serde_json::to_string(value).expect("our lines have text for keys, and write to memory");
    res.push('\n');
    res
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\":\"mcp-recording\",\"version\":1}\n";

    #[test]
    fn a_recording_reads_back_byte_for_byte() {
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
    fn what_is_wrong_is_said_with_its_line() {
        let none = r#"this is no recording: its first line is not {"format":"mcp-recording","version":1}"#;
        check("", none);
        check("servers: {}\n", none);
        check("{\"format\":\"har\",\"version\":1}\n", none);
        check(
            "{\"format\":\"mcp-recording\",\"version\":2}",
            "the recording has version 2 of the format, and only version 1 is known here",
        );
        let at = |line: &str| format!("{HEAD}\n{line}\n");
        check(&at("{\"method\":\"x\"}"), "line 3 of the recording: a request before the first server");
        check(&at("{}"), "line 3 of the recording: it is neither a server's nor a request");
        check(
            &at("{\"server\":\"a\",\"protocol\":\"1999\"}"),
            "line 3 of the recording: an unknown protocol",
        );
        check(
            &at("{\"server\":\"a\"}\n{\"server\":\"a\"}"),
            "line 4 of the recording: the server `a` is there already",
        );
        check(
            &at("{\"server\":\"a\"}\n{\"method\":\"x\",\"result\":1,\"error\":{}}"),
            "line 4 of the recording: a result and an error",
        );
        let unknown = Recording::parse(&at("{\"sever\":\"a\"}")).unwrap_err().to_string();
        assert!(unknown.starts_with("line 3 of the recording: unknown field `sever`"), "{unknown}");
    }
}
