//! Bounded reading of response bodies.

use bytes::{Buf, Bytes, BytesMut};

use crate::net::Response;

/// Messages shorter than this are copied out of the read buffer, so that the connection can reuse it and a kept message
/// does not keep the buffer.
const MAX_COPIED_BYTES: usize = 4 << 10;

/// Maximum number of bytes that are allocated because a server declares a body of that length.
const MAX_PREALLOCATED_BYTES: usize = 4 << 20;

/// Why a body is not complete.
#[derive(Debug)]
pub(super) enum ResponseBodyError {
    /// It exceeds the limit.
    TooLarge,
    /// The connection failed for this reason.
    Failed(String),
}

/// The byte order mark at the start of some servers' texts.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads a body of at most `limit` bytes, without its byte order mark. A long body in one piece is not copied.
pub(super) async fn read_body(response: &mut Response, limit: usize) -> Result<Bytes, ResponseBodyError> {
    let declared = response.content_length().map_or(0, |it| usize::try_from(it).unwrap_or(usize::MAX));
    if declared > limit {
        return Err(ResponseBodyError::TooLarge);
    }
    // The first chunk, until a second one arrives; then all of them.
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let capacity = declared.min(MAX_PREALLOCATED_BYTES);
    while let Some(chunk) = response.chunk().await.map_err(|it| ResponseBodyError::Failed(it.to_string()))? {
        if first.len() + joined.len() + chunk.len() > limit {
            return Err(ResponseBodyError::TooLarge);
        }
        if first.is_empty() && joined.is_empty() {
            first = chunk;
            continue;
        }
        if joined.is_empty() {
            joined.reserve((first.len() + chunk.len()).max(capacity));
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&chunk);
    }
    let mut body = if joined.is_empty() { copy_if_short(first) } else { joined.freeze() };
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    Ok(body)
}

/// Copies a short message into a buffer of its own.
pub(super) fn copy_if_short(bytes: Bytes) -> Bytes {
    if bytes.len() < MAX_COPIED_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes }
}
