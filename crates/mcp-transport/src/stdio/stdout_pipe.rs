//! Standard output of a child, with an adjustable pipe capacity.

use tokio::io::AsyncRead;

use super::system::{StdoutPipe, set_pipe_capacity};

/// A stream of messages whose capacity may be adjustable.
pub(super) trait StdoutSource: AsyncRead + Unpin {
    /// Requests this capacity: with a larger pipe, neither side waits for each piece of a long message. The default
    /// does nothing.
    fn set_capacity(&self, _bytes: usize) {}
}

impl StdoutSource for StdoutPipe {
    fn set_capacity(&self, bytes: usize) {
        set_pipe_capacity(self, bytes);
    }
}
