//! The outcome of a call.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Expiry;
use crate::error::disconnect::Disconnect;
use crate::transport::StreamError;

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum RpcOutcome {
    /// The server responded with the message `frame`. `payload_start` is the offset of its result or error.
    Response { frame: Bytes, is_error: bool, payload_start: usize },
    /// The response stream ended without a response.
    StreamFailed(StreamError),
    /// A deadline passed.
    Expired(Expiry),
    /// The connection ended, before or after the request was sent.
    Closed(Arc<Disconnect>),
}
