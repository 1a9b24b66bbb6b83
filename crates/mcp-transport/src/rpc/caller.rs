//! The caller of a call, for sessions that serve several callers: its handlers and its declared capabilities.
//!
//! A server request must never reach a caller that it does not belong to. So each client has a [`CallerId`], and a
//! request that belongs to a call of one id never reaches another id.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_host_model::{Method, RawJson};
use serde_json::json;

use crate::rpc::frame;
use crate::rpc::handlers::{Handlers, ServerEvent};
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::rpc::server_request::ElicitMode;

/// Identifies the client that makes calls. Some connections do not show which call a server request belongs to. The
/// request may then reach another call of the same client, but never one of another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerId(u64);

impl CallerId {
    /// Returns an id that is unique in this process.
    pub fn unique() -> CallerId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        CallerId(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Callback for events that belong to a call, in order and before the call's result. Runs on the task that reads the
/// connection; it must not block or panic.
pub type OnServerEvent = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// The caller of a call. Callers with the same id may have different handlers and capabilities.
#[derive(Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The caller's id.
    pub id: CallerId,
    /// Handlers for server requests that belong to the call. For other methods the session's handlers are used. The
    /// listener is ignored; see `on_event`.
    pub handlers: Handlers,
    /// Receives log messages and unknown notifications that belong to the call.
    pub on_event: Option<OnServerEvent>,
    /// The capabilities that the server receives; `None` derives them from the handlers.
    pub capabilities: Option<ClientCapabilities>,
    /// The maximum time in total for which open server requests pause the absolute deadline of a call, because a user
    /// may need longer to answer than a call may take. Zero: they do not pause it.
    pub max_deadline_pause: Duration,
}

impl Caller {
    /// A caller whose capabilities are derived from its handlers and whose deadlines are not paused.
    pub fn new(id: CallerId, handlers: Handlers) -> Caller {
        Caller { id, handlers, on_event: None, capabilities: None, max_deadline_pause: Duration::ZERO }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Client capabilities. Invariant: a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCapabilities(RawJson);

impl ClientCapabilities {
    /// `None` if `json` is not an object.
    pub fn new(json: RawJson) -> Option<ClientCapabilities> {
        json.read::<ObjectMembers<'_>>().is_ok().then_some(ClientCapabilities(json))
    }

    /// The capabilities of these handlers.
    pub fn from_handlers(handlers: &Handlers) -> ClientCapabilities {
        let members = format!("{{{}}}", capability_members(&[handlers]).join(","));
        ClientCapabilities(RawJson::parse(members.into()).expect("it is built from JSON"))
    }

    /// These capabilities without the one of this name.
    pub fn without(&self, name: &str) -> ClientCapabilities {
        let ObjectMembers(members) = self.0.read().expect("it was validated at construction");
        let others = members.iter().filter(|(MemberName(it), _)| it != name);
        let others: Vec<String> = others.map(|(MemberName(name), it)| json_member(name, it.get())).collect();
        ClientCapabilities(
            RawJson::parse(format!("{{{}}}", others.join(",")).into()).expect("it is built from JSON"),
        )
    }

    /// The JSON object.
    pub fn json(&self) -> &RawJson {
        &self.0
    }

    /// The members as JSON text. The configuration for the server (JSON text) becomes `experimental.config`.
    pub(crate) fn members(&self, server_config: Option<&str>) -> Vec<String> {
        let ObjectMembers(members) = self.0.read().expect("it was validated at construction");
        let Some(server_config) = server_config else {
            return members.iter().map(|(MemberName(name), it)| json_member(name, it.get())).collect();
        };
        let mut experimental = Vec::new();
        let mut members_text = Vec::new();
        for (MemberName(name), value) in members {
            match (&*name, serde_json::from_str::<ObjectMembers<'_>>(value.get())) {
                ("experimental", Ok(ObjectMembers(inner))) => {
                    let others = inner.iter().filter(|(MemberName(name), _)| name != "config");
                    experimental.extend(others.map(|(MemberName(name), it)| json_member(name, it.get())));
                }
                _ => members_text.push(json_member(&name, value.get())),
            }
        }
        experimental.push(json_member("config", server_config));
        members_text.push(format!("\"experimental\":{{{}}}", experimental.join(",")));
        members_text
    }
}

/// The members of the capabilities for which one of these handlers exists, as JSON text.
pub(crate) fn capability_members(handlers: &[&Handlers]) -> Vec<String> {
    let handles = |method: Method| handlers.iter().any(|it| it.handles(&method.into()));
    let mut members = Vec::new();
    if handles(Method::CreateMessage) {
        members.push(r#""sampling":{}"#.to_owned());
    }
    if let Some(modes) = handlers.iter().find_map(|it| elicitation_modes(it)) {
        members.push(format!(r#""elicitation":{}"#, serde_json::Value::Object(modes)));
    }
    if handles(Method::ListRoots) {
        members.push(r#""roots":{"listChanged":true}"#.to_owned());
    }
    members
}

/// The supported modes of elicitation, as JSON members; `None` without a handler.
fn elicitation_modes(handlers: &Handlers) -> Option<serde_json::Map<String, serde_json::Value>> {
    let modes: &[ElicitMode] = match &handlers.elicitation {
        Some(elicitation) => elicitation.modes(),
        None if handlers.handles(&Method::Elicit.into()) => &[ElicitMode::Form],
        None => return None,
    };
    let name = |mode: &ElicitMode| match mode {
        ElicitMode::Form => "form".to_owned(),
        ElicitMode::Url => "url".to_owned(),
    };
    Some(modes.iter().map(|it| (name(it), json!({}))).collect())
}

/// A member of an object, as JSON text. `value` is JSON text.
pub(crate) fn json_member(name: &str, value: &str) -> String {
    format!("{}:{value}", frame::json_string(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn capabilities_are_an_object_and_keep_their_bytes() {
        assert_eq!(ClientCapabilities::new(json("[1]")), None);
        let check = |text: &str, config: Option<&str>, want: &str| {
            let members = ClientCapabilities::new(json(text)).unwrap().members(config);
            assert_eq!(members.join(","), want, "{text}");
        };
        check(r#"{"sampling":{ "tools":{}},"x":1e2}"#, None, r#""sampling":{ "tools":{}},"x":1e2"#);
        check(r#"{"roots":{}}"#, Some("7"), r#""roots":{},"experimental":{"config":7}"#);
        check(r#"{"experimental":{"a":1,"config":2}}"#, Some("7"), r#""experimental":{"a":1,"config":7}"#);
        check("{}", None, "");
    }

    #[test]
    fn caller_ids_are_unique() {
        assert_ne!(CallerId::unique(), CallerId::unique());
    }
}
