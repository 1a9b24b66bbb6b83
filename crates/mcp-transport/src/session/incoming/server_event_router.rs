//! Routes notifications from a server to the listener, to callers and to the log.
//!
//! The listener runs in a task of its own. The queue in between is bounded in messages and bytes: a slow listener loses
//! events but does not delay the connection.

use std::sync::Arc;

use mcp_host_model::LogLevel;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::rpc::caller::CallerId;
use crate::rpc::engine::{Engine, IncomingMessage};
use crate::rpc::handlers::{Listener, LogMessage, ServerEvent};
use crate::rpc::notification::{is_forwarded, redact_event};
use crate::transport::Dial;

/// Maximum number of queued events.
const MAX_QUEUED_EVENTS: usize = 1024;

/// A notification for the user of a session: a log message, a changed resource, or a method that this version does not
/// know.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionNotification {
    /// The event.
    pub event: ServerEvent,
    /// The caller whose call it belongs to, if known. That caller has already received the event through
    /// [`Caller::on_event`](crate::rpc::caller::Caller).
    pub caller: Option<CallerId>,
}

/// Callback for session notifications, in order. Runs on a task of the session; it must not block or panic.
pub type OnSessionNotification = Arc<dyn Fn(SessionNotification) + Send + Sync>;

/// Routes the events of one session to the log, to the notification callback, and to the queue of the listener.
pub(crate) struct ServerEventRouter {
    on_notification: Option<OnSessionNotification>,
    listener: Option<mpsc::Sender<(ServerEvent, QueuePermit)>>,
    dial: Arc<dyn Dial>,
}

/// Counts the bytes of a message as queued until it is dropped.
pub(crate) struct QueuePermit {
    engine: Arc<Engine>,
    bytes: usize,
}

impl ServerEventRouter {
    /// Creates a router, and the receiver of the listener's queue if there is a listener. `dial` redacts secrets.
    pub(crate) fn new(
        has_listener: bool,
        on_notification: Option<OnSessionNotification>,
        dial: Arc<dyn Dial>,
    ) -> (ServerEventRouter, Option<mpsc::Receiver<(ServerEvent, QueuePermit)>>) {
        let (listener, queue) = has_listener.then(|| mpsc::channel(MAX_QUEUED_EVENTS)).unzip();
        (ServerEventRouter { on_notification, listener, dial }, queue)
    }

    /// Routes an event; `caller` is the caller whose call it belongs to, if known.
    pub(crate) fn route(
        &self,
        engine: &Engine,
        event: ServerEvent,
        caller: Option<CallerId>,
        permit: QueuePermit,
    ) {
        let event = redact_event(event, self.dial.as_ref());
        if let ServerEvent::Log(message) = &event {
            trace_log_message(message, self.dial.as_ref());
        }
        if let Some(on_notification) = self.on_notification.as_ref().filter(|_| is_forwarded(&event)) {
            on_notification(SessionNotification { event: event.clone(), caller });
        }
        let Some(listener) = &self.listener else { return };
        if listener.try_send((event, permit)).is_err() {
            engine.count_dropped();
        }
    }
}

/// Maps MCP's eight levels to those of `tracing` (HD-FR027, SK-15) and records the original one as a field. A message
/// without a level is logged as info.
fn trace_log_message(message: &LogMessage, dial: &dyn Dial) {
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
pub(crate) async fn deliver_events(
    listener: Arc<dyn Listener>,
    mut queue: mpsc::Receiver<(ServerEvent, QueuePermit)>,
) {
    while let Some((event, permit)) = queue.recv().await {
        // A task for each event, so that a panic loses only that event.
        let mut delivery = JoinSet::new();
        let listener = Arc::clone(&listener);
        delivery.spawn(async move { listener.on_event(event).await });
        delivery.join_next().await;
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
    use crate::rpc::notification::read_log_message;
    use mcp_host_model::RawJson;

    /// Records the level and fields of each event.
    #[derive(Default)]
    struct LogRecorder(Arc<std::sync::Mutex<Vec<String>>>);

    impl tracing::Subscriber for LogRecorder {
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
    fn check_log(params: &str, want: &str) {
        let recorder = LogRecorder::default();
        let lines = Arc::clone(&recorder.0);
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        tracing::subscriber::with_default(recorder, || {
            trace_log_message(&read_log_message(&params).unwrap(), &RedactingDial)
        });
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
}
