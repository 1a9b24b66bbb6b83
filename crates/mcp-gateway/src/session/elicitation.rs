//! What servers ask while a call runs, on its way to the client whose call it is.
//!
//! In the era with sessions the client is asked on the call's own way. In the one without nobody may ask him: the
//! question is laid down beside the call, which then answers that it needs input ([`crate::session::pending_input`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::{RawRequestHandler, RawServerRequest};
use tokio::sync::{mpsc, oneshot};

use crate::protocol::json_splice;
use crate::session::outbound_queue::Outlet;
use crate::session::state::Session;

/// What a client says that he answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answers {
    sampling: Option<Sampling>,
    elicitation: Option<Modes>,
    roots: bool,
}

/// How far a client samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampling {
    Plain,
    WithTools,
}

/// In which ways a client lets its user be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modes {
    Form,
    Url,
    Both,
}

impl Answers {
    /// Reads it out of his capabilities. What is no object there is as good as not there.
    pub(crate) fn of(capabilities: &RawJson) -> Answers {
        let members = json_splice::members(capabilities);
        let declared = |key: &str| members.iter().find(|(name, it)| name == key && it.is_object());
        let within = |of: &RawJson, key: &str| {
            json_splice::members(of).iter().any(|(name, it)| name == key && it.is_object())
        };
        let sampling = declared("sampling").map(|(_, it)| match within(it, "tools") {
            true => Sampling::WithTools,
            false => Sampling::Plain,
        });
        let elicitation =
            declared("elicitation").map(|(_, it)| match (within(it, "form"), within(it, "url")) {
                (true, true) => Modes::Both,
                (false, true) => Modes::Url,
                // Before there were modes there was the form.
                (true | false, false) => Modes::Form,
            });
        Answers { sampling, elicitation, roots: declared("roots").is_some() }
    }

