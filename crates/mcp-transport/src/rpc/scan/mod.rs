//! Classifies a JSON-RPC frame by its top-level keys, without parsing values.
//!
//! Servers write the keys in any order (`{"result":…,"jsonrpc":…,"id":…}` is common), a result may contain an `"id"` of
//! its own, and a server's ping may have the same id as one of our calls. The scanner therefore walks the top level
//! only and decides the kind before it reads the id. It does not validate: values are skipped, and an invalid payload
//! is detected when it is parsed. If a key occurs twice, the first one counts.

use std::ops::Range;

use mcp_host_model::MethodName;

/// The classification of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ScannedFrame {
    /// A response.
    Response {
        /// Its id.
        id: ResponseId,
        /// The id's JSON text, if there is one.
        id_text: Option<Range<usize>>,
        /// Whether it is an `error` rather than a `result`.
        is_error: bool,
        /// The offset of the payload.
        payload_start: usize,
    },
    /// A server request.
    Request {
        /// The id's JSON text, to be sent back unchanged.
        id: Range<usize>,
        /// The method.
        method: MethodName,
        /// The offset of the value of `params`.
        params: Option<usize>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: MethodName,
        /// The offset of the value of `params`.
        params: Option<usize>,
    },
    /// A JSON-RPC batch (2025-03-26): the ranges of its messages.
    Batch(Vec<Range<usize>>),
    /// Bytes that are none of these.
    Noise,
}

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ResponseId {
    /// A number that may be one of our ids; some servers send it back as a string.
    Number(u64),
    /// No id: it is `null` or missing.
    Absent,
    /// An id that is not one of ours.
    Foreign,
}

/// The maximum number of digits of an id on the fast path. An id of so many digits does not overflow a `u64`.
const MAX_ID_DIGITS: usize = 19;

/// The maximum number of messages in a batch.
const MAX_BATCH_ITEMS: usize = 1024;

/// Classifies a frame.
pub fn scan(frame: &[u8]) -> ScannedFrame {
    if let Some(response) = scan_common_response(frame) {
        return response;
    }
    let mut cursor = FrameCursor { frame, position: 0 };
    cursor.skip_space();
    match cursor.peek() {
        Some(b'{') => scan_object(&mut cursor),
        Some(b'[') => scan_batch(&mut cursor),
        _ => ScannedFrame::Noise,
    }
}

