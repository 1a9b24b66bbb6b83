//! A server's question to its answer, by whoever is there to give one.
//!
//! The same way leads here from a request of an older server and from a result that asks for input. How many are
//! answered at once is bounded for both together, and so is an answer's size.

use std::fmt::Display;
use std::sync::Arc;

use mcp_model::{RawJson, RpcError, code};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::asked::{ElicitRequest, Root, SamplingRequest};
use super::{ElicitMode, Handlers};

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

    /// Whether somebody is there to answer `method`.
    pub(crate) fn answers(&self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.handlers.sampling.is_some(),
            "elicitation/create" => self.handlers.elicitation.is_some(),
            "roots/list" => self.handlers.roots.is_some(),
            _ => false,
        }
    }

    /// Answers. Whoever calls holds a place. Dropping the future takes the question back.
    pub(crate) async fn answer(&self, method: &str, params: Option<RawJson>) -> Result<RawJson, RpcError> {
        let Handlers { sampling, elicitation, roots, listener: _ } = &self.handlers;
        let params = params.unwrap_or_else(RawJson::empty_object);
        let answer = match (method, sampling, elicitation, roots) {
            ("sampling/createMessage", Some(it), _, _) => {
                RawJson::of(&it.sample(SamplingRequest::read(params)?).await?)
                    .map_err(|it| unwritable(&it))?
            }
            ("sampling/createMessage", None, _, _) => {
                let message = "Sampling denied: no handler is configured";
                return Err(RpcError::new(code::INTERNAL_ERROR, message));
            }
            ("elicitation/create", _, Some(it), _) => {
                let request = ElicitRequest::read(params)?;
                if !it.modes().contains(&request.mode()) {
                    let message = "the user cannot be asked in this way";
                    return Err(RpcError::new(code::INVALID_PARAMS, message));
                }
                it.elicit(request).await?.to_json()
            }
            ("roots/list", _, _, Some(it)) => {
                #[derive(Serialize)]
                struct Wire {
                    roots: Vec<Root>,
                }
                RawJson::of(&Wire { roots: it.roots().await? }).map_err(|it| unwritable(&it))?
            }
            _ => return Err(RpcError::new(code::METHOD_NOT_FOUND, "Method not found")),
        };
        if answer.as_bytes().len() > self.most_bytes {
            let message = format!("the answer has more than {} bytes", self.most_bytes);
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        Ok(answer)
    }
}

impl Handlers {
    /// The capabilities that follow from what is there, as members of an object.
    pub(crate) fn capabilities(&self) -> Vec<String> {
        let Handlers { sampling, elicitation, roots, listener: _ } = self;
        let mut res = Vec::new();
        if sampling.is_some() {
            res.push(r#""sampling":{}"#.to_owned());
        }
        if let Some(elicitation) = elicitation {
            let mut modes = serde_json::Map::new();
            for mode in elicitation.modes() {
                let name = match mode {
                    ElicitMode::Form => "form",
                    ElicitMode::Url => "url",
                };
                modes.insert(name.to_owned(), json!({}));
            }
            res.push(format!(r#""elicitation":{}"#, serde_json::Value::Object(modes)));
        }
        if roots.is_some() {
            res.push(r#""roots":{"listChanged":true}"#.to_owned());
        }
        res
    }
}

fn unwritable(why: &dyn Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, format!("the handler's answer is no JSON: {why}"))
}