    fn takes(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling.is_some(),
            "elicitation/create" => self.elicitation.is_some(),
            "roots/list" => self.roots,
            _ => false,
        }
    }

    /// Looks whether he may be asked this, and in this way: what he never said he can do he is not asked for.
    pub(crate) fn admit(self, method: &str, params: &RawJson) -> Result<(), RpcError> {
        let refused = |what: &str| Err(RpcError::new(code::INVALID_PARAMS, what));
        if !self.takes(method) {
            return refused("the client does not say that it answers this");
        }
        let Some(members) = json_splice::ordered(params) else {
            return refused("`params` must be a JSON object");
        };
        let all = |key: &'static str| members.iter().filter(move |(name, _)| name == key).map(|(_, it)| it);
        match method {
            "elicitation/create" => {
                // What stands there twice is read differently by different readers.
                if all("mode").nth(1).is_some() {
                    return refused("`mode` stands there twice");
                }
                let mode = match all("mode").next() {
                    None => Some("form".into()),
                    Some(it) => it.to_text(),
                };
                match (mode.as_deref(), self.elicitation) {
                    (Some("form"), Some(Modes::Form | Modes::Both))
                    | (Some("url"), Some(Modes::Url | Modes::Both)) => Ok(()),
                    _ => refused("the client does not say that it elicits in this mode"),
                }
            }
            "sampling/createMessage" => {
                let mut tools = all("tools").chain(all("toolChoice"));
                match tools.next().is_some() && self.sampling != Some(Sampling::WithTools) {
                    true => refused("the client does not say that it samples with tools"),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A client with a session is asked at once.
pub(crate) struct AskedInSession {
    pub(crate) answers: Answers,
    pub(crate) session: Arc<Session>,
    pub(crate) outlet: Outlet,
    pub(crate) limit: Duration,
}

#[async_trait]
impl RawRequestHandler for AskedInSession {
    fn handles(&self, method: &str) -> bool {
        self.answers.takes(method)
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        let RawServerRequest { method, params } = question;
        self.answers.admit(&method, &params)?;
        // A stream of the call's own that nobody reads any more: the session's may still be heard.
        let outlet = match self.outlet.is_closed() {
            true => self.session.general().unwrap_or_else(|| self.outlet.clone()),
            false => self.outlet.clone(),
        };
        self.session.asked.ask(&outlet, &method, params.as_str(), self.limit).await
    }
}

/// A question that waits for a client to come back with its answer.
#[derive(Debug)]
pub(crate) struct LaidDown {
    pub(crate) question: RawServerRequest,
    pub(crate) answer: oneshot::Sender<RawJson>,
}

/// A client without a session is told with his call's result.
pub(crate) struct AskedByResult {
    pub(crate) answers: Answers,
    pub(crate) desk: mpsc::Sender<LaidDown>,
    pub(crate) limit: Duration,
}

#[async_trait]
impl RawRequestHandler for AskedByResult {
    fn handles(&self, method: &str) -> bool {
        self.answers.takes(method)
    }

    async fn handle(&self, question: RawServerRequest) -> Result<RawJson, RpcError> {
        self.answers.admit(&question.method, &question.params)?;
        let (answer, taken) = oneshot::channel();
        let failed = |message: &str| RpcError::new(code::INTERNAL_ERROR, message);
        let laid = self.desk.try_send(LaidDown { question, answer });
        laid.map_err(|_| failed("the client has too many questions to answer"))?;
        match tokio::time::timeout(self.limit, taken).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(failed("the client did not come back with an answer")),
            Err(_) => Err(failed("the client did not come back with an answer in time")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: &str, want: &[&str]) {
        let answers = Answers::of(&RawJson::parse(capabilities.to_owned().into()).unwrap());
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get"];
        let got: Vec<&str> = methods.into_iter().filter(|it| answers.takes(it)).collect();
        assert_eq!(got, want, "{capabilities}");
    }

    #[test]
    fn a_client_is_asked_for_what_he_says_he_answers() {
        check("{}", &[]);
        check(r#"{"sampling":{},"roots":{"listChanged":true}}"#, &["sampling/createMessage", "roots/list"]);
        check(r#"{"elicitation":{"form":{}}}"#, &["elicitation/create"]);
        check("[]", &[]);
        check(r#"{"sampling":null,"elicitation":true,"roots":[]}"#, &[]);
    }

    #[track_caller]
    fn check_admitted(capabilities: &str, method: &str, params: &str, want: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
        let got = Answers::of(&json(capabilities)).admit(method, &json(params));
        assert_eq!(got.map_or_else(|it| it.message, |()| "fine".to_owned()), want, "{capabilities} {params}");
    }

    #[test]
    fn a_client_is_asked_in_the_ways_that_he_declares_and_in_no_other() {
        let (ask, sample) = ("elicitation/create", "sampling/createMessage");
        let no_mode = "the client does not say that it elicits in this mode";
        for (capabilities, form, url) in [
            (r#"{"elicitation":{}}"#, "fine", no_mode),
            (r#"{"elicitation":{"form":{}}}"#, "fine", no_mode),
            (r#"{"elicitation":{"url":{}}}"#, no_mode, "fine"),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, "fine", "fine"),
        ] {
            check_admitted(capabilities, ask, r#"{"message":"?"}"#, form);
            check_admitted(capabilities, ask, r#"{"mode":"form"}"#, form);
            check_admitted(capabilities, ask, r#"{"mode":"url","url":"https://a"}"#, url);
            check_admitted(capabilities, ask, r#"{"mode":"later"}"#, no_mode);
            check_admitted(capabilities, ask, r#"{"mode":7}"#, no_mode);
            check_admitted(
                capabilities,
                ask,
                r#"{"mode":"form","\u006dode":"url"}"#,
                "`mode` stands there twice",
            );
        }
        let plain = r#"{"sampling":{}}"#;
        let no_tools = "the client does not say that it samples with tools";
        check_admitted(plain, sample, r#"{"messages":[]}"#, "fine");
        check_admitted(plain, sample, r#"{"tools":[]}"#, no_tools);
        check_admitted(plain, sample, r#"{"toolChoice":{}}"#, no_tools);
        check_admitted(plain, sample, "[1]", "`params` must be a JSON object");
        check_admitted(r#"{"sampling":{"tools":{}}}"#, sample, r#"{"tools":[]}"#, "fine");
        check_admitted(plain, "roots/list", "{}", "the client does not say that it answers this");
        check_admitted(r#"{"roots":{}}"#, "roots/list", "{}", "fine");
    }
}
