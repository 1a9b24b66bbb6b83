//! A request to its result: one file for each family of methods.
//!
//! Nothing here knows a wire. What a method's result must hold in the stateless era is put in here, once for all.

mod completion;
pub(crate) mod initialize;
mod lists;
mod named;
mod prompts;
mod received;
mod resources;
mod tools;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use mcp_host::{DialogId, RequestOptions};
use mcp_model::{Era, RawJson, RpcError, ServerId, code};
use mcp_transport::{
    Handlers, InputHandling, LogMessage, OnProgress, OnServerEvent, Progress, RawRequestHandler, ServerEvent,
};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::gateway::Inner;
use crate::limits::counters::{Counts, Outcome};
use crate::lists::listing::{Kind, Listing};
use crate::notifications::watch;
use crate::protocol::frame::{Notification, Request};
use crate::protocol::params::Params;
use crate::protocol::{json_splice, response};
use crate::session::caller::Caller;
use crate::session::elicitation::{Answers, AskedByResult, AskedInSession, LaidDown};
use crate::session::pending_input::{self, Call, Parked};

/// How long what is listed may be used without asking again, in milliseconds. Whoever subscribes hears of changes
/// sooner.
const LIST_TTL_MS: &str = "5000";

/// A request that is being answered.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send + 'a>>;

/// One request on its way.
pub(crate) struct Asked<'a> {
    pub(crate) gateway: &'a Inner,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a Request,
    /// Where questions are laid down that the client answers by coming back.
    pub(crate) desk: Option<mpsc::Sender<LaidDown>>,
}

impl Inner {
    /// Answers a request of any method but those that begin something (`initialize`, `subscriptions/listen`): gives the
    /// result, a JSON object.
    ///
    /// Boxed, so that whoever spawns it need not know all that is inside.
    pub(crate) fn answer<'a>(&'a self, caller: &'a Caller, request: &'a Request) -> Answering<'a> {
        Box::pin(self.answered(Asked::alone(self, caller, request)))
    }

    /// The same for a client without a session, who cannot be asked: a call that needs input of him answers so, and goes
    /// on when he comes back.
    pub(crate) async fn stateless(
        self: &Arc<Inner>,
        caller: Caller,
        request: Arc<Request>,
    ) -> Result<Bytes, RpcError> {
        let may_ask = matches!(&*request.method, "tools/call" | "prompts/get" | "resources/read");
        if !may_ask {
            return self.answer(&caller, &request).await;
        }
        let wait = self.options.bounds.answer;
        let state = request.params.text("requestState").filter(|it| Parked::is_ours(it));
        let principal = caller.principal.clone();
        if let Some(state) = state {
            let responses = request.params.get("inputResponses");
            let call = self.parked.take(&state, &principal, responses, Instant::now())?;
            return self.parked.go_on(call, &principal, wait).await;
        }
        let answers = caller.able.answers();
        if answers == Answers::default() {
            return self.answer(&caller, &request).await;
        }
        let (desk, laid_down) = pending_input::desk();
        let gateway = Arc::clone(self);
        let work: Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send>> = Box::pin(async move {
            let (gateway, caller, request, desk) = (&*gateway, &caller, &*request, Some(desk));
            gateway.answered(Asked { gateway, caller, request, desk }).await
        });
        self.parked.go_on(Call::begin(work, laid_down), &principal, wait).await
    }

    /// The same, for who keeps it where it is.
    pub(crate) async fn answered(&self, asked: Asked<'_>) -> Result<Bytes, RpcError> {
        let counting = Counting {
            counts: &self.counts,
            method: &asked.request.method,
            begun: Instant::now(),
            outcome: None,
        };
        let answered = self.answered_by(&asked).await;
        counting.end(if answered.is_ok() { Outcome::Success } else { Outcome::Error });
        answered
    }

    async fn answered_by(&self, asked: &Asked<'_>) -> Result<Bytes, RpcError> {
        self.settle().await;
        let method = &*asked.request.method;
        let era = asked.caller.era();
        let result = match (method, era) {
            ("tools/list", _) => return asked.list(Kind::Tools),
            ("prompts/list", _) => return asked.list(Kind::Prompts),
            ("resources/list", _) => return asked.list(Kind::Resources),
            ("resources/templates/list", _) => return asked.list(Kind::Templates),
            ("server/discover", Era::Modern) => {
                return Ok(initialize::discovered(self, &asked.caller.scope).into_bytes());
            }
            ("tools/call", _) => asked.call_tool().await?,
            ("prompts/get", _) => asked.get_prompt().await?,
            ("resources/read", _) => asked.read_resource().await?,
            ("completion/complete", _) => asked.complete().await?,
            ("ping", Era::Legacy) => RawJson::empty_object(),
            ("logging/setLevel", Era::Legacy) => asked.set_log_level().await?,
            ("resources/subscribe", Era::Legacy) => asked.subscribe().await?,
            ("resources/unsubscribe", Era::Legacy) => asked.unsubscribe().await?,
            _ => return Err(unknown(method)),
        };
        let mut lacking = vec![("resultType", r#""complete""#)];
        if method == "resources/read" && !is_input_required(&result) {
            lacking.extend([("ttlMs", "0"), ("cacheScope", r#""private""#)]);
        }
        Ok(match era {
            Era::Modern => json_splice::completed(&result, &lacking),
            Era::Legacy => result.into_bytes(),
        })
    }

    /// Takes in what a client says without wanting an answer. Most of it is for the wire, which knows the requests.
    pub(crate) fn hear(&self, caller: &Caller, notification: &Notification) {
        let Some(session) = &caller.session else { return };
        match &*notification.method {
            "notifications/cancelled" => {
                if let Some(id) = cancelled(&notification.params) {
                    session.running.take_back(id);
                }
            }
            _ => tracing::debug!(method = &*notification.method, "a notification that means nothing here"),
        }
    }
}

/// The request that a client takes back.
pub(crate) fn cancelled(params: &Params) -> Option<&RawJson> {
    params.get("requestId")
}

/// Counts a request when it ends, also when nobody waits for it any more.
struct Counting<'a> {
    counts: &'a Counts,
    method: &'a str,
    begun: Instant,
    outcome: Option<Outcome>,
}

impl Counting<'_> {
    fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        let outcome = self.outcome.unwrap_or(Outcome::Cancelled);
        self.counts.ended(self.method, outcome, self.begun.elapsed());
    }
}

/// There is no such method.
pub(crate) fn unknown(method: &str) -> RpcError {
    let method: String = method.chars().filter(|it| !it.is_control()).take(80).collect();
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
}

fn is_input_required(result: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, rename = "resultType")]
        kind: Option<Cow<'a, str>>,
    }
    memchr::memmem::find(result.as_bytes(), b"input_required").is_some()
        && result.read::<Wire<'_>>().ok().and_then(|it| it.kind).is_some_and(|it| it == "input_required")
}

