//! Parses notifications from a server and redacts secrets in them.

use bytes::Bytes;
use mcp_model::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::rpc::handlers::{LogMessage, ServerEvent};
use crate::rpc::progress::Progress;
use crate::transport::{Dial, RequestId};

/// A parsed message.
#[derive(Debug, PartialEq)]
pub(crate) enum ParsedNotification {
    Log(LogMessage),
    Progress(RequestId, Progress),
    Tools,
    Prompts,
    Resources,
    Updated(String),
    Other(String, Option<RawJson>),
    ProtocolError(String),
}

/// The event that a notification is for the caller of its call; `None` if it concerns the session only. `dial` redacts
/// secrets.
pub(crate) fn event_for_call(method: &str, frame: &Bytes, dial: Option<&dyn Dial>) -> Option<ServerEvent> {
    let notification = ParsedNotification::of(method, params(&Bytes::copy_from_slice(frame)));
    let notification = match dial {
        Some(dial) => notification.redacted(dial),
        None => notification,
    };
    let event = match notification {
        ParsedNotification::Log(message) => ServerEvent::Log(message),
        ParsedNotification::Other(method, params) => ServerEvent::Notification { method, params },
        ParsedNotification::Progress(..)
        | ParsedNotification::Tools
        | ParsedNotification::Prompts
        | ParsedNotification::Resources
        | ParsedNotification::Updated(_)
        | ParsedNotification::ProtocolError(_) => return None,
    };
    is_forwarded(&event).then_some(event)
}

/// Whether the event is passed on, rather than only used by the protocol itself.
pub(crate) fn is_forwarded(event: &ServerEvent) -> bool {
    match event {
        ServerEvent::Log(_) | ServerEvent::ResourceUpdated { .. } => true,
        ServerEvent::Notification { method, params: _ } => {
            !matches!(&**method, "notifications/subscriptions/acknowledged" | "notifications/cancelled")
        }
        ServerEvent::Progress { .. }
        | ServerEvent::ToolsChanged
        | ServerEvent::PromptsChanged
        | ServerEvent::ResourcesChanged
        | ServerEvent::ProtocolError(_) => false,
    }
}

impl ParsedNotification {
    /// Parses a notification. If the parameters do not match the method, it becomes `Other`.
    pub(crate) fn of(method: &str, params: Option<RawJson>) -> ParsedNotification {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        match method {
            "notifications/tools/list_changed" => ParsedNotification::Tools,
            "notifications/prompts/list_changed" => ParsedNotification::Prompts,
            "notifications/resources/list_changed" => ParsedNotification::Resources,
            "notifications/resources/updated" => match params.as_ref().map(RawJson::read::<Updated>) {
                Some(Ok(Updated { uri })) => ParsedNotification::Updated(uri),
                Some(Err(_)) | None => ParsedNotification::Other(method.to_owned(), params),
            },
            "notifications/message" => match params.as_ref().and_then(message) {
                Some(message) => ParsedNotification::Log(message),
                None => ParsedNotification::Other(method.to_owned(), params),
            },
            _ => ParsedNotification::Other(method.to_owned(), params),
        }
    }
}

impl ParsedNotification {
    /// The same with secrets redacted. Progress is redacted when it is passed to its call.
    pub(crate) fn redacted(self, dial: &dyn Dial) -> ParsedNotification {
        let clean = |params: &RawJson| {
            let clean = dial.redact_json(params.as_str())?;
            // A foreign `Dial` may return invalid JSON, which is replaced by an empty object.
            Some(RawJson::parse(clean.into()).unwrap_or_else(|_| RawJson::empty_object()))
        };
        match self {
            ParsedNotification::Log(said) => match clean(&said.raw) {
                None => ParsedNotification::Log(said),
                Some(raw) => ParsedNotification::Log(message(&raw).unwrap_or(LogMessage {
                    level: said.level,
                    logger: None,
                    data: None,
                    raw,
                })),
            },
            ParsedNotification::Other(method, params) => {
                let params = params.map(|it| clean(&it).unwrap_or(it));
                ParsedNotification::Other(method, params)
            }
            it @ (ParsedNotification::Progress(..)
            | ParsedNotification::Tools
            | ParsedNotification::Prompts
            | ParsedNotification::Resources
            | ParsedNotification::Updated(_)
            | ParsedNotification::ProtocolError(_)) => it,
        }
    }
}

