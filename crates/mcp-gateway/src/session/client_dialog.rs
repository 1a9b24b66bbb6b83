//! A client's dialog with leased servers. These servers receive the client's capabilities, and their requests are sent
//! to this client only.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{MethodName, RawJson, RpcError, Secret, code};
use mcp_host_runtime::{Dialog, DialogId, Host};
use mcp_host_transport::{CallerId, Handlers, RawRequestHandler, RawServerRequest};
use parking_lot::Mutex;

use crate::access::oauth::AccessGrant;
use crate::access::secret_id::new_secret_id;
use crate::session::client_channel::ClientChannel;
use crate::session::features::ClientFeatures;
use crate::session::request_handlers::{InputRequestHandler, OpenCalls, SessionRequestHandler};
use crate::session::supported_requests::SupportedRequests;

/// A dialog of a client.
#[derive(Debug)]
pub(crate) struct ClientDialog {
    dialog: Dialog,
    /// Identifies the client to the host.
    pub(crate) caller_id: CallerId,
    requests: Arc<DialogRequestHandler>,
    /// The grant of the access token that is the dialog's subject token.
    subject: Mutex<Option<Arc<AccessGrant>>>,
}

/// Handles requests of the dialog's servers that belong to no call. The handler of the session's latest call sends the
/// request if that call runs; otherwise the session's notification stream does. Without a session, a running call
/// returns the request as its result.
struct DialogRequestHandler {
    supported: SupportedRequests,
    timeout: Duration,
    open_calls: Arc<OpenCalls>,
    /// The handler of the session's latest call.
    latest_call: Mutex<Option<Weak<dyn RawRequestHandler>>>,
    /// The channel to the client of the session. Without a session it has no stream.
    channel: Arc<ClientChannel>,
}

impl ClientDialog {
    /// Starts a dialog of a client with these capabilities. A server request fails after `timeout`. The dialog's id is
    /// random, because it is logged and names chosen by clients may be equal.
    pub(crate) fn start(host: &Host, features: &ClientFeatures, timeout: Duration) -> Arc<ClientDialog> {
        let requests = Arc::new(DialogRequestHandler {
            supported: features.supported_requests,
            timeout,
            open_calls: Arc::default(),
            latest_call: Mutex::default(),
            channel: Arc::default(),
        });
        let caller_id = CallerId::unique();
        let handlers = Handlers::with_raw_requests(Arc::clone(&requests) as _);
        let mut caller = mcp_host_transport::Caller::new(caller_id, handlers);
        caller.capabilities = features.upstream_capabilities.clone();
        caller.max_deadline_pause = timeout;
        let dialog = host.dialog_with_caller(DialogId::new(new_secret_id()), Arc::new(caller));
        Arc::new(ClientDialog { dialog, caller_id, requests, subject: Mutex::default() })
    }

    /// The dialog's id.
    pub(crate) fn id(&self) -> &DialogId {
        self.dialog.id()
    }

    /// Sets a verified access token of the dialog's client as the token that the host exchanges for tokens of servers.
    /// A token that is older than the present one is ignored.
    pub(crate) fn set_subject_token(&self, grant: &Arc<AccessGrant>, token: &[u8]) {
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

    /// The channel to the client of the dialog's session.
    pub(crate) fn channel(&self) -> &Arc<ClientChannel> {
        &self.requests.channel
    }

    /// The running calls that can return server requests.
    pub(crate) fn open_calls(&self) -> &Arc<OpenCalls> {
        &self.requests.open_calls
    }

    /// Sets the handler of the latest call of the session.
    pub(crate) fn set_latest_call(&self, handler: &Arc<dyn RawRequestHandler>) {
        *self.requests.latest_call.lock() = Some(Arc::downgrade(handler));
    }
}

impl fmt::Debug for DialogRequestHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialogRequestHandler").field("supported", &self.supported).finish_non_exhaustive()
    }
}

#[async_trait]
impl RawRequestHandler for DialogRequestHandler {
    fn handles(&self, method: &MethodName) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let latest = self.latest_call.lock().as_ref().and_then(Weak::upgrade);
        if let Some(latest) = latest {
            return latest.handle(request).await;
        }
        let (supported, timeout) = (self.supported, self.timeout);
        if let Some(requests) = self.open_calls.latest() {
            let calls = Arc::clone(&self.open_calls);
            return InputRequestHandler { supported, requests, calls, timeout }.handle(request).await;
        }
        let Some(sender) = self.channel.stream_sender() else {
            return Err(RpcError::new(
                code::INTERNAL_ERROR,
                "the client has no running call and no open stream",
            ));
        };
        SessionRequestHandler { supported, channel: Arc::clone(&self.channel), sender, timeout }
            .handle(request)
            .await
    }
}