/// Classifies a response of the form that most servers use, without a loop over the keys. Returns the same result as
/// [`scan_object`], or `None` for any other form.
fn scan_common_response(frame: &[u8]) -> Option<ScannedFrame> {
    const START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    let rest = frame.strip_prefix(START)?;
    let digits = rest.iter().take(MAX_ID_DIGITS).take_while(|it| it.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(digits);
    let rest = rest.strip_prefix(br#","result":"#)?;
    let ResponseId::Number(id) = parse_response_id(digits) else { return None };
    let space = rest.iter().take_while(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r')).count();
    let payload_start = frame.len() - rest.len() + space;
    let id_text = Some(START.len()..START.len() + digits.len());
    Some(ScannedFrame::Response { id: ResponseId::Number(id), id_text, is_error: false, payload_start })
}

/// Classifies the object at the cursor.
fn scan_object(cursor: &mut FrameCursor<'_>) -> ScannedFrame {
    cursor.position += 1;
    let mut id = None;
    let mut method = None;
    let mut params = None;
    let mut payload_start = None;
    loop {
        cursor.skip_space();
        match cursor.peek() {
            Some(b',') => {
                cursor.position += 1;
                continue;
            }
            Some(b'"') => {}
            Some(b'}') => break,
            _ => return ScannedFrame::Noise,
        }
        let Some(key) = cursor.skip_string() else { return ScannedFrame::Noise };
        cursor.skip_space();
        if cursor.peek() != Some(b':') {
            return ScannedFrame::Noise;
        }
        cursor.position += 1;
        cursor.skip_space();
        let start = cursor.position;
        match &cursor.frame[key] {
            b"\"result\"" if payload_start.is_none() && method.is_none() => {
                payload_start = Some((start, false))
            }
            // Some servers write `"error":null` next to a result.
            b"\"error\"" if payload_start.is_none() && method.is_none() && !cursor.is_null() => {
                payload_start = Some((start, true));
            }
            b"\"params\"" if params.is_none() => params = Some(start),
            b"\"id\"" if id.is_none() => {
                if !cursor.skip_value() {
                    return ScannedFrame::Noise;
                }
                id = Some(start..cursor.position);
            }
            b"\"method\"" if method.is_none() => {
                if !cursor.skip_value() {
                    return ScannedFrame::Noise;
                }
                let Some(name) = parse_method(&cursor.frame[start..cursor.position]) else {
                    return ScannedFrame::Noise;
                };
                method = Some(name);
            }
            _ => {}
        }
        // The response is known, so the payload, which may be long, is not walked.
        if let (Some((payload_start, is_error)), Some(id), None) = (payload_start, &id, &method) {
            return ScannedFrame::Response {
                id: parse_response_id(&cursor.frame[id.clone()]),
                id_text: Some(id.clone()),
                is_error,
                payload_start,
            };
        }
        if cursor.position == start && !cursor.skip_value() {
            return ScannedFrame::Noise;
        }
    }
    match (method, id, payload_start) {
        // An id of `null` counts as absent: the server expects no response.
        (Some(method), Some(id), _) if &cursor.frame[id.clone()] != b"null" => {
            ScannedFrame::Request { id, method, params }
        }
        (Some(method), _, _) => ScannedFrame::Notification { method, params },
        (None, None, Some((payload_start, is_error))) => {
            ScannedFrame::Response { id: ResponseId::Absent, id_text: None, is_error, payload_start }
        }
        (None, _, None) => ScannedFrame::Noise,
        (None, Some(_), Some(_)) => unreachable!("returned as soon as both were known"),
    }
}

/// Parses a JSON string as a method. Most names have no escapes and are not copied.
fn parse_method(json: &[u8]) -> Option<MethodName> {
    serde_json::from_slice::<&str>(json)
        .map(MethodName::from)
        .or_else(|_| serde_json::from_slice::<String>(json).map(MethodName::from))
        .ok()
}

/// Finds the items of the array at the cursor.
fn scan_batch(cursor: &mut FrameCursor<'_>) -> ScannedFrame {
    cursor.position += 1;
    let mut items = Vec::new();
    loop {
        cursor.skip_space();
        match cursor.peek() {
            Some(_) if items.len() == MAX_BATCH_ITEMS => return ScannedFrame::Noise,
            Some(b',') => cursor.position += 1,
            Some(b']') => return ScannedFrame::Batch(items),
            Some(_) => {
                let start = cursor.position;
                if !cursor.skip_value() {
                    return ScannedFrame::Noise;
                }
                items.push(start..cursor.position);
            }
            None => return ScannedFrame::Noise,
        }
    }
}

/// Parses the JSON text of a response's id.
fn parse_response_id(text: &[u8]) -> ResponseId {
    if text == b"null" {
        return ResponseId::Absent;
    }
    let digits = text.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(text);
    let number = digits.iter().try_fold(0u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    match number {
        Some(number) if !digits.is_empty() => ResponseId::Number(number),
        Some(_) | None => ResponseId::Foreign,
    }
}

/// A position in a frame.
struct FrameCursor<'a> {
    frame: &'a [u8],
    position: usize,
}

impl FrameCursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.frame.get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    /// Whether the value at the cursor is `null`.
    fn is_null(&self) -> bool {
        self.frame[self.position..].starts_with(b"null")
    }

    /// Skips the string at the cursor; returns its range, quotes included.
    fn skip_string(&mut self) -> Option<Range<usize>> {
        let start = self.position;
        self.position += 1;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.frame.get(self.position..)?)?;
            self.position += found;
            if self.frame[self.position] == b'"' {
                self.position += 1;
                return Some(start..self.position);
            }
            self.position += 2;
        }
    }

    /// Skips the value at the cursor. Returns false when the frame ends first or there is no value.
    fn skip_value(&mut self) -> bool {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                None => return false,
                Some(b'"') => {
                    if self.skip_string().is_none() {
                        return false;
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.position += 1;
                }
                Some(b'}' | b']') => {
                    let Some(outer_depth) = depth.checked_sub(1) else { return false };
                    depth = outer_depth;
                    self.position += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') if depth > 0 => {
                    self.position += 1;
                    continue;
                }
                Some(_) => {
                    let rest = &self.frame[self.position..];
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
                    self.position += len;
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
