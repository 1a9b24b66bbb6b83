//! Who a call is made for, where one session serves several: who answers for its caller, and what of that its server is told.
//!
//! A question must never reach somebody whose call it is not about. So whoever calls says whose calls are the same
//! client's ([`CallerId`]), and nothing here ever takes one owner for another.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_model::RawJson;
use serde_json::json;

use super::params::{Members, Name};
use super::{ElicitMode, Handlers, ServerEvent};
use crate::rpc::frame;

/// Whose a call is: one for each client. Where a wire does not say which call a question is about, calls of one owner
/// may answer for each other; those of two never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerId(u64);

impl CallerId {
    /// An owner that is no other one, for as long as the process lives.
    pub fn unique() -> CallerId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        CallerId(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Hears what a server says because of a call, in the order in which it came and before the call has its result. Called on
/// the task that reads the wire: it must not wait, and not panic.
pub type OnServerEvent = Arc<dyn Fn(ServerEvent) + Send + Sync>;

/// Who a call is made for. It may be another one for each call, with the same owner.
#[derive(Clone)]
pub struct Caller {
    /// Whose the call is.
    pub id: CallerId,
    /// Who answers what the server asks because of the call. A part that is not there is the session's own. The listener
    /// is not used: see `hears`.
    pub handlers: Handlers,
    /// Hears log messages and notifications that this version does not know which come because of the call.
    pub on_event: Option<OnServerEvent>,
    /// What the server is told that the caller can do; where `None`, that follows from the handlers.
    pub capabilities: Option<ClientCapabilities>,
    /// How long in all questions about a call that are with the caller may keep its absolute deadline from running: people
    /// take their time, and it is not the server's. Zero: not at all.
    pub max_deadline_pause: Duration,
}

impl Caller {
    /// A caller whose capabilities follow from these handlers, and without patience.
    pub fn new(owner: CallerId, handlers: Handlers) -> Caller {
        Caller { id: owner, handlers, on_event: None, capabilities: None, max_deadline_pause: Duration::ZERO }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("owner", &self.id).finish_non_exhaustive()
    }
}

/// What a client says that it can do. Invariant: a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCapabilities(RawJson);

impl ClientCapabilities {
    /// These; `None` where they are no object.
    pub fn new(json: RawJson) -> Option<ClientCapabilities> {
        json.read::<Members<'_>>().is_ok().then_some(ClientCapabilities(json))
    }

    /// What these handlers can do.
    pub fn from_handlers(handlers: &Handlers) -> ClientCapabilities {
        let members = format!("{{{}}}", Abilities::of(handlers).members().join(","));
        ClientCapabilities(RawJson::parse(members.into()).expect("it was put together from JSON"))
    }

    /// As JSON.
    pub fn json(&self) -> &RawJson {
        &self.0
    }

    /// The members, with a configuration for the server (a JSON text) among the experimental ones.
    pub(crate) fn members(&self, config: Option<&str>) -> Vec<String> {
        let Members(members) = self.0.read().expect("that was looked at before it became one");
        let Some(config) = config else {
            return members.iter().map(|(Name(name), it)| member(name, it.get())).collect();
        };
        let mut experimental = Vec::new();
        let mut res = Vec::new();
        for (Name(name), value) in members {
            match (&*name, serde_json::from_str::<Members<'_>>(value.get())) {
                ("experimental", Ok(Members(inner))) => {
                    let others = inner.iter().filter(|(Name(name), _)| name != "config");
                    experimental.extend(others.map(|(Name(name), it)| member(name, it.get())));
                }
                _ => res.push(member(&name, value.get())),
            }
        }
        experimental.push(member("config", config));
        res.push(format!("\"experimental\":{{{}}}", experimental.join(",")));
        res
    }
}

/// What can be asked of somebody, and how.
#[derive(Default)]
pub(crate) struct Abilities {
    sampling: bool,
    elicitation: Option<BTreeSet<&'static str>>,
    roots: bool,
}

impl Abilities {
    /// What these handlers can do.
    pub(crate) fn of(handlers: &Handlers) -> Abilities {
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests: questions } = handlers;
        let takes = |method: &str| questions.as_ref().is_some_and(|it| it.handles(method));
        let name = |it: &ElicitMode| match it {
            ElicitMode::Form => "form",
            ElicitMode::Url => "url",
        };
        let modes = elicitation.as_ref().map(|it| it.modes().iter().map(name).collect());
        Abilities {
            sampling: sampling.is_some() || takes("sampling/createMessage"),
            elicitation: match takes("elicitation/create") {
                true => Some(modes.unwrap_or_else(|| BTreeSet::from(["form"]))),
                false => modes,
            },
            roots: roots.is_some() || takes("roots/list"),
        }
    }

    /// These, and where they have nothing those.
    pub(crate) fn or(self, other: Abilities) -> Abilities {
        Abilities {
            sampling: self.sampling || other.sampling,
            elicitation: self.elicitation.or(other.elicitation),
            roots: self.roots || other.roots,
        }
    }

    /// As capabilities, members of an object.
    pub(crate) fn members(&self) -> Vec<String> {
        let Abilities { sampling, elicitation, roots } = self;
        let mut res = Vec::new();
        if *sampling {
            res.push(r#""sampling":{}"#.to_owned());
        }
        if let Some(modes) = elicitation {
            let modes: serde_json::Map<_, _> = modes.iter().map(|it| ((*it).to_owned(), json!({}))).collect();
            res.push(format!(r#""elicitation":{}"#, serde_json::Value::Object(modes)));
        }
        if *roots {
            res.push(r#""roots":{"listChanged":true}"#.to_owned());
        }
        res
    }
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", frame::text(name))
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
    fn nobody_is_somebody_else() {
        assert_ne!(CallerId::unique(), CallerId::unique());
    }
}
