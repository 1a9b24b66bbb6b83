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
use crate::rpc::request_owner::RequestOwner;
use crate::rpc::server_request::{ElicitRequest, Root, SamplingRequest};

/// Maximum number of server requests handled at once.
const MAX_CONCURRENT: usize = 64;

/// The handlers of one session.
pub(crate) struct RequestResponder {
    handlers: Handlers,
    permits: Arc<Semaphore>,
    max_response_bytes: usize,
}

impl RequestResponder {
    /// Results have at most `max_response_bytes` bytes.
    pub(crate) fn new(handlers: Handlers, max_response_bytes: usize) -> RequestResponder {
        RequestResponder { handlers, permits: Arc::new(Semaphore::new(MAX_CONCURRENT)), max_response_bytes }
    }

    /// Returns a permit if one is free.
    pub(crate) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Waits for a permit. Cancel-safe.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Whether there is a handler for `method` and this owner.
    pub(crate) fn can_handle(&self, owner: &RequestOwner, method: &MethodName) -> bool {
        self.handlers(owner, method).is_some()
    }

    /// The handlers for `method`: those of the caller if it is known and has them, otherwise those of the session.
    /// Never those of another caller.
    fn handlers<'a>(&'a self, owner: &'a RequestOwner, method: &MethodName) -> Option<&'a Handlers> {
        let own = owner.caller().map(|it| &it.handlers);
        own.into_iter().chain([&self.handlers]).find(|handlers| handlers.handles(method))
    }

    /// Handles a request that a legacy server sent on the connection. Roots belong to the connection: the
    /// server may use them for every later call. So the session's handler comes first, whichever caller's
    /// call they are requested for.
    pub(crate) async fn handle_on_connection(
        &self,
        owner: &RequestOwner,
        method: &MethodName,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let is_of_session = *method == Method::ListRoots && self.handlers.handles(method);
        self.handle(if is_of_session { &RequestOwner::Session } else { owner }, method, params).await
    }

    /// Handles a request. The caller of this function holds a permit. Dropping the future cancels the handler.
    pub(crate) async fn handle(
        &self,
        owner: &RequestOwner,
        method: &MethodName,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let Some(handlers) = self.handlers(owner, method) else {
            return Err(no_handler_error(owner, method));
        };
        let params = params.unwrap_or_else(RawJson::empty_object);
        let Handlers { sampling, elicitation, roots, listener: _, raw_requests } = handlers;
        let raw = raw_requests.as_ref().filter(|it| it.handles(method));
        let result = match (raw, method.as_known(), sampling, elicitation, roots) {
            (Some(it), ..) => it.handle(RawServerRequest { method: method.clone(), params }).await?,
            (None, Some(Method::CreateMessage), Some(it), _, _) => {
                RawJson::from_value(&it.sample(SamplingRequest::read(params)?).await?)
                    .map_err(|it| invalid_result(&it))?
            }
            (None, Some(Method::Elicit), _, Some(it), _) => {
                let request = ElicitRequest::read(params)?;
                if !it.modes().contains(&request.mode()) {
                    let message = "the user interface does not support this mode";
                    return Err(RpcError::new(code::INVALID_PARAMS, message));
                }
                it.elicit(request).await?.to_json()
            }
            (None, Some(Method::ListRoots), _, _, Some(it)) => {
                #[derive(Serialize)]
                struct RootsResult {
                    roots: Vec<Root>,
                }
                RawJson::from_value(&RootsResult { roots: it.roots().await? })
                    .map_err(|it| invalid_result(&it))?
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
fn no_handler_error(owner: &RequestOwner, method: &MethodName) -> RpcError {
    let is_known = method.as_known().is_some_and(|it| Method::SERVER_REQUESTS.contains(&it));
    let message = match owner {
        RequestOwner::Ambiguous if is_known => format!(
            "{method} is refused: several callers share this connection, and the request does not identify its call. A \
             server that sends requests to its callers needs one instance for each of them (`sharing: per-client`)"
        ),
        RequestOwner::Finished if is_known => {
            format!("{method} is refused: the call that it belongs to has ended")
        }
        _ if *method == Method::CreateMessage => "Sampling denied: no handler is configured".to_owned(),
        _ => return RpcError::new(code::METHOD_NOT_FOUND, "Method not found"),
    };
    RpcError::new(code::INTERNAL_ERROR, message)
}

fn invalid_result(error: &dyn Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, format!("the handler's result is not JSON: {error}"))
}
