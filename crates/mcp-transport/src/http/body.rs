//! Answers that are bodies of responses, within bounds.

use bytes::{Buf, Bytes, BytesMut};

use crate::net::Response;
use crate::net::http1::describe;

/// What is shorter than this is copied out of the buffer that it was read into: the connection can use that again, and who
/// keeps a short answer keeps no more.
const SHORT: usize = 4 << 10;

/// Maximum number of bytes that are allocated because a server declares a body of that length.
const MAX_PREALLOCATED_BYTES: usize = 4 << 20;

/// Why there is no whole body.
#[derive(Debug)]
pub(super) enum Incomplete {
    /// It has more bytes than a message may have.
    TooLarge,
    /// The connection broke off, for this reason.
    Broke(String),
}

/// The byte order mark that some servers begin a text with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The whole body, unless it has more than `limit` bytes, without a byte order mark. A long one that arrives at once is not
/// copied.
pub(super) async fn whole(response: &mut Response, limit: usize) -> Result<Bytes, Incomplete> {
    let promised = response.content_length().map_or(0, |it| usize::try_from(it).unwrap_or(usize::MAX));
    if promised > limit {
        return Err(Incomplete::TooLarge);
    }
    let mut first = Bytes::new();
    let mut res = BytesMut::new();
    let wanted = promised.min(MAX_PREALLOCATED_BYTES);
    while let Some(chunk) = response.chunk().await.map_err(|it| Incomplete::Broke(describe(&it)))? {
        if first.len() + res.len() + chunk.len() > limit {
            return Err(Incomplete::TooLarge);
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
    let mut body = if res.is_empty() { unshared(first) } else { res.freeze() };
    if body.starts_with(MARK) {
        body.advance(MARK.len());
    }
    Ok(body)
}

/// The same bytes, in a buffer of their own where they are few.
pub(super) fn unshared(bytes: Bytes) -> Bytes {
    if bytes.len() < SHORT { Bytes::copy_from_slice(&bytes) } else { bytes }
}
