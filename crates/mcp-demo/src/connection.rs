//! A transport that keeps two promises rmcp's own do not.
//!
//! A notification that comes before the session is open (a probe's cancellation, say) is skipped, not fatal; and after
//! the tool `exit` nothing more is written, as if the process had died in that instant.

use std::{future::Future, io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, ServerJsonRpcMessage},
    transport::Transport,
};

use crate::life::Life;

/// One client.
pub(crate) struct Connection<T> {
    messages: T,
    life: Arc<Life>,
    open: bool,
}

impl<T> Connection<T> {
    pub(crate) fn new(messages: T, life: Arc<Life>) -> Self {
        Self { messages, life, open: false }
    }
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for Connection<T> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let life = Arc::clone(&self.life);
        let sent = self.messages.send(message);
        async move {
            if life.is_exiting() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.messages.receive().await else {
                self.life.end();
                return None;
            };
            self.open |= opens(&message);
            if self.open || matches!(message, ClientJsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.messages.close().await
    }
}

/// Whether the session is open after this message: `initialize` opens it, and so does a request of the sessionless
/// era, which names its version itself. Probes leave the choice open.
fn opens(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}
