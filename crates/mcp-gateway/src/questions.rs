//! What servers ask while a call runs, on its way to the client whose call it is.
//!
//! In the era with sessions the client is asked on the call's own way. In the one without nobody may ask him: the
//! question is laid down beside the call, which then answers that it needs input ([`crate::parked`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_model::{RawJson, RpcError, code};
use mcp_transport::{Questions, RawQuestion};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::outlet::Outlet;
use crate::session::Session;

/// What a client says that he answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answers {
    sampling: bool,
    elicitation: bool,
    roots: bool,
}

impl Answers {
    /// Reads it out of his capabilities.
    pub(crate) fn of(capabilities: &RawJson) -> Answers {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            sampling: Option<&'a RawValue>,
            #[serde(borrow)]
            elicitation: Option<&'a RawValue>,
            #[serde(borrow)]
            roots: Option<&'a RawValue>,
        }
        let Ok(Wire { sampling, elicitation, roots }) = capabilities.read() else {
            return Answers::default();
        };
        Answers { sampling: sampling.is_some(), elicitation: elicitation.is_some(), roots: roots.is_some() }
    }

    fn takes(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => self.elicitation,
            "roots/list" => self.roots,
            _ => false,
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
impl Questions for AskedInSession {
    fn takes(&self, method: &str) -> bool {
        self.answers.takes(method)
    }

    async fn answer(&self, question: RawQuestion) -> Result<RawJson, RpcError> {
        let RawQuestion { method, params } = question;
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
    pub(crate) question: RawQuestion,
    pub(crate) answer: oneshot::Sender<RawJson>,
}

/// A client without a session is told with his call's result.
pub(crate) struct AskedByResult {
    pub(crate) answers: Answers,
    pub(crate) desk: mpsc::Sender<LaidDown>,
    pub(crate) limit: Duration,
}

#[async_trait]
impl Questions for AskedByResult {
    fn takes(&self, method: &str) -> bool {
        self.answers.takes(method)
    }

    async fn answer(&self, question: RawQuestion) -> Result<RawJson, RpcError> {
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
    }
}