pub(crate) fn message(params: &RawJson) -> Option<LogMessage> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        level: Option<&'a RawValue>,
        #[serde(borrow)]
        logger: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let Wire { level, logger, data } = params.read().ok()?;
    let text = |it: Option<&RawValue>| it.and_then(|it| serde_json::from_str::<String>(it.get()).ok());
    Some(LogMessage {
        level: text(level).and_then(|it| it.parse().ok()),
        logger: text(logger),
        data: data.map(RawJson::copy_of),
        raw: params.clone(),
    })
}

/// The parameters of a message.
pub(crate) fn params(frame: &bytes::Bytes) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let message: Message<'_> = serde_json::from_slice(frame).ok()?;
    RawJson::parse_prefix(frame.slice_ref(message.params?.get().as_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_model::LogLevel;

    #[track_caller]
    fn check(method: &str, params: &str, want: &str) {
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        let got = match ParsedNotification::of(method, Some(params)) {
            ParsedNotification::Log(LogMessage { level, logger, data, raw: _ }) => {
                let level = level.map_or("none", LogLevel::as_str);
                let data = data.map_or(String::new(), |it| it.as_str().to_owned());
                format!("log {level} {} {data}", logger.unwrap_or_default())
            }
            ParsedNotification::Updated(uri) => format!("updated {uri}"),
            ParsedNotification::Other(_, params) => format!("other {}", params.unwrap().as_str()),
            other => format!("{other:?}"),
        };
        assert_eq!(got.trim_end(), want);
    }

    #[test]
    fn hd_fr028_notifications_are_parsed_and_unknown_ones_are_kept() {
        check(
            "notifications/message",
            r#"{"level":"notice","logger":"db","data":{"a":1}}"#,
            r#"log notice db {"a":1}"#,
        );
        check("notifications/message", r#"{"level":"fatal","data":"x"}"#, r#"log none  "x""#);
        check("notifications/message", r#"{"level":7}"#, "log none");
        check("notifications/message", "[1]", "other [1]");
        check("notifications/resources/updated", r#"{"uri":"a:b"}"#, "updated a:b");
        check("notifications/resources/updated", "{}", "other {}");
        check("notifications/tools/list_changed", "{}", "Tools");
        check("notifications/x", r#"{"y":1}"#, r#"other {"y":1}"#);
    }

    struct RedactingDial;

    impl Dial for RedactingDial {
        fn dial(&self) -> Box<dyn crate::transport::Transport> {
            unreachable!("nothing is dialled in this test")
        }

        fn label(&self) -> String {
            "redacting".to_owned()
        }

        fn redact(&self, text: &str) -> String {
            text.replace("hunter2", "***")
        }

        fn handshake_mode(&self) -> crate::transport::HandshakeMode {
            crate::transport::HandshakeMode::Negotiate
        }
    }

    #[track_caller]
    fn check_cleaned(method: &str, params: &str, want: &str) {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let got = match event_for_call(method, &frame.into(), Some(&RedactingDial)) {
            Some(ServerEvent::Log(LogMessage { raw, data, .. })) => {
                assert!(data.is_none_or(|it| raw.as_str().contains(it.as_str())));
                raw.as_str().to_owned()
            }
            Some(ServerEvent::Notification { params, .. }) => params.unwrap().as_str().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn hd_sc5_events_for_a_caller_are_redacted() {
        let log = "notifications/message";
        check_cleaned(log, r#"{"level":"info", "data":"x"}"#, r#"{"level":"info", "data":"x"}"#);
        check_cleaned(
            log,
            r#"{"level":"info", "data":{"a\nhunter2":["\u0068unter2"]},"logger":"hunter2"}"#,
            r#"{"level":"info","data":{"a\n***":["***"]},"logger":"***"}"#,
        );
        check_cleaned("notifications/own", r#"{"key":"hunter2"}"#, r#"{"key":"***"}"#);
    }
}
