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
    /// A response with this id that has neither a result nor an error.
    EmptyResponse(u64),
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
    /// A JSON-RPC batch (2025-03-26), or several messages in one frame: the ranges of its messages.
    Batch(Vec<Range<usize>>),
    /// Bytes that are none of these.
    Noise,
}

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum ResponseId {
    /// A number that may be one of our ids; some servers send it back as a string or as a fraction (`7.0`).
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

/// The byte order mark that some servers write before a message.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Classifies a frame. A byte order mark before it is skipped.
pub fn scan(frame: &[u8]) -> ScannedFrame {
    if let Some(response) = scan_common_response(frame) {
        return response;
    }
    let position = if frame.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut cursor = FrameCursor { frame, position };
    cursor.skip_space();
    match cursor.peek() {
        Some(b'{') => {
            let start = cursor.position;
            let first = scan_object(&mut cursor);
            // The payload of a response is not walked, so the end of a response is not known here.
            match first {
                ScannedFrame::Request { .. } | ScannedFrame::Notification { .. } => {
                    scan_further_messages(&mut cursor, start).unwrap_or(first)
                }
                _ => first,
            }
        }
        Some(b'[') => scan_batch(&mut cursor),
        _ => ScannedFrame::Noise,
    }
}

/// Finds an `error` that is not `null` among the members after the payload of a response, and returns its offset.
/// `position` is the end of the payload.
pub fn find_error_after(frame: &[u8], position: usize) -> Option<usize> {
    let mut cursor = FrameCursor { frame, position };
    loop {
        cursor.skip_space();
        match cursor.peek()? {
            b',' => cursor.position += 1,
            b'"' => {
                let key = cursor.skip_string()?;
                cursor.skip_space();
                cursor.position += usize::from(cursor.peek() == Some(b':'));
                cursor.skip_space();
                if &frame[key] == b"\"error\"" && !cursor.is_null() {
                    return cursor.peek().map(|_| cursor.position);
                }
                if !cursor.skip_value() {
                    return None;
                }
            }
            // Most responses end here.
            _ => return None,
        }
    }
}

/// Finds the end of the value at `position`. `None` if there is none.
pub fn find_value_end(frame: &[u8], position: usize) -> Option<usize> {
    let mut cursor = FrameCursor { frame, position };
    cursor.skip_value().then_some(cursor.position)
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
    // A result of `null` may be followed by an error.
    if rest.get(space) == Some(&b'n') {
        return None;
    }
    let payload_start = frame.len() - rest.len() + space;
    let id_text = Some(START.len()..START.len() + digits.len());
    Some(ScannedFrame::Response { id: ResponseId::Number(id), id_text, is_error: false, payload_start })
}

/// The top-level keys of an object that classify it. If a key occurs twice, the first one counts.
#[derive(Default)]
struct ObjectKeys {
    /// Whether there is `jsonrpc`.
    has_version: bool,
    /// The range of the id's JSON text.
    id: Option<Range<usize>>,
    method: Option<MethodName>,
    /// The offset of the value of `params`.
    params: Option<usize>,
    payload: Option<Payload>,
    /// A result of `null`. Some servers write it next to an error.
    null_result: Option<Payload>,
}

/// The payload of a response.
#[derive(Clone, Copy)]
struct Payload {
    /// The offset of its value.
    start: usize,
    /// Whether it is an `error` rather than a `result`.
    is_error: bool,
}

/// Classifies the object at the cursor.
fn scan_object(cursor: &mut FrameCursor<'_>) -> ScannedFrame {
    cursor.position += 1;
    let mut keys = ObjectKeys::default();
    loop {
        cursor.skip_space();
        match cursor.peek() {
            Some(b',') => {
                cursor.position += 1;
                continue;
            }
            Some(b'"') => {}
            Some(b'}') => {
                cursor.position += 1;
                break;
            }
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
        let may_be_payload = keys.payload.is_none() && keys.method.is_none();
        match &cursor.frame[key] {
            b"\"result\"" if cursor.is_null() => {
                keys.null_result.get_or_insert(Payload { start, is_error: false });
            }
            b"\"result\"" if may_be_payload => keys.payload = Some(Payload { start, is_error: false }),
            // Some servers write `"error":null` next to a result.
            b"\"error\"" if may_be_payload && !cursor.is_null() => {
                keys.payload = Some(Payload { start, is_error: true });
            }
            b"\"params\"" if keys.params.is_none() => keys.params = Some(start),
            b"\"jsonrpc\"" => keys.has_version = true,
            b"\"id\"" if keys.id.is_none() => {
                if !cursor.skip_value() {
                    return ScannedFrame::Noise;
                }
                keys.id = Some(start..cursor.position);
            }
            b"\"method\"" if keys.method.is_none() => {
                if !cursor.skip_value() {
                    return ScannedFrame::Noise;
                }
                let Some(name) = parse_method(&cursor.frame[start..cursor.position]) else {
                    return ScannedFrame::Noise;
                };
                keys.method = Some(name);
            }
            _ => {}
        }
        // The response is known, so the payload, which may be long, is not walked.
        if let (Some(payload), Some(id), None) = (keys.payload, &keys.id, &keys.method) {
            return response(cursor.frame, id.clone(), payload);
        }
        if cursor.position == start && !cursor.skip_value() {
            return ScannedFrame::Noise;
        }
    }
    keys.classify(cursor.frame)
}

impl ObjectKeys {
    /// Classifies an object that was walked to its end.
    fn classify(self, frame: &[u8]) -> ScannedFrame {
        let ObjectKeys { has_version, id, method, params, payload, null_result } = self;
        match (method, id, payload.or(null_result)) {
            // An id of `null` counts as absent: the server expects no response.
            (Some(method), Some(id), _) if &frame[id.clone()] != b"null" => {
                ScannedFrame::Request { id, method, params }
            }
            (Some(method), _, _) => ScannedFrame::Notification { method, params },
            (None, None, Some(Payload { start, is_error })) => ScannedFrame::Response {
                id: ResponseId::Absent,
                id_text: None,
                is_error,
                payload_start: start,
            },
            (None, Some(id), Some(payload)) => response(frame, id, payload),
            (None, Some(id), None) if has_version => match parse_response_id(&frame[id]) {
                ResponseId::Number(id) => ScannedFrame::EmptyResponse(id),
                ResponseId::Absent | ResponseId::Foreign => ScannedFrame::Noise,
            },
            (None, _, None) => ScannedFrame::Noise,
        }
    }
}

fn response(frame: &[u8], id: Range<usize>, payload: Payload) -> ScannedFrame {
    let Payload { start, is_error } = payload;
    ScannedFrame::Response {
        id: parse_response_id(&frame[id.clone()]),
        id_text: Some(id),
        is_error,
        payload_start: start,
    }
}

/// Finds the messages after the first one, which begins at `start` and ends at the cursor. `None` if there are none.
fn scan_further_messages(cursor: &mut FrameCursor<'_>, start: usize) -> Option<ScannedFrame> {
    let first = start..cursor.position;
    cursor.skip_space();
    cursor.peek()?;
    let mut items = vec![first];
    loop {
        cursor.skip_space();
        match cursor.peek() {
            None if items.len() > 1 => return Some(ScannedFrame::Batch(items)),
            Some(b'{') if items.len() < MAX_BATCH_ITEMS => {
                let start = cursor.position;
                if !cursor.skip_value() {
                    return None;
                }
                items.push(start..cursor.position);
            }
            None | Some(_) => return None,
        }
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
        Some(_) | None => parse_whole_number(digits).map_or(ResponseId::Foreign, ResponseId::Number),
    }
}

/// Parses a whole number that is written as a fraction or with an exponent: `7.0`, `7e0`.
fn parse_whole_number(text: &[u8]) -> Option<u64> {
    /// The first whole number that a fraction does not represent exactly.
    const LIMIT: f64 = (1_u64 << 53) as f64;
    let number: f64 = serde_json::from_slice(text).ok()?;
    let is_whole = (0.0..LIMIT).contains(&number) && number.fract() == 0.0;
    is_whole.then_some(number as u64)
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
