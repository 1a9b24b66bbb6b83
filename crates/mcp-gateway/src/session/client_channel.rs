//! The channel to the client of a session: its notification stream, and the requests to it that wait for a response.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::session::outbound_queue::MessageSender;
use crate::session::server_requests::ServerRequests;

/// The channel to the client of a session, for messages that belong to no request of the client.
#[derive(Debug, Default)]
pub(crate) struct ClientChannel {
    /// The requests to the client that wait for its response.
    pub(crate) requests: ServerRequests,
    /// The sender of the notification stream, with a token that closes the stream.
    stream: Mutex<Option<(MessageSender, CancellationToken)>>,
}

impl ClientChannel {
    /// The sender of the notification stream, if that is open.
    pub(crate) fn stream_sender(&self) -> Option<MessageSender> {
        let stream = self.stream.lock();
        stream.as_ref().map(|(sender, _)| sender.clone())
    }

    /// Replaces the notification stream. The returned token is cancelled when another stream replaces this one.
    pub(crate) fn open_stream(&self, sender: MessageSender) -> CancellationToken {
        let replaced = CancellationToken::new();
        let mut stream = self.stream.lock();
        if let Some((_, previous)) = stream.replace((sender, replaced.clone())) {
            previous.cancel();
        }
        replaced
    }

    /// Removes the notification stream, unless it was replaced.
    pub(crate) fn close_stream(&self, sender: &MessageSender) {
        let mut stream = self.stream.lock();
        stream.take_if(|(open, _)| open.is_same_channel(sender));
    }
}
