//! Requests of a handshake.

use mcp_host_model::{Method, ProtocolVersion};

use crate::rpc::engine::{CallSettings, CancelNotice};
use crate::rpc::frame;
use crate::rpc::outcome::RpcOutcome;
use crate::session::connection::Connection;
use crate::transport::{Epoch, MessageHead, OutboundMessage};

/// Sends a request of the handshake and waits for its outcome.
pub(crate) async fn send_request(
    connection: &Connection,
    epoch: Epoch,
    method: Method,
    version: Option<ProtocolVersion>,
    params: &str,
    meta: &str,
) -> RpcOutcome {
    let message = |id| OutboundMessage {
        epoch,
        head: MessageHead::new(Some(id), method, version),
        body: frame::request(id, method.as_str(), params, meta),
    };
    // `initialize` must not be cancelled, and the server does not need a cancel notice for a probe.
    let settings = CallSettings { cancel_notice: CancelNotice::Suppress, ..CallSettings::default() };
    let outcome = connection.engine().call(settings, message).await.1;
    if let RpcOutcome::Response { .. } = outcome {
        connection.record_response();
    }
    outcome
}
