//! Parses notifications from a server into events, and redacts secrets in events.

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::rpc::handlers::{LogMessage, ServerEvent};
use crate::transport::Dial;

/// Parses a notification. If the parameters do not match the method, it becomes [`ServerEvent::Notification`].
pub(crate) fn parse(method: MethodName, params: Option<RawJson>) -> ServerEvent {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    let event = match method.as_known() {
        Some(Method::ToolListChanged) => Some(ServerEvent::ToolsChanged),
        Some(Method::PromptListChanged) => Some(ServerEvent::PromptsChanged),
        Some(Method::ResourceListChanged) => Some(ServerEvent::ResourcesChanged),
        Some(Method::ResourceUpdated) => {
            let updated = params.as_ref().and_then(|it| it.read::<Updated>().ok());
            updated.map(|it| ServerEvent::ResourceUpdated { uri: it.uri })
        }
        Some(Method::LogMessage) => params.as_ref().and_then(read_log_message).map(ServerEvent::Log),
        _ => None,
    };
    event.unwrap_or_else(|| ServerEvent::Notification { method, params })
}

/// Parses a notification that belongs to a call into the event for the caller; `None` if it is for the session only.
/// `dial` redacts secrets.
pub(crate) fn parse_call_event(
    method: &MethodName,
    frame: &Bytes,
    dial: Option<&dyn Dial>,
) -> Option<ServerEvent> {
    let event = parse(method.clone(), read_params(&Bytes::copy_from_slice(frame)));
    if matches!(event, ServerEvent::ResourceUpdated { .. }) || !is_forwarded(&event) {
        return None;
    }
    Some(match dial {
        Some(dial) => redact_event(event, dial),
        None => event,
    })
}

/// Whether the event is passed on to callers and to the notification callback. Other events are only for the session
/// itself and for its listener.
pub(crate) fn is_forwarded(event: &ServerEvent) -> bool {
    match event {
        ServerEvent::Log(_) | ServerEvent::ResourceUpdated { .. } => true,
        ServerEvent::Notification { method, params: _ } => {
            !matches!(method.as_known(), Some(Method::SubscriptionsAcknowledged | Method::Cancelled))
        }
        ServerEvent::Progress { .. }
        | ServerEvent::ToolsChanged
        | ServerEvent::PromptsChanged
        | ServerEvent::ResourcesChanged
        | ServerEvent::ProtocolError(_) => false,
    }
}

/// Redacts secrets in an event.
pub(crate) fn redact_event(event: ServerEvent, dial: &dyn Dial) -> ServerEvent {
    let redact_json = |json: &RawJson| {
        let redacted = dial.redact_json(json.as_str())?;
        // A foreign `Dial` may return invalid JSON, which is replaced by an empty object.
        Some(RawJson::parse(redacted.into()).unwrap_or_else(|_| RawJson::empty_object()))
    };
    match event {
        ServerEvent::Log(original) => ServerEvent::Log(match redact_json(&original.raw) {
            None => original,
            Some(raw) => read_log_message(&raw).unwrap_or(LogMessage {
                level: original.level,
                logger: None,
                data: None,
                raw,
            }),
        }),
        ServerEvent::Notification { method, params } => {
            let params = params.map(|it| redact_json(&it).unwrap_or(it));
            ServerEvent::Notification { method, params }
        }
        ServerEvent::Progress { request, progress } => {
            ServerEvent::Progress { request, progress: progress.redact(dial) }
        }
        ServerEvent::ProtocolError(description) => ServerEvent::ProtocolError(dial.redact(&description)),
        event @ (ServerEvent::ToolsChanged
        | ServerEvent::PromptsChanged
        | ServerEvent::ResourcesChanged
        | ServerEvent::ResourceUpdated { .. }) => event,
    }
}

/// Reads the parameters of a log message.
pub(crate) fn read_log_message(params: &RawJson) -> Option<LogMessage> {
    #[derive(Deserialize)]
    struct LogMessageJson<'a> {
        #[serde(borrow)]
        level: Option<&'a RawValue>,
        #[serde(borrow)]
        logger: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let LogMessageJson { level, logger, data } = params.read().ok()?;
    let text = |it: Option<&RawValue>| it.and_then(|it| serde_json::from_str::<String>(it.get()).ok());
    Some(LogMessage {
        level: text(level).and_then(|it| it.parse().ok()),
        logger: text(logger),
        data: data.map(RawJson::copy_of),
        raw: params.clone(),
    })
}

/// Reads the parameters of a message without copying them; `None` if it has none.
pub(crate) fn read_params(frame: &Bytes) -> Option<RawJson> {
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
    use mcp_host_model::LogLevel;

    #[track_caller]
    fn check(method: &str, params: &str, want: &str) {
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        let got = match parse(method.into(), Some(params)) {
            ServerEvent::Log(LogMessage { level, logger, data, raw: _ }) => {
                let level = level.map_or("none", LogLevel::as_str);
                let data = data.map_or(String::new(), |it| it.as_str().to_owned());
                format!("log {level} {} {data}", logger.unwrap_or_default())
            }
            ServerEvent::ResourceUpdated { uri } => format!("updated {uri}"),
            ServerEvent::Notification { params, .. } => format!("other {}", params.unwrap().as_str()),
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
        check("notifications/tools/list_changed", "{}", "ToolsChanged");
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
    fn check_redacted(method: &str, params: &str, want: &str) {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let got = match parse_call_event(&method.into(), &frame.into(), Some(&RedactingDial)) {
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
        check_redacted(log, r#"{"level":"info", "data":"x"}"#, r#"{"level":"info", "data":"x"}"#);
        check_redacted(
            log,
            r#"{"level":"info", "data":{"a\nhunter2":["\u0068unter2"]},"logger":"hunter2"}"#,
            r#"{"level":"info","data":{"a\n***":["***"]},"logger":"***"}"#,
        );
        check_redacted("notifications/own", r#"{"key":"hunter2"}"#, r#"{"key":"***"}"#);
    }
}
