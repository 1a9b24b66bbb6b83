//! What a frame is, told from its top-level keys alone.
//!
//! Servers write the keys in any order (`{"result":…,"jsonrpc":…,"id":…}` is common), a result may hold an `"id"` of
//! its own, and a server's ping may carry the number of one of our calls. So the first `"id"` found in the text is
//! never trusted: this scanner walks the top level only, and decides the kind before it looks at the id. It does not
//! validate: values are skipped, and whoever parses the payload finds out whether it is JSON. Where a key stands
//! twice, the first counts.

use std::ops::Range;

/// What a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// An answer.
    Response {
        /// The id it names.
        id: Id,
        /// It is an `error`, not a `result`.
        is_error: bool,
        /// Where the payload begins.
        payload: usize,
    },
    /// A request of the peer.
    Request {
        /// The id's JSON text, to be sent back as it is.
        id: Range<usize>,
        /// The method's JSON text, with its quotes.
        method: Range<usize>,
    },
    /// A notification.
    Notification {
        /// The method's JSON text, with its quotes.
        method: Range<usize>,
        /// Where the value of `params` begins.
        params: Option<usize>,
    },
    /// A JSON-RPC batch (2025-03-26): its messages one by one.
    Batch(Vec<Range<usize>>),
    /// None of these.
    Noise,
}

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Id {
    /// A number that may be one of ours; some servers send it back as a string.
    Number(u64),
    /// `null`, or no id at all: the peer could not read what we sent.
    Absent,
    /// No id that we ever gave.
    Foreign,
}

/// The digits of the largest number that is no odd id.
const MOST_DIGITS: usize = 19;

/// The most messages in a batch.
const MOST_IN_BATCH: usize = 1024;

/// Classifies a frame.
pub(crate) fn scan(frame: &[u8]) -> Scanned {
    if let Some(answer) = usual(frame) {
        return answer;
    }
    let mut cursor = Cursor { frame, at: 0 };
    cursor.space();
    match cursor.peek() {
        Some(b'{') => object(&mut cursor),
        Some(b'[') => batch(&mut cursor),
        _ => Scanned::Noise,
    }
}

/// The way in which most servers begin an answer, told without a walk: to no other end than [`object`] would come.
fn usual(frame: &[u8]) -> Option<Scanned> {
    let rest = frame.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let digits = rest.iter().take(MOST_DIGITS).take_while(|it| it.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(digits);
    let rest = rest.strip_prefix(br#","result":"#)?;
    let Id::Number(id) = response_id(digits) else { return None };
    let space = rest.iter().take_while(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r')).count();
    let payload = frame.len() - rest.len() + space;
    Some(Scanned::Response { id: Id::Number(id), is_error: false, payload })
}

fn object(cursor: &mut Cursor<'_>) -> Scanned {
    cursor.at += 1;
    let mut id = None;
    let mut method = None;
    let mut params = None;
    let mut payload = None;
    loop {
        cursor.space();
        match cursor.peek() {
            Some(b',') => {
                cursor.at += 1;
                continue;
            }
            Some(b'"') => {}
            Some(b'}') => break,
            _ => return Scanned::Noise,
        }
        let Some(key) = cursor.string() else { return Scanned::Noise };
        cursor.space();
        if cursor.peek() != Some(b':') {
            return Scanned::Noise;
        }
        cursor.at += 1;
        cursor.space();
        let start = cursor.at;
        match &cursor.frame[key] {
            b"\"result\"" if payload.is_none() && method.is_none() => payload = Some((start, false)),
            // Some servers write `"error":null` beside a result.
            b"\"error\"" if payload.is_none() && method.is_none() && !cursor.is_null() => {
                payload = Some((start, true));
            }
            b"\"params\"" if params.is_none() => params = Some(start),
            b"\"id\"" if id.is_none() => {
                if !cursor.skip() {
                    return Scanned::Noise;
                }
                id = Some(start..cursor.at);
            }
            b"\"method\"" if method.is_none() => {
                if !cursor.skip() {
                    return Scanned::Noise;
                }
                method = Some(start..cursor.at);
            }
            _ => {}
        }
        // Everything is known: the payload itself, which may be long, need not be walked.
        if let (Some((payload, is_error)), Some(id), None) = (payload, &id, &method) {
            return Scanned::Response { id: response_id(&cursor.frame[id.clone()]), is_error, payload };
        }
        if cursor.at == start && !cursor.skip() {
            return Scanned::Noise;
        }
    }
    match (method, id, payload) {
        // An id of `null` is none: whoever sends it wants no answer.
        (Some(method), Some(id), _) if &cursor.frame[id.clone()] != b"null" => {
            Scanned::Request { id, method }
        }
        (Some(method), _, _) => Scanned::Notification { method, params },
        (None, None, Some((payload, is_error))) => Scanned::Response { id: Id::Absent, is_error, payload },
        (None, _, None) => Scanned::Noise,
        (None, Some(_), Some(_)) => unreachable!("returned as soon as both were known"),
    }
}

fn batch(cursor: &mut Cursor<'_>) -> Scanned {
    cursor.at += 1;
    let mut items = Vec::new();
    loop {
        cursor.space();
        match cursor.peek() {
            Some(_) if items.len() == MOST_IN_BATCH => return Scanned::Noise,
            Some(b',') => cursor.at += 1,
            Some(b']') => return Scanned::Batch(items),
            Some(_) => {
                let start = cursor.at;
                if !cursor.skip() {
                    return Scanned::Noise;
                }
                items.push(start..cursor.at);
            }
            None => return Scanned::Noise,
        }
    }
}

fn response_id(text: &[u8]) -> Id {
    if text == b"null" {
        return Id::Absent;
    }
    let digits = text.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(text);
    let number = digits.iter().try_fold(0u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    match number {
        Some(number) if !digits.is_empty() => Id::Number(number),
        Some(_) | None => Id::Foreign,
    }
}

struct Cursor<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.frame.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Does `null` stand here?
    fn is_null(&self) -> bool {
        self.frame[self.at..].starts_with(b"null")
    }

    /// Walks over the string that begins here; its range with quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.at += 1;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.frame.get(self.at..)?)?;
            self.at += found;
            if self.frame[self.at] == b'"' {
                self.at += 1;
                return Some(start..self.at);
            }
            self.at += 2;
        }
    }

    /// Walks over the value that begins here. False when the frame ends first, or nothing is there.
    fn skip(&mut self) -> bool {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                None => return false,
                Some(b'"') => {
                    if self.string().is_none() {
                        return false;
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    let Some(less) = depth.checked_sub(1) else { return false };
                    depth = less;
                    self.at += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {
                    let rest = &self.frame[self.at..];
                    let len = rest
                        .iter()
                        .position(|it| {
                            matches!(
                                it,
                                b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
                            )
                        })
                        .unwrap_or(rest.len());
                    if len == 0 {
                        return false;
                    }
                    self.at += len;
                }
            }
            if depth == 0 {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
