//! What a server says on its own, on its way to whoever listens, and to the log.
//!
//! The listener has a task of its own. Between it and the connection stands a queue that is bounded in messages and in
//! bytes: a listener that takes its time loses events, and holds up nobody.

use std::sync::Arc;

use bytes::Bytes;
use mcp_model::{LogLevel, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::dispatch::params;
use super::{Listener, LogMessage, ServerEvent};
use crate::rpc::engine::{Engine, Incoming};
use crate::rpc::progress::Progress;
use crate::session::CallerId;
use crate::transport::{Dial, RequestId};

/// How many events may wait for their listener.
const MOST_WAITING: usize = 1024;

/// Something that a server says on its own: a log message, a resource that changed, or a notification that this version does
/// not know.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionNotification {
    /// What it says.
    pub event: ServerEvent,
    /// Whose call it is about, where that is known. Then its caller has heard it already, if he wanted to.
    pub caller: Option<CallerId>,
}

/// Hears what a server says on its own, in order. Called on a task of the session: it must not wait, and not panic.
pub type OnSessionNotification = Arc<dyn Fn(SessionNotification) + Send + Sync>;

/// The connection's end of the queue.
pub(crate) struct Hearing {
    said: Option<OnSessionNotification>,
    listener: Option<mpsc::Sender<(ServerEvent, Held)>>,
    dial: Arc<dyn Dial>,
}

/// The listener's end.
pub(crate) struct Waiting(mpsc::Receiver<(ServerEvent, Held)>);

/// A message of the server's as long as somebody works on it: it counts among those that wait.
pub(crate) struct Held {
    engine: Arc<Engine>,
    bytes: usize,
}

/// What a message tells.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Log(LogMessage),
    Progress(RequestId, Progress),
    Tools,
    Prompts,
    Resources,
    Updated(String),
    Other(String, Option<RawJson>),
    Fault(String),
}

impl Hearing {
    /// A queue to `listener`, where there is one. `dial` knows what must not be repeated.
    pub(crate) fn new(
        listener: Option<&Arc<dyn Listener>>,
        said: Option<OnSessionNotification>,
        dial: Arc<dyn Dial>,
    ) -> (Hearing, Option<Waiting>) {
        match listener {
            None => (Hearing { said, listener: None, dial }, None),
            Some(_) => {
                let (sender, receiver) = mpsc::channel(MOST_WAITING);
                (Hearing { said, listener: Some(sender), dial }, Some(Waiting(receiver)))
            }
        }
    }

    /// Hands a message on, which is about a call of `owner`'s where that is known.
    pub(crate) fn tell(&self, engine: &Engine, heard: Heard, owner: Option<CallerId>, held: Held) {
        let heard = heard.cleaned(self.dial.as_ref());
        if let Heard::Log(message) = &heard {
            log(message, self.dial.as_ref());
        }
        let event = match heard {
            Heard::Log(message) => ServerEvent::Log(message),
            Heard::Progress(request, progress) => {
                ServerEvent::Progress { request, progress: progress.cleaned(self.dial.as_ref()) }
            }
            Heard::Tools => ServerEvent::ToolsChanged,
            Heard::Prompts => ServerEvent::PromptsChanged,
            Heard::Resources => ServerEvent::ResourcesChanged,
            Heard::Updated(uri) => ServerEvent::ResourceUpdated { uri },
            Heard::Other(method, params) => ServerEvent::Notification { method, params },
            Heard::Fault(what) => ServerEvent::ProtocolError(self.dial.redact(&what)),
        };
        if let Some(said) = self.said.as_ref().filter(|_| is_said(&event)) {
            said(SessionNotification { event: event.clone(), caller: owner });
        }
        let Some(listener) = &self.listener else { return };
        if listener.try_send((event, held)).is_err() {
            engine.dropped();
        }
    }
}

/// What a notification tells the caller whose call it is about; `None` where it is the session's business alone. `dial`
/// knows what must not be repeated.
pub(crate) fn of_call(method: &str, frame: &Bytes, dial: Option<&dyn Dial>) -> Option<ServerEvent> {
    let heard = Heard::of(method, params(&Bytes::copy_from_slice(frame)));
    let heard = match dial {
        Some(dial) => heard.cleaned(dial),
        None => heard,
    };
    let event = match heard {
        Heard::Log(message) => ServerEvent::Log(message),
        Heard::Other(method, params) => ServerEvent::Notification { method, params },
        Heard::Progress(..)
        | Heard::Tools
        | Heard::Prompts
        | Heard::Resources
        | Heard::Updated(_)
        | Heard::Fault(_) => return None,
    };
    is_said(&event).then_some(event)
}

