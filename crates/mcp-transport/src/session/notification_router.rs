//! Routes notifications from a server to the listener, to callers and to the log.
//!
//! The listener runs in a task of its own. The queue in between is bounded in messages and bytes: a slow listener loses
//! events but does not delay the connection.

use std::sync::Arc;

use bytes::Bytes;
use mcp_model::{LogLevel, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::incoming::params;
use super::{Listener, LogMessage, ServerEvent};
use crate::rpc::engine::{Engine, IncomingMessage};
use crate::rpc::progress::Progress;
use crate::session::CallerId;
use crate::transport::{Dial, RequestId};

/// Maximum number of queued events.
const MAX_QUEUED_EVENTS: usize = 1024;

/// A notification for the user of a session: a log message, a changed resource, or a method that this version does not
/// know.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionNotification {
    /// The event.
    pub event: ServerEvent,
    /// The caller whose call it belongs to, if known. That caller has already received the event through
    /// [`Caller::on_event`](crate::session::Caller).
    pub caller: Option<CallerId>,
}

/// Callback for session notifications, in order. Runs on a task of the session; it must not block or panic.
pub type OnSessionNotification = Arc<dyn Fn(SessionNotification) + Send + Sync>;

/// The sending end of the listener's queue.
pub(crate) struct NotificationRouter {
    said: Option<OnSessionNotification>,
    listener: Option<mpsc::Sender<(ServerEvent, QueuePermit)>>,
    dial: Arc<dyn Dial>,
}

/// The receiving end of the listener's queue.
pub(crate) struct ListenerQueue(mpsc::Receiver<(ServerEvent, QueuePermit)>);

/// Counts a message as queued until it is dropped.
pub(crate) struct QueuePermit {
    engine: Arc<Engine>,
    bytes: usize,
}

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

impl NotificationRouter {
    /// Creates a queue if there is a listener. `dial` redacts secrets.
    pub(crate) fn new(
        listener: Option<&Arc<dyn Listener>>,
        said: Option<OnSessionNotification>,
        dial: Arc<dyn Dial>,
    ) -> (NotificationRouter, Option<ListenerQueue>) {
        match listener {
            None => (NotificationRouter { said, listener: None, dial }, None),
            Some(_) => {
                let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
                (NotificationRouter { said, listener: Some(sender), dial }, Some(ListenerQueue(receiver)))
            }
        }
    }

