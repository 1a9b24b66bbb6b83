//! The server requests that the gateway forwards to the client of one session.

use std::collections::HashMap;
use std::time::Duration;

use mcp_host_model::{Method, RawJson, RpcError, code};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::protocol::message_writer;
use crate::session::outbound_queue::MessageSender;

/// Maximum number of open requests of a session.
const MAX_OPEN_REQUESTS: usize = 64;

/// The requests to the client of one session that wait for a response.
#[derive(Debug, Default)]
pub(crate) struct ServerRequests(Mutex<OpenRequests>);

/// The table of requests without a response.
#[derive(Debug, Default)]
struct OpenRequests {
    /// The id of the last request that was sent.
    last_id: u64,
    /// The requests without a response, by id.
    open: HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>,
}

/// An open request. Cancels it if it is dropped before the response.
struct OpenRequest<'a> {
    requests: &'a ServerRequests,
    sender: &'a MessageSender,
    id: u64,
}

impl ServerRequests {
    /// Sends a request and waits for its response, at most for `timeout`. Dropping the future cancels the request.
    pub(crate) async fn send(
        &self,
        sender: &MessageSender,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<RawJson, RpcError> {
        let (resolver, response) = oneshot::channel();
        let id = {
            let mut table = self.0.lock();
            if table.open.len() >= MAX_OPEN_REQUESTS {
                return Err(internal_error("too many requests to the client are open"));
            }
            table.last_id += 1;
            let id = table.last_id;
            table.open.insert(id, resolver);
            id
        };
        let _cancel_on_drop = OpenRequest { requests: self, sender, id };
        sender
            .try_send(message_writer::write_request(id, method, params))
            .map_err(|_| internal_error("the client has no open stream"))?;
        match tokio::time::timeout(timeout, response).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => Err(internal_error("the client has disconnected")),
            Err(_) => {
                Err(internal_error(&format!("the client did not answer within {} s", timeout.as_secs_f64())))
            }
        }
    }

    /// Resolves a request with its response. A response to no open request is ignored.
    pub(crate) fn resolve(&self, id: &RawJson, outcome: Result<RawJson, RpcError>) {
        // Some clients return a number as a string.
        let id = id.as_str().trim_matches('"').parse().ok();
        if let Some(resolver) = id.and_then(|id| self.remove(id)) {
            // The caller may have stopped waiting.
            let _ = resolver.send(outcome);
        }
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<Result<RawJson, RpcError>>> {
        self.0.lock().open.remove(&id)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if self.requests.remove(self.id).is_some() {
            let params = format!(r#"{{"requestId":{},"reason":"it is no longer needed"}}"#, self.id);
            // If the client has no stream, there is nothing to cancel.
            let _ =
                self.sender.try_send(message_writer::write_notification(Method::Cancelled.as_str(), &params));
        }
    }
}

/// The error that a server gets when its request gets no response from the client.
pub(crate) fn internal_error(message: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::limits::bounds::Bounds;
    use crate::session::outbound_queue::message_channel;

    fn json(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn server_request_ends_with_response_or_timeout() {
        let requests = ServerRequests::default();
        let (sender, mut receiver) = message_channel(&Bounds::default());
        let limit = Duration::from_secs(5);
        let pending = requests.send(&sender, "roots/list", "{}", limit);
        let client = async {
            let request = receiver.next().await.unwrap();
            assert_eq!(request, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}"#);
            requests.resolve(&json("7"), Ok(json("0")));
            requests.resolve(&json("\"1\""), Ok(json("{}")));
        };
        assert_eq!(tokio::join!(pending, client).0, Ok(json("{}")));

        let timed_out = requests.send(&sender, "roots/list", "{}", limit).await.unwrap_err();
        assert_eq!(timed_out.message, "the client did not answer within 5 s");
        assert!(receiver.next().await.unwrap().ends_with(br#""method":"roots/list","params":{}}"#));
        let cancelled = receiver.next().await.unwrap();
        assert!(
            cancelled.starts_with(
                br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"#
            )
        );
    }
}