impl<'a> Asked<'a> {
    /// One whose questions find the client, or nobody.
    pub(crate) fn alone(gateway: &'a Inner, caller: &'a Caller, request: &'a Request) -> Asked<'a> {
        Asked { gateway, caller, request, desk: None }
    }
}

impl Asked<'_> {
    /// The parameter of this name, which must be a text.
    fn text(&self, name: &str) -> Result<Cow<'_, str>, RpcError> {
        self.request.params.text(name).ok_or_else(|| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameter `{name}` must be a string"))
        })
    }

    /// The lists that the client sees.
    fn listing(&self) -> Arc<Listing> {
        self.gateway.listing(&self.caller.scope)
    }

    /// How something besides a tool is asked for by `name`, and with which other members of its parameters.
    fn asking(&self, server: Option<ServerId>, name: &str, own: &[&str]) -> Result<RequestOptions, RpcError> {
        Ok(RequestOptions {
            dialog: self.dialog(),
            progress: self.progress(),
            trace: self.request.meta.trace.clone(),
            caller: Some(self.upstream_caller()),
            meta: self.request.meta.raw.clone(),
            extra_params: self.more(server.as_ref(), name, own)?,
            input: self.input(),
            server,
            ..RequestOptions::default()
        })
    }

    /// Members of the parameters that are the server's to understand: all but `own`, and the answers to what it asked for
    /// where it asked.
    fn more(&self, server: Option<&ServerId>, name: &str, own: &[&str]) -> Result<Option<RawJson>, RpcError> {
        // Only a server of the era without sessions has asked for input, and only its own client answers that.
        let may_answer = self.caller.era() == Era::Modern
            && self.may_need_input()
            && server.is_none_or(|it| self.gateway.era(it) != Some(Era::Legacy));
        let state = match self.request.params.get("requestState") {
            // What is made up is not handed on, and nothing is begun for it.
            Some(it) if self.caller.era() == Era::Modern => {
                let given = it.to_text().filter(|_| may_answer);
                Some(given.and_then(|it| self.opened(server, name, &it)).ok_or_else(pending_input::unknown)?)
            }
            // A member like any other that means nothing.
            Some(_) | None => None,
        };
        let answers = may_answer && (server.is_some() || state.is_some());
        let mut more = Vec::new();
        for (key, value) in self.request.params.iter() {
            let value = match key {
                "_meta" => continue,
                key if own.contains(&key) => continue,
                "requestState" => match &state {
                    Some(state) => Cow::Owned(response::text(state)),
                    None => continue,
                },
                "inputResponses" if !answers => continue,
                _ => Cow::Borrowed(value.as_str()),
            };
            more.push(format!("{}:{value}", response::text(key)));
        }
        if more.is_empty() {
            return Ok(None);
        }
        let object = format!("{{{}}}", more.join(","));
        Ok(Some(RawJson::parse(object.into()).expect("members make an object")))
    }

    /// The state that a server gave, out of what this client was given for it.
    fn opened(&self, server: Option<&ServerId>, name: &str, given: &str) -> Option<String> {
        let open = |it: &ServerId| self.gateway.seal.open(&self.sealed(it, name), given).map(str::to_owned);
        match server {
            Some(server) => open(server),
            // The host finds out whose it is; it can only be one that gave it.
            None => {
                let published = self.gateway.published();
                published
                    .servers
                    .iter()
                    .filter_map(|it| ServerId::parse(&it.id).ok())
                    .find_map(|it| open(&it))
            }
        }
    }

    /// Who answers that a server needs input before it has a result: a client without sessions does so himself.
    fn input(&self) -> InputHandling {
        match self.caller.era() {
            Era::Legacy => InputHandling::ByHandlers,
            Era::Modern => InputHandling::ReturnToCaller,
        }
    }

    /// The client as servers see him.
    fn upstream_caller(&self) -> Arc<mcp_transport::Caller> {
        let Caller { able, outlet, session, owner, .. } = self.caller;
        let answers = able.answers();
        let limit = self.gateway.options.bounds.answer;
        let questions: Option<Arc<dyn RawRequestHandler>> = match (session, &self.desk) {
            (Some(session), _) => {
                let (session, outlet) = (Arc::clone(session), outlet.clone());
                Some(Arc::new(AskedInSession { answers, session, outlet, limit }))
            }
            (None, Some(desk)) => Some(Arc::new(AskedByResult { answers, desk: desk.clone(), limit })),
            (None, None) => None,
        };
        let handlers = Handlers { raw_requests: questions, ..Handlers::default() };
        let mut res = mcp_transport::Caller::new(*owner, handlers);
        res.max_deadline_pause = limit;
        res.on_event = Some(self.hears());
        res.capabilities = able.told();
        Arc::new(res)
    }

    /// Tells the client what servers say while his request runs.
    fn hears(&self) -> OnServerEvent {
        let from = self.caller.log_level(&self.request.meta);
        let (outlet, session) = (self.caller.outlet.clone(), self.caller.session.clone());
        Arc::new(move |event| {
            let message = match event {
                ServerEvent::Log(LogMessage { level, raw, .. }) => {
                    // In the era with sessions the level may have been said since.
                    let from = session.as_ref().and_then(|it| it.log_level()).or(from);
                    let loud = from.is_some_and(|from| level.is_none_or(|it| it >= from));
                    loud.then(|| response::notification("notifications/message", raw.as_str()))
                }
                ServerEvent::Notification { method, params } => {
                    let params = params.unwrap_or_else(RawJson::empty_object);
                    let passes = watch::passes(&method, &params);
                    passes.then(|| response::notification(&method, params.as_str()))
                }
                // Progress has a way of its own; lists and resources are told by generations and subscriptions.
                _ => None,
            };
            if let Some(message) = message {
                // Who does not read misses what is said.
                let _ = outlet.send(message);
            }
        })
    }

    fn dialog(&self) -> Option<DialogId> {
        self.caller.dialog_id()
    }

    /// Tells the client of progress, under his own token, if he wants to hear.
    fn progress(&self) -> Option<OnProgress> {
        let token = self.request.meta.progress_token.clone()?;
        let outlet = self.caller.outlet.clone();
        Some(Arc::new(move |it: Progress| {
            let Progress { progress, total, message } = it;
            let mut params = format!(r#"{{"progressToken":{},"progress":{progress}"#, token.as_str());
            if let Some(total) = total {
                params.push_str(&format!(r#","total":{total}"#));
            }
            if let Some(message) = message {
                params.push_str(&format!(r#","message":{}"#, response::text(&message)));
            }
            params.push('}');
            // Who does not read what he asked for misses it.
            let _ = outlet.send(response::notification("notifications/progress", &params));
        }))
    }
}
