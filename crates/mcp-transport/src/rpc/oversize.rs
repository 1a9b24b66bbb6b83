//! Messages that are larger than they may be: let go of as they come, but for their ends, by which it can be told whose
//! answer was lost. Pure.

use bytes::{Bytes, BytesMut};

#[cfg(any(feature = "stdio", feature = "sse"))]
use crate::rpc::scan::{Id, Scanned, scan};
#[cfg(any(feature = "stdio", feature = "sse"))]
use crate::transport::RequestId;

/// How much of each end is kept: enough to see whose answer it was.
const END: usize = 256;

/// What is as long as so many messages may be, and as this, is none that will end: nothing is ever heard behind it.
const MOST_MESSAGES: usize = 16;
const LEAST_ENDLESS: usize = 64 << 20;

/// Whether what is being let go of will not end, after so many bytes of it, where a message may have `limit`.
pub(crate) fn is_endless(len: usize, limit: usize) -> bool {
    len > limit.saturating_mul(MOST_MESSAGES).max(LEAST_ENDLESS)
}

/// What was kept of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Oversize {
    /// Its first bytes.
    pub(crate) head: Bytes,
    /// Its last bytes.
    pub(crate) tail: Bytes,
    /// How many bytes it had.
    pub(crate) len: usize,
}

/// A message that is being let go of.
pub(crate) struct Skipped {
    head: BytesMut,
    tail: BytesMut,
    len: usize,
}

impl Skipped {
    /// A message that begins with these bytes.
    pub(crate) fn begin(bytes: &[u8]) -> Skipped {
        let mut res = Skipped { head: BytesMut::new(), tail: BytesMut::new(), len: 0 };
        res.add(bytes);
        res
    }

    /// More of it.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(END - self.head.len())]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(END)..]);
        let surplus = self.tail.len().saturating_sub(END);
        self.tail = self.tail.split_off(surplus);
    }

    /// How much of it came so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Its end.
    pub(crate) fn finish(self) -> Oversize {
        Oversize { head: self.head.freeze(), tail: self.tail.freeze(), len: self.len }
    }
}

#[cfg(any(feature = "stdio", feature = "sse"))]
impl Oversize {
    /// Which request it answers: servers write the id before the result, or last.
    pub(crate) fn answers(&self) -> Option<RequestId> {
        if let Scanned::Response { id: Id::Number(id), .. } = scan(&self.head) {
            return Some(id);
        }
        let begin = self.head.strip_prefix(b"{")?;
        let begin = begin.strip_prefix(br#""jsonrpc":"2.0","#).unwrap_or(begin);
        if !begin.starts_with(br#""result":"#) && !begin.starts_with(br#""error":"#) {
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
    fn check(begin: &str, end: &str, want: Option<RequestId>) {
        let mut skipped = Skipped::begin(begin.as_bytes());
        skipped.add("x".repeat(1000).as_bytes());
        skipped.add(end.as_bytes());
        let oversize = skipped.finish();
        assert_eq!(oversize.len, begin.len() + 1000 + end.len());
        assert_eq!(oversize.answers(), want, "{begin} … {end}");
    }

    #[test]
    fn what_is_as_long_as_many_messages_does_not_end() {
        let mib = 1 << 20;
        assert_eq!([64 * mib, 64 * mib + 1].map(|it| is_endless(it, 0)), [false, true]);
        assert_eq!([160 * mib, 160 * mib + 1].map(|it| is_endless(it, 10 * mib)), [false, true]);
        assert!(!is_endless(usize::MAX, usize::MAX));
    }

    #[test]
    fn an_answer_is_known_by_its_ends_and_never_by_what_it_holds() {
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
