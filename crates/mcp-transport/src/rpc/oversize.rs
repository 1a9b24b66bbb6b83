//! Messages over the size limit: the bytes are discarded as they arrive. Only the beginning and the end are kept,
//! because one of them contains the id of the request whose response was lost. Does no I/O.

use bytes::{Bytes, BytesMut};

#[cfg(any(feature = "stdio", feature = "sse"))]
use crate::transport::RequestId;
#[cfg(any(feature = "stdio", feature = "sse"))]
use crate::transport::scan::{ResponseId, ScannedFrame, scan};

/// The number of bytes kept from the beginning and from the end: enough to find the id.
const END_BYTES: usize = 256;

/// A message counts as endless, and ends the connection, if it is longer than this multiple of the limit and
/// longer than [`MIN_ENDLESS_BYTES`].
const ENDLESS_FACTOR: usize = 16;
/// A message of at most this length is never endless, even if the limit is small.
const MIN_ENDLESS_BYTES: usize = 64 << 20;

/// Whether a message of `len` bytes so far counts as endless, given the limit for a message.
pub(crate) fn is_endless(len: usize, limit: usize) -> bool {
    len > limit.saturating_mul(ENDLESS_FACTOR).max(MIN_ENDLESS_BYTES)
}

/// The beginning and the end of a discarded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OversizedMessage {
    /// Its first bytes.
    pub head: Bytes,
    /// Its last bytes.
    pub tail: Bytes,
    /// Its length in bytes.
    pub len: usize,
}

/// A message that is being discarded.
pub(crate) struct SkippedMessage {
    /// The kept bytes at its beginning.
    head: BytesMut,
    /// The kept bytes at its end.
    tail: BytesMut,
    /// Its size so far.
    len: usize,
}

impl SkippedMessage {
    /// Starts to discard a message that begins with these bytes.
    pub(crate) fn start(bytes: &[u8]) -> SkippedMessage {
        let mut res = SkippedMessage { head: BytesMut::new(), tail: BytesMut::new(), len: 0 };
        res.add(bytes);
        res
    }

    /// Adds more bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(END_BYTES - self.head.len())]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(END_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(END_BYTES);
        self.tail = self.tail.split_off(surplus);
    }

    /// The number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the kept beginning and end.
    pub(crate) fn finish(self) -> OversizedMessage {
        OversizedMessage { head: self.head.freeze(), tail: self.tail.freeze(), len: self.len }
    }
}

#[cfg(any(feature = "stdio", feature = "sse"))]
impl OversizedMessage {
    /// The request that the message responds to, if its id was kept. Servers write the id before the result, or last.
    pub fn response_id(&self) -> Option<RequestId> {
        if let ScannedFrame::Response { id: ResponseId::Number(id), .. } = scan(&self.head) {
            return Some(id);
        }
        let head = self.head.strip_prefix(b"{")?;
        let head = head.strip_prefix(br#""jsonrpc":"2.0","#).unwrap_or(head);
        if !head.starts_with(br#""result":"#) && !head.starts_with(br#""error":"#) {
            return None;
        }
        let tail = String::from_utf8_lossy(self.tail.trim_ascii_end());
        let tail = tail.strip_suffix('}')?;
        let tail = tail.strip_suffix(r#","jsonrpc":"2.0""#).unwrap_or(tail);
        let (_, id) = tail.rsplit_once(r#","id":"#)?;
        id.parse().ok()
    }
}

#[cfg(test)]
#[cfg(any(feature = "stdio", feature = "sse"))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, end: &str, want: Option<RequestId>) {
        let mut skipped = SkippedMessage::start(head.as_bytes());
        skipped.add("x".repeat(1000).as_bytes());
        skipped.add(end.as_bytes());
        let message = skipped.finish();
        assert_eq!(message.len, head.len() + 1000 + end.len());
        assert_eq!(message.response_id(), want, "{head} … {end}");
    }

    #[test]
    fn very_long_message_counts_as_endless() {
        let mib = 1 << 20;
        assert_eq!([64 * mib, 64 * mib + 1].map(|it| is_endless(it, 0)), [false, true]);
        assert_eq!([160 * mib, 160 * mib + 1].map(|it| is_endless(it, 10 * mib)), [false, true]);
        assert!(!is_endless(usize::MAX, usize::MAX));
    }

    #[test]
    fn response_id_is_read_from_the_beginning_or_the_end() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"text":""#, r#""}}"#, Some(7));
        check(r#"{"jsonrpc":"2.0","result":{"text":""#, r#""},"id":7}"#, Some(7));
        check(r#"{"result":{"text":""#, r#""},"id":7,"jsonrpc":"2.0"}"#, Some(7));
        check(r#"{"jsonrpc":"2.0","result":{"text":""#, r#"","id":7}}"#, None);
        check(r#"{"jsonrpc":"2.0","result":{"text":""#, r#"\",\"id\":7}"#, None);
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":""#,
            r#""},"id":7}"#,
            None,
        );
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"data":""#,
            r#""}}"#,
            None,
        );
    }
}
