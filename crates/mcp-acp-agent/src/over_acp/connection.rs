//! An ACP connection whose client provides MCP servers, and the routes of its active requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use agent_client_protocol::{
    Client, ConnectionTo, Dispatch, DynamicHandlerGuard, Error, HandleDispatchFrom, Handled, JsonRpcMessage,
};
use mcp_host_transport::{Epoch, FrameSink, RequestId, StreamId};

use super::message::OverAcpMessage;

/// The number in the id of the next request. Ids must be unique on a connection, which several sessions may use, so
/// they are unique in the process.
static NEXT_REQUEST_ID: AtomicU64 = AtomicU64::new(0);

/// An ACP connection whose client provides MCP servers. Clones share it.
///
/// Receives the client's `mcp/message` notifications while a clone exists.
#[derive(Clone, derive_more::Debug)]
#[debug("OverAcp")]
pub struct OverAcp(pub(super) Arc<OverAcpConnection>);

/// The connection that clones of [`OverAcp`] share.
pub(super) struct OverAcpConnection {
    pub(super) connection: ConnectionTo<Client>,
    pub(super) routes: Arc<RequestRoutes>,
    _handler: DynamicHandlerGuard<Client>,
}

impl OverAcp {
    /// Wraps an agent's connection to its client, of ACP version 1 or 2: pass the result of `connection.into_raw()`.
    /// Fails if it is closed.
    pub fn new(connection: ConnectionTo<Client>) -> Result<OverAcp, Error> {
        let routes = Arc::new(RequestRoutes::default());
        let handler = connection.add_dynamic_handler(NotificationHandler(Arc::clone(&routes)))?;
        Ok(OverAcp(Arc::new(OverAcpConnection { connection, routes, _handler: handler })))
    }
}

/// The routes of active requests, by the id that their notifications carry.
#[derive(Default)]
pub(super) struct RequestRoutes {
    active: Mutex<HashMap<String, RequestRoute>>,
}

/// The destination of the notifications of one request.
pub(super) struct RequestRoute {
    pub(super) server_id: String,
    /// The engine that sent the request.
    pub(super) inbound: Weak<dyn FrameSink>,
    /// The engine's id of the request. The ACP messages carry [`ActiveRoute::request_id`] instead.
    pub(super) id: RequestId,
    pub(super) epoch: Epoch,
}

impl RequestRoutes {
    /// Adds a route under a new id. Dropping the result removes it.
    pub(super) fn open(self: &Arc<RequestRoutes>, route: RequestRoute) -> ActiveRoute {
        let request_id = format!("mcp-{}", NEXT_REQUEST_ID.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(request_id.clone(), route);
        ActiveRoute { routes: Arc::clone(self), request_id }
    }

    /// Delivers a notification to its request. A notification without a request, or of another server, is dropped.
    fn deliver(&self, message: &OverAcpMessage) {
        let found = match self.lock().get(&message.request_id) {
            Some(route) if route.server_id == message.server_id => {
                route.inbound.upgrade().map(|inbound| (inbound, route.id, route.epoch))
            }
            Some(_) | None => None,
        };
        match found {
            Some((inbound, id, epoch)) => {
                // The connection carries other messages, too, so there is no backpressure here.
                inbound.deliver(StreamId::Request(id, epoch), message.to_notification_frame());
            }
            None => tracing::debug!("dropping an `mcp/message` notification that belongs to no request"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RequestRoute>> {
        // A panic cannot leave the map inconsistent: each change is one call.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard of the route of an active request. Dropping it removes the route.
pub(super) struct ActiveRoute {
    routes: Arc<RequestRoutes>,
    pub(super) request_id: String,
}

impl Drop for ActiveRoute {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.request_id);
    }
}

/// Handles notifications of the client's servers.
struct NotificationHandler(Arc<RequestRoutes>);

impl HandleDispatchFrom<Client> for NotificationHandler {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _: ConnectionTo<Client>,
    ) -> Result<Handled<Dispatch>, Error> {
        match &message {
            Dispatch::Notification(notification) if OverAcpMessage::matches_method(&notification.method) => {
                match OverAcpMessage::parse_message(&notification.method, &notification.params) {
                    Ok(parsed) if self.0.lock().contains_key(&parsed.request_id) => {
                        self.0.deliver(&parsed);
                        Ok(Handled::Yes)
                    }
                    // It may belong to another session, which has its own handler.
                    Ok(_) | Err(_) => Ok(Handled::No { message, retry: false }),
                }
            }
            Dispatch::Notification(_) | Dispatch::Request(..) | Dispatch::Response(..) => {
                Ok(Handled::No { message, retry: false })
            }
        }
    }

    fn describe_chain(&self) -> impl fmt::Debug {
        "mcp/message"
    }
}
