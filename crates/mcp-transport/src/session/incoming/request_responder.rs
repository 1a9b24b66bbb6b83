//! Dispatches server requests to handlers.
//!
//! Handles both the requests of legacy servers and the input requests in results of modern ones. The number of
//! concurrent requests is bounded for both together, and so is the size of a result.

use std::fmt::Display;
use std::sync::Arc;

use mcp_host_model::{Method, MethodName, RawJson, RpcError, code};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rpc::handlers::{Handlers, RawServerRequest};
use crate::rpc::request_owner::MessageOwner;
use crate::rpc::server_request::{ElicitRequest, Root, SamplingRequest};

/// Maximum number of server requests that are handled at once.
const MAX_CONCURRENT: usize = 64;

/// Handles the server requests of one session.
pub(crate) struct RequestResponder {
    handlers: Handlers,
    permits: Arc<Semaphore>,
    max_response_bytes: usize,
}

impl RequestResponder {
    /// A responder whose results have at most `max_response_bytes` bytes.
    pub(crate) fn new(handlers: Handlers, max_response_bytes: usize) -> RequestResponder {
        RequestResponder { handlers, permits: Arc::new(Semaphore::new(MAX_CONCURRENT)), max_response_bytes }
    }

    /// Returns a permit if one is free.
    pub(crate) fn try_acquire_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Waits for a permit. Cancel-safe.
    pub(crate) async fn acquire_permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Whether there is a handler for `method` and this owner.
    pub(crate) fn can_handle(&self, owner: &MessageOwner, method: &MethodName) -> bool {
        self.handlers_for(owner, method).is_some()
    }

    /// The handlers for `method`: those of the caller if it is known and has them, otherwise those of the session.
    /// Never those of another caller.
    fn handlers_for<'a>(&'a self, owner: &'a MessageOwner, method: &MethodName) -> Option<&'a Handlers> {
        let caller_handlers = owner.caller().map(|caller| &caller.handlers);
        caller_handlers.into_iter().chain([&self.handlers]).find(|handlers| handlers.handles(method))
    }

    /// Handles a request that a legacy server sent on the connection. Roots belong to the connection, because the
    /// server may use them for every later call. So the session's handler for roots takes precedence over that of
    /// the caller.
    pub(crate) async fn handle_on_connection(
        &self,
        owner: &MessageOwner,
        method: &MethodName,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let belongs_to_session = *method == Method::ListRoots && self.handlers.handles(method);
        self.handle(if belongs_to_session { &MessageOwner::Session } else { owner }, method, params).await
    }

    /// Handles a request. The caller of this function holds a permit. Dropping the future cancels the handler.
    pub(crate) async fn handle(
        &self,
        owner: &MessageOwner,
        method: &MethodName,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let Some(handlers) = self.handlers_for(owner, method) else {
            return Err(no_handler_error(owner, method));
        };
        let params = params.unwrap_or_else(RawJson::empty_object);
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests } = handlers;
        let raw_handler = raw_requests.as_ref().filter(|handler| handler.handles(method));
        let result = match (raw_handler, method.as_known(), sampling, elicitation, roots) {
            (Some(handler), ..) => {
                handler.handle(RawServerRequest { method: method.clone(), params }).await?
            }
            (None, Some(Method::CreateMessage), Some(sampling), _, _) => {
                RawJson::from_value(&sampling.sample(SamplingRequest::read(params)?).await?)
                    .map_err(|error| invalid_result_error(&error))?
            }
            (None, Some(Method::Elicit), _, Some(elicitation), _) => {
                let request = ElicitRequest::read(params)?;
                if !elicitation.modes().contains(&request.mode()) {
                    let message = "the user interface does not support this mode";
                    return Err(RpcError::new(code::INVALID_PARAMS, message));
                }
                elicitation.elicit(request).await?.to_json()
            }
            (None, Some(Method::ListRoots), _, _, Some(handler)) => {
                #[derive(Serialize)]
                struct RootsResult {
                    roots: Vec<Root>,
                }
                RawJson::from_value(&RootsResult { roots: handler.roots().await? })
                    .map_err(|error| invalid_result_error(&error))?
            }
            (None, ..) => return Err(no_handler_error(owner, method)),
        };
        if result.as_bytes().len() > self.max_response_bytes {
            let message = format!("the result has more than {} bytes", self.max_response_bytes);
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        Ok(result)
    }
}

/// The error for a request without a handler.
fn no_handler_error(owner: &MessageOwner, method: &MethodName) -> RpcError {
    let is_known = method.as_known().is_some_and(|it| Method::SERVER_REQUESTS.contains(&it));
    let message = match owner {
        MessageOwner::Ambiguous if is_known => format!(
            "{method} is refused: several callers share this connection, and the request does not identify its call. A \
             server that sends requests to its callers needs one instance for each of them (`sharing: per-client`)"
        ),
        MessageOwner::Finished if is_known => {
            format!("{method} is refused: the call that it belongs to has ended")
        }
        _ if *method == Method::CreateMessage => "Sampling denied: no handler is configured".to_owned(),
        _ => return RpcError::new(code::METHOD_NOT_FOUND, "Method not found"),
    };
    RpcError::new(code::INTERNAL_ERROR, message)
}

fn invalid_result_error(error: &dyn Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, format!("the handler's result is not JSON: {error}"))
}
