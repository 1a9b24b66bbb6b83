//! MCP through the ACP connection itself: servers that live in the client (ACPX-12).
//!
//! Each MCP request is one ACP request, `mcp/message`, from the agent to the client; what the server says while it works
//! on one comes as notifications that name it. There is no other direction, and no session: only MCP's stateless era
//! fits through.

mod message;
mod transport;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use agent_client_protocol::{
    Client, ConnectionTo, Dispatch, DynamicHandlerGuard, Error, HandleDispatchFrom, Handled, JsonRpcMessage,
};
use mcp_host::Dialer;
use mcp_transport::{Epoch, FrameSink, RequestId, StreamId};

use message::Message;
use transport::OverAcpDialer;

/// How many requests were made. Their ids must be no two alike on one connection, which every session of it has a wire of
/// its own to: so they are none alike in the process.
static NEXT_REQUEST_ID: AtomicU64 = AtomicU64::new(0);

/// An ACP connection whose client has MCP servers. Clones are the same.
///
/// Hears the client's `mcp/message` notifications for as long as one of its clones is there.
#[derive(Clone)]
pub struct OverAcp(Arc<OverAcpConnection>);

struct OverAcpConnection {
    connection: ConnectionTo<Client>,
    routes: Arc<RequestRoutes>,
    _hears: DynamicHandlerGuard<Client>,
}

impl OverAcp {
    /// Takes an agent's connection, of either version (`connection.into_raw()`). Fails where it is over.
    pub fn new(connection: ConnectionTo<Client>) -> Result<OverAcp, Error> {
        let routes = Arc::new(RequestRoutes::default());
        let hears = connection.add_dynamic_handler(NotificationHandler(Arc::clone(&routes)))?;
        Ok(OverAcp(Arc::new(OverAcpConnection { connection, routes, _hears: hears })))
    }

    /// Reaches the servers of these names by their ids on the connection, and all others as `usual`.
    pub(crate) fn dialer(self, servers: HashMap<String, String>, usual: Dialer) -> Dialer {
        Arc::new(move |server, options| match servers.get(server.spec.id.as_str()) {
            Some(id) => Ok(Arc::new(OverAcpDialer {
                over: self.clone(),
                server_id: id.clone(),
                max_response_bytes: options.limits.message_bytes,
            })),
            None => usual(server, options),
        })
    }
}

impl fmt::Debug for OverAcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OverAcp")
    }
}

/// Which request a notification belongs to, by the id that it carries.
#[derive(Default)]
struct RequestRoutes {
    active: Mutex<HashMap<String, RequestRoute>>,
}

struct RequestRoute {
    server_id: String,
    inbox: Weak<dyn FrameSink>,
    id: RequestId,
    epoch: Epoch,
}

impl RequestRoutes {
    /// Opens a way back for a request, which is closed when what is returned is dropped.
    fn open(self: &Arc<RequestRoutes>, route: RequestRoute) -> ActiveRoute {
        let name = format!("mcp-{}", NEXT_REQUEST_ID.fetch_add(1, Ordering::Relaxed));
        self.lock().insert(name.clone(), route);
        ActiveRoute { routes: Arc::clone(self), name }
    }

    /// Hands a notification to the request that it names. One that names none, or another server's, is nobody's.
    fn deliver(&self, message: &Message) {
        let found = match self.lock().get(&message.request_id) {
            Some(it) if it.server_id == message.server_id => {
                it.inbox.upgrade().map(|inbox| (inbox, it.id, it.epoch))
            }
            Some(_) | None => None,
        };
        match found {
            Some((inbox, id, epoch)) => {
                // The pipe is the client's, and carries more than this: it is not for us to slow it.
                inbox.deliver(StreamId::Request(id, epoch), message.notification());
            }
            None => tracing::debug!("a message of MCP over ACP that belongs to no request"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RequestRoute>> {
        // A panic elsewhere leaves the map whole: each change is one call.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way.
struct ActiveRoute {
    routes: Arc<RequestRoutes>,
    name: String,
}

impl Drop for ActiveRoute {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.name);
    }
}

/// Hears what the client's servers say.
struct NotificationHandler(Arc<RequestRoutes>);

impl HandleDispatchFrom<Client> for NotificationHandler {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _: ConnectionTo<Client>,
    ) -> Result<Handled<Dispatch>, Error> {
        match &message {
            Dispatch::Notification(it) if Message::matches_method(&it.method) => {
                match Message::parse_message(&it.method, &it.params) {
                    Ok(read) if self.0.lock().contains_key(&read.request_id) => {
                        self.0.deliver(&read);
                        Ok(Handled::Yes)
                    }
                    // It may be another session's, which listens for itself.
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
