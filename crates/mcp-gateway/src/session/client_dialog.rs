//! A client's dialog with its leased servers: their instances receive the client's capabilities, and their requests
//! reach this client only.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{MethodName, RawJson, RpcError, Secret, code};
use mcp_host_runtime::{Dialog, DialogId, Host};
use mcp_host_transport::{CallerId, Handlers, RawRequestHandler, RawServerRequest};
use parking_lot::Mutex;

use crate::access::oauth::AccessGrant;
use crate::access::secret_id::secret_id;
use crate::session::client_port::ClientPort;
use crate::session::features::ClientFeatures;
use crate::session::request_handlers::{InputRequestHandler, OpenCalls, SessionRequestHandler};
use crate::session::supported_requests::SupportedRequests;

/// A dialog of a client.
#[derive(Debug)]
pub(crate) struct ClientDialog {
    dialog: Dialog,
    /// Identifies the client to the host.
    pub(crate) owner: CallerId,
    requests: Arc<DialogRequests>,
    /// What the access token grants that the host has for the dialog.
    subject: Mutex<Option<Arc<AccessGrant>>>,
}

/// Handles requests of leased servers that belong to no call: the client's latest call has a stream to it, or its
/// session has. Without a session, a running call returns the request.
struct DialogRequests {
    supported: SupportedRequests,
    limit: Duration,
    calls: Arc<OpenCalls>,
    latest: Mutex<Option<Weak<dyn RawRequestHandler>>>,
    /// The way to the client of the session. Without a session it has no stream.
    port: Arc<ClientPort>,
}

impl ClientDialog {
    /// A dialog of a client with these capabilities. Server requests are open at most for `limit`. The dialog's id is
    /// random, because it is logged and names chosen by clients may be equal.
    pub(crate) fn start(host: &Host, features: &ClientFeatures, limit: Duration) -> Arc<ClientDialog> {
        let requests = Arc::new(DialogRequests {
            supported: features.supported_requests,
            limit,
            calls: Arc::default(),
            latest: Mutex::default(),
            port: Arc::default(),
        });
        let owner = CallerId::unique();
        let handlers = Handlers::forwarding(Arc::clone(&requests) as _);
        let mut caller = mcp_host_transport::Caller::new(owner, handlers);
        caller.capabilities = features.upstream_capabilities.clone();
        caller.max_deadline_pause = limit;
        let dialog = host.dialog_with(DialogId::new(secret_id()), Arc::new(caller));
        Arc::new(ClientDialog { dialog, owner, requests, subject: Mutex::default() })
    }

    /// The dialog's id.
    pub(crate) fn id(&self) -> &DialogId {
        self.dialog.id()
    }

    /// Gives a verified access token of the dialog's client to the host, which exchanges it for tokens of
    /// servers. An older token than the present one is ignored.
    pub(crate) fn set_subject(&self, grant: &Arc<AccessGrant>, token: &[u8]) {
        let Ok(token) = std::str::from_utf8(token) else { return };
        let mut subject = self.subject.lock();
        // Most requests have the token of the last one.
        let is_older = |current: &Arc<AccessGrant>| Arc::ptr_eq(current, grant) || !grant.replaces(current);
        if subject.as_ref().is_some_and(is_older) {
            return;
        }
        self.dialog.set_subject_token(Secret::from(token));
        *subject = Some(Arc::clone(grant));
    }

    /// The way to the client of the dialog's session.
    pub(crate) fn port(&self) -> &Arc<ClientPort> {
        &self.requests.port
    }

    /// The running calls that can return server requests.
    pub(crate) fn calls(&self) -> &Arc<OpenCalls> {
        &self.requests.calls
    }

    /// Sets the handler of the latest call of the session.
    pub(crate) fn set_latest(&self, handler: &Arc<dyn RawRequestHandler>) {
        *self.requests.latest.lock() = Some(Arc::downgrade(handler));
    }
}

impl fmt::Debug for DialogRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialogRequests").field("supported", &self.supported).finish_non_exhaustive()
    }
}

#[async_trait]
impl RawRequestHandler for DialogRequests {
    fn handles(&self, method: &MethodName) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let latest = self.latest.lock().as_ref().and_then(Weak::upgrade);
        if let Some(latest) = latest {
            return latest.handle(request).await;
        }
        let (supported, limit) = (self.supported, self.limit);
        if let Some(requests) = self.calls.latest() {
            let calls = Arc::clone(&self.calls);
            return InputRequestHandler { supported, requests, calls, limit }.handle(request).await;
        }
        let Some(sender) = self.port.stream() else {
            return Err(RpcError::new(
                code::INTERNAL_ERROR,
                "the client has no running call and no open stream",
            ));
        };
        SessionRequestHandler { supported, port: Arc::clone(&self.port), sender, limit }.handle(request).await
    }
}
