//! Answers that are bodies of responses, within bounds.

use bytes::{Buf, Bytes, BytesMut};

use crate::net::Response;
use crate::net::http1::describe;

/// What is shorter than this is copied out of the buffer that it was read into: the connection can use that again, and who
/// keeps a short answer keeps no more.
const MAX_COPIED_BYTES: usize = 4 << 10;

/// Maximum number of bytes that are allocated because a server declares a body of that length.
const MAX_PREALLOCATED_BYTES: usize = 4 << 20;

/// Why there is no whole body.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It has more bytes than a message may have.
    TooLarge,
    /// The connection broke off, for this reason.
    Failed(String),
}

/// The byte order mark that some servers begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The whole body, unless it has more than `limit` bytes, without a byte order mark. A long one that arrives at once is not
/// copied.
pub(super) async fn read_body(response: &mut Response, limit: usize) -> Result<Bytes, BodyError> {
    let promised = response.content_length().map_or(0, |it| usize::try_from(it).unwrap_or(usize::MAX));
    if promised > limit {
        return Err(BodyError::TooLarge);
    }
    let mut first = Bytes::new();
    let mut res = BytesMut::new();
    let wanted = promised.min(MAX_PREALLOCATED_BYTES);
    while let Some(chunk) = response.chunk().await.map_err(|it| BodyError::Failed(describe(&it)))? {
        if first.len() + res.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() && res.is_empty() {
            first = chunk;
            continue;
        }
        if res.is_empty() {
            res.reserve((first.len() + chunk.len()).max(wanted));
            res.extend_from_slice(&std::mem::take(&mut first));
        }
        res.extend_from_slice(&chunk);
    }
    let mut body = if res.is_empty() { copy_if_short(first) } else { res.freeze() };
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    Ok(body)
}

/// The same bytes, in a buffer of their own where they are few.
pub(super) fn copy_if_short(bytes: Bytes) -> Bytes {
    if bytes.len() < MAX_COPIED_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes }
}
