//! Sends the requests of a handshake.

use mcp_host_model::internal::replace_unpaired_surrogates;
use mcp_host_model::{Method, ProtocolVersion};

use crate::rpc::engine::{CallSettings, CancelNotice};
use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::session::connection::SessionConnection;
use crate::session::options::SessionOptions;
use crate::session::requests::response::find_error_beside;
use crate::transport::{Dial, Epoch, MessageHead, OutboundMessage};

/// A connection and everything that its handshake needs.
#[derive(Clone, Copy)]
pub(crate) struct HandshakeConnection<'a> {
    pub(crate) dial: &'a dyn Dial,
    pub(crate) connection: &'a SessionConnection,
    pub(crate) options: &'a SessionOptions,
    pub(crate) epoch: Epoch,
}

impl HandshakeConnection<'_> {
    /// Sends a request and waits for its outcome.
    pub(super) async fn send_request(
        self,
        method: Method,
        version: Option<ProtocolVersion>,
        params: &str,
        meta: &str,
    ) -> RpcOutcome {
        let message = |id| OutboundMessage {
            epoch: self.epoch,
            head: MessageHead::new(Some(id), method, version),
            body: frame::request(id, method.as_str(), params, meta),
        };
        // `initialize` must not be cancelled, and the server does not need a cancel notice for a probe.
        let settings = CallSettings { cancel_notice: CancelNotice::Suppress, ..CallSettings::default() };
        let outcome = self.connection.engine.call(settings, message).await.1;
        match outcome {
            RpcOutcome::Response { frame, is_error, payload_start } => {
                self.connection.record_response();
                let frame = replace_unpaired_surrogates(frame);
                if !is_error && let Some(error) = find_error_beside(&frame, payload_start, self.dial) {
                    let (server, method) = (self.dial.label(), method.as_str());
                    tracing::warn!(server, method, "the server sent an error beside the result: {error}");
                }
                RpcOutcome::Response { frame, is_error, payload_start }
            }
            failed => failed,
        }
    }
}
