//! Messages from the server that wait for the session.

use bytes::Bytes;
use mcp_host_model::MethodName;

use crate::rpc::handlers::ServerEvent;
use crate::rpc::request_owner::MessageOwner;
use crate::transport::{Epoch, StreamId};

/// A message from the server that is not a response.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    /// A server request, to be answered under this id.
    Request { id: ServerRequestId, method: MethodName, frame: Bytes, origin: RequestOrigin },
    /// A notification.
    Notification { epoch: Epoch, method: MethodName, frame: Bytes, owner: MessageOwner },
    /// Progress or a protocol error, for the listener. Queued only if there is a listener.
    Event(ServerEvent),
}

impl IncomingMessage {
    /// The size that the message counts as in the queue.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            IncomingMessage::Request { frame, .. } | IncomingMessage::Notification { frame, .. } => {
                frame.len()
            }
            IncomingMessage::Event(ServerEvent::ProtocolError(description)) => description.len(),
            IncomingMessage::Event(ServerEvent::Progress { progress, .. }) => {
                progress.message.as_ref().map_or(0, String::len)
            }
            IncomingMessage::Event(_) => 0,
        }
    }
}

/// The owner and the stream of a server request, determined when the request arrived.
#[derive(Debug)]
pub(crate) struct RequestOrigin {
    pub(crate) owner: MessageOwner,
    pub(super) stream: StreamId,
}

/// The id of a server request. A server may use the same JSON id in several sessions of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServerRequestId {
    /// The session of the request; the response is sent to the same session.
    pub(crate) epoch: Epoch,
    /// The id's JSON text, sent back unchanged.
    pub(crate) text: String,
}