    /// Routes a message; `caller` is the caller whose call it belongs to, if known.
    pub(crate) fn route(
        &self,
        engine: &Engine,
        notification: ParsedNotification,
        owner: Option<CallerId>,
        permit: QueuePermit,
    ) {
        let notification = notification.redacted(self.dial.as_ref());
        if let ParsedNotification::Log(message) = &notification {
            log(message, self.dial.as_ref());
        }
        let event = match notification {
            ParsedNotification::Log(message) => ServerEvent::Log(message),
            ParsedNotification::Progress(request, progress) => {
                ServerEvent::Progress { request, progress: progress.redacted(self.dial.as_ref()) }
            }
            ParsedNotification::Tools => ServerEvent::ToolsChanged,
            ParsedNotification::Prompts => ServerEvent::PromptsChanged,
            ParsedNotification::Resources => ServerEvent::ResourcesChanged,
            ParsedNotification::Updated(uri) => ServerEvent::ResourceUpdated { uri },
            ParsedNotification::Other(method, params) => ServerEvent::Notification { method, params },
            ParsedNotification::ProtocolError(what) => ServerEvent::ProtocolError(self.dial.redact(&what)),
        };
        if let Some(said) = self.said.as_ref().filter(|_| is_forwarded(&event)) {
            said(SessionNotification { event: event.clone(), caller: owner });
        }
        let Some(listener) = &self.listener else { return };
        if listener.try_send((event, permit)).is_err() {
            engine.count_dropped();
        }
    }
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
fn is_forwarded(event: &ServerEvent) -> bool {
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
    fn redacted(self, dial: &dyn Dial) -> ParsedNotification {
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

fn message(params: &RawJson) -> Option<LogMessage> {
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

/// Maps MCP's eight levels to those of `tracing` (HD-FR027, SK-15) and records the original one as a field. A message
/// without a level is logged as info.
fn log(message: &LogMessage, dial: &dyn Dial) {
    let LogMessage { level, logger, data, raw: _ } = message;
    let name = level.map_or("unknown", LogLevel::as_str);
    let logger = logger.as_deref().map(|it| dial.redact(it)).unwrap_or_default();
    // Strings are logged as text, other values as JSON, both redacted.
    let data = data.as_ref().map(|it| dial.redact(&it.to_text().unwrap_or_else(|| it.as_str().into())));
    let data = data.unwrap_or_default();
    match level {
        Some(LogLevel::Debug) => tracing::debug!(target: "mcp_server", level = name, logger, "{data}"),
        Some(LogLevel::Info | LogLevel::Notice) | None => {
            tracing::info!(target: "mcp_server", level = name, logger, "{data}");
        }
        Some(LogLevel::Warning) => tracing::warn!(target: "mcp_server", level = name, logger, "{data}"),
        Some(LogLevel::Error | LogLevel::Critical | LogLevel::Alert | LogLevel::Emergency) => {
            tracing::error!(target: "mcp_server", level = name, logger, "{data}");
        }
    }
}

/// Delivers events to the listener one by one, until the connection is closed.
pub(crate) async fn run(listener: Arc<dyn Listener>, mut queue: ListenerQueue) {
    while let Some((event, permit)) = queue.0.recv().await {
        // In a task of its own, so that a panic loses only one event.
        let mut router = JoinSet::new();
        let listener = Arc::clone(&listener);
        router.spawn(async move { listener.on_event(event).await });
        router.join_next().await;
        drop(permit);
    }
}

impl QueuePermit {
    pub(crate) fn new(engine: &Arc<Engine>, message: &IncomingMessage) -> QueuePermit {
        QueuePermit { engine: Arc::clone(engine), bytes: message.bytes() }
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.engine.release_incoming(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Records the level and fields of each event.
    #[derive(Default)]
    struct Told(Arc<std::sync::Mutex<Vec<String>>>);

    impl tracing::Subscriber for Told {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            struct Fields(String);
            impl tracing::field::Visit for Fields {
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                    self.0.push_str(&format!(" {}={value:?}", field.name()));
                }
            }
            let mut fields = Fields(event.metadata().level().to_string());
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    struct Keeper;

    impl Dial for Keeper {
        fn dial(&self) -> Box<dyn crate::transport::Transport> {
            unreachable!("nothing is dialled in this test")
        }

        fn label(&self) -> String {
            "keeper".to_owned()
        }

        fn redact(&self, text: &str) -> String {
            text.replace("hunter2", "***")
        }

        fn handshake_mode(&self) -> crate::transport::HandshakeMode {
            crate::transport::HandshakeMode::Negotiate
        }
    }

    #[track_caller]
    fn check_log(params: &str, want: &str) {
        let told = Told::default();
        let lines = Arc::clone(&told.0);
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        tracing::subscriber::with_default(told, || log(&message(&params).unwrap(), &Keeper));
        assert_eq!(*lines.lock().unwrap(), [want]);
    }

    #[test]
    fn sk_15_hd_fr027_eight_levels_become_four_and_the_original_is_a_field() {
        for (level, want) in [
            ("debug", "DEBUG"),
            ("info", "INFO"),
            ("notice", "INFO"),
            ("warning", "WARN"),
            ("error", "ERROR"),
            ("critical", "ERROR"),
            ("alert", "ERROR"),
            ("emergency", "ERROR"),
        ] {
            let params = format!(r#"{{"level":"{level}","logger":"db","data":"x"}}"#);
            check_log(&params, &format!(r#"{want} message=x level="{level}" logger="db""#));
        }
        check_log(r#"{"level":"fatal","data":{"a":1}}"#, r#"INFO message={"a":1} level="unknown" logger="""#);
        let secret = r#"{"level":"error","logger":"hunter2","data":"with hunter2"}"#;
        check_log(secret, r#"ERROR message=with *** level="error" logger="***""#);
    }

    #[track_caller]
    fn check_cleaned(method: &str, params: &str, want: &str) {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let got = match event_for_call(method, &frame.into(), Some(&Keeper)) {
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