/// Is it something for others, beyond what the protocol itself needs?
fn is_said(event: &ServerEvent) -> bool {
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

impl Heard {
    /// Reads a notification. One that is not what its method says is some other one.
    pub(crate) fn of(method: &str, params: Option<RawJson>) -> Heard {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        match method {
            "notifications/tools/list_changed" => Heard::Tools,
            "notifications/prompts/list_changed" => Heard::Prompts,
            "notifications/resources/list_changed" => Heard::Resources,
            "notifications/resources/updated" => match params.as_ref().map(RawJson::read::<Updated>) {
                Some(Ok(Updated { uri })) => Heard::Updated(uri),
                Some(Err(_)) | None => Heard::Other(method.to_owned(), params),
            },
            "notifications/message" => match params.as_ref().and_then(message) {
                Some(message) => Heard::Log(message),
                None => Heard::Other(method.to_owned(), params),
            },
            _ => Heard::Other(method.to_owned(), params),
        }
    }
}

impl Heard {
    /// The same without what the server was given in confidence. Progress is cleaned where it goes to its call.
    fn cleaned(self, dial: &dyn Dial) -> Heard {
        let clean = |params: &RawJson| {
            let clean = dial.redact_json(params.as_str())?;
            // Whatever a stranger's wire makes of it: what is no JSON any more says nothing.
            Some(RawJson::parse(clean.into()).unwrap_or_else(|_| RawJson::empty_object()))
        };
        match self {
            Heard::Log(said) => match clean(&said.raw) {
                None => Heard::Log(said),
                Some(raw) => Heard::Log(message(&raw).unwrap_or(LogMessage {
                    level: said.level,
                    logger: None,
                    data: None,
                    raw,
                })),
            },
            Heard::Other(method, params) => {
                let params = params.map(|it| clean(&it).unwrap_or(it));
                Heard::Other(method, params)
            }
            it @ (Heard::Progress(..)
            | Heard::Tools
            | Heard::Prompts
            | Heard::Resources
            | Heard::Updated(_)
            | Heard::Fault(_)) => it,
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

/// MCP's eight levels on `tracing`'s (HD-FR027, SK-15): the original one is a field. What has no level is worth knowing.
fn log(message: &LogMessage, dial: &dyn Dial) {
    let LogMessage { level, logger, data, raw: _ } = message;
    let name = level.map_or("unknown", LogLevel::as_str);
    let logger = logger.as_deref().map(|it| dial.redact(it)).unwrap_or_default();
    // A text is told as text, anything else as JSON; both without what the server was given to keep.
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

/// Lets the listener hear one event after another, until the connection is gone.
pub(crate) async fn run(listener: Arc<dyn Listener>, mut waiting: Waiting) {
    while let Some((event, held)) = waiting.0.recv().await {
        // In a task of its own, so that a panic costs one event; it ends with this one.
        let mut hearing = JoinSet::new();
        let listener = Arc::clone(&listener);
        hearing.spawn(async move { listener.on_event(event).await });
        hearing.join_next().await;
        drop(held);
    }
}

impl Held {
    pub(crate) fn new(engine: &Arc<Engine>, message: &Incoming) -> Held {
        Held { engine: Arc::clone(engine), bytes: message.bytes() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.engine.taken(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, params: &str, want: &str) {
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        let got = match Heard::of(method, Some(params)) {
            Heard::Log(LogMessage { level, logger, data, raw: _ }) => {
                let level = level.map_or("none", LogLevel::as_str);
                let data = data.map_or(String::new(), |it| it.as_str().to_owned());
                format!("log {level} {} {data}", logger.unwrap_or_default())
            }
            Heard::Updated(uri) => format!("updated {uri}"),
            Heard::Other(_, params) => format!("other {}", params.unwrap().as_str()),
            other => format!("{other:?}"),
        };
        assert_eq!(got.trim_end(), want);
    }

    #[test]
    fn hd_fr028_notifications_are_read_and_odd_ones_are_kept() {
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

    /// Writes down the level of each event and its fields.
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
            unreachable!("nothing is dialled here")
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
        let got = match of_call(method, &frame.into(), Some(&Keeper)) {
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
    fn hd_sc5_what_a_caller_hears_of_a_server_is_clean() {
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
