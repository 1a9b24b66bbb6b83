//! Wraps a transport of rmcp and changes two behaviours.
//!
//! A notification before the session is open, such as the cancellation of a probe, is ignored instead of
//! fatal. After the tool `exit`, nothing more is written, as after a crash.

use std::{future::Future, io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, ServerJsonRpcMessage},
    transport::Transport,
};

use crate::lifetime::Lifetime;

/// The connection to one client.
pub(crate) struct DemoConnection<T> {
    messages: T,
    lifetime: Arc<Lifetime>,
    is_open: bool,
}

impl<T> DemoConnection<T> {
    pub(crate) fn new(messages: T, lifetime: Arc<Lifetime>) -> Self {
        Self { messages, lifetime, is_open: false }
    }
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for DemoConnection<T> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let lifetime = Arc::clone(&self.lifetime);
        let sent = self.messages.send(message);
        async move {
            if lifetime.is_exiting() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.messages.receive().await else {
                self.lifetime.end();
                return None;
            };
            self.is_open |= opens_session(&message);
            if self.is_open || matches!(message, ClientJsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.messages.close().await
    }
}

/// Whether a message opens the session: `initialize`, or a request of the modern era, which names its version. Probes
/// (`ping`, `server/discover`) do not.
fn opens_session(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}
