//! A server's question to its answer, by whoever is there to give one.
//!
//! The same way leads here from a request of an older server and from a result that asks for input. How many are
//! answered at once is bounded for both together, and so is an answer's size.

use std::fmt::Display;
use std::sync::Arc;

use mcp_model::{RawJson, RpcError, code};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::server_request::{ElicitRequest, Root, SamplingRequest};
use super::{Handlers, RawServerRequest};
use crate::rpc::request_owner::Whose;

/// How many of a server's questions are answered at once.
const MOST_AT_ONCE: usize = 64;

/// The handlers of one session.
pub(crate) struct Answering {
    handlers: Handlers,
    places: Arc<Semaphore>,
    most_bytes: usize,
}

impl Answering {
    /// Answers hold at most `most_bytes` bytes.
    pub(crate) fn new(handlers: Handlers, most_bytes: usize) -> Answering {
        Answering { handlers, places: Arc::new(Semaphore::new(MOST_AT_ONCE)), most_bytes }
    }

    /// A place for one more answer, if there is one now.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for a place. Cancel-safe.
    pub(crate) async fn wait_for_place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("it is never closed")
    }

    /// Whether somebody is there to answer `method` about a call of `whose`.
    pub(crate) fn answers(&self, whose: &Whose, method: &str) -> bool {
        self.handlers(whose, method).is_some()
    }

    /// Who answers it: the caller, where it is known and he can, else whoever has the session. Never another caller.
    fn handlers<'a>(&'a self, whose: &'a Whose, method: &str) -> Option<&'a Handlers> {
        let own = whose.caller().map(|it| &it.handlers);
        own.into_iter().chain([&self.handlers]).find(|it| it.answer(method))
    }

    /// Answers. Whoever calls holds a place. Dropping the future takes the question back.
    pub(crate) async fn answer(
        &self,
        whose: &Whose,
        method: &str,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let Some(handlers) = self.handlers(whose, method) else { return Err(refusal(whose, method)) };
        let params = params.unwrap_or_else(RawJson::empty_object);
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests: questions } = handlers;
        let raw = questions.as_ref().filter(|it| it.handles(method));
        let answer = match (raw, method, sampling, elicitation, roots) {
            (Some(it), ..) => it.handle(RawServerRequest { method: method.to_owned(), params }).await?,
            (None, "sampling/createMessage", Some(it), _, _) => {
                RawJson::from_value(&it.sample(SamplingRequest::read(params)?).await?)
                    .map_err(|it| unwritable(&it))?
            }
            (None, "elicitation/create", _, Some(it), _) => {
                let request = ElicitRequest::read(params)?;
                if !it.modes().contains(&request.mode()) {
                    let message = "the user cannot be asked in this way";
                    return Err(RpcError::new(code::INVALID_PARAMS, message));
                }
                it.elicit(request).await?.to_json()
            }
            (None, "roots/list", _, _, Some(it)) => {
                #[derive(Serialize)]
                struct Wire {
                    roots: Vec<Root>,
                }
                RawJson::from_value(&Wire { roots: it.roots().await? }).map_err(|it| unwritable(&it))?
            }
            (None, ..) => return Err(refusal(whose, method)),
        };
        if answer.as_bytes().len() > self.most_bytes {
            let message = format!("the answer has more than {} bytes", self.most_bytes);
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        Ok(answer)
    }
}

impl Handlers {
    /// Whether somebody is there to answer `method`.
    fn answer(&self, method: &str) -> bool {
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests: questions } = self;
        questions.as_ref().is_some_and(|it| it.handles(method))
            || match method {
                "sampling/createMessage" => sampling.is_some(),
                "elicitation/create" => elicitation.is_some(),
                "roots/list" => roots.is_some(),
                _ => false,
            }
    }
}

/// What a server is told that nobody answers.
fn refusal(whose: &Whose, method: &str) -> RpcError {
    let is_known = matches!(method, "sampling/createMessage" | "elicitation/create" | "roots/list");
    match whose {
        Whose::Several if is_known => RpcError::new(
            code::INTERNAL_ERROR,
            format!(
                "{method} is refused: several callers share this connection, and nothing says whose call it is about. A \
                 server that asks its callers something needs an instance for each of them (`truely-stateless: false`)"
            ),
        ),
        Whose::Over if is_known => RpcError::new(
            code::INTERNAL_ERROR,
            format!("{method} is refused: the call that it is about is over"),
        ),
        Whose::Session | Whose::Caller(_) | Whose::Several | Whose::Over
            if method == "sampling/createMessage" =>
        {
            RpcError::new(code::INTERNAL_ERROR, "Sampling denied: no handler is configured")
        }
        Whose::Session | Whose::Caller(_) | Whose::Several | Whose::Over => {
            RpcError::new(code::METHOD_NOT_FOUND, "Method not found")
        }
    }
}

fn unwritable(why: &dyn Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, format!("the handler's answer is no JSON: {why}"))
}
