//! Properties of mcp-transport. The models are written for clarity, not for speed.

use std::collections::BTreeMap;

use bytes::Bytes;
use mcp_host_model::MethodName;
use mcp_host_transport::internal::scan::{ResponseId, ScannedFrame, scan};
use mcp_host_transport::internal::{Event, EventStreamParser, Line, LineBuffer, Redactor, error_body};
use serde_json::Value;
use serde_json::value::RawValue;

/// One frame: serde_json and the scanner agree.
pub fn scan_frame(bytes: &[u8]) {
    let scanned = scan(bytes);
    let within = |it: &std::ops::Range<usize>| assert!(bytes.get(it.clone()).is_some(), "{it:?} is outside");
    match &scanned {
        ScannedFrame::Response { payload_start, .. } => assert!(*payload_start <= bytes.len()),
        ScannedFrame::Request { id, method: _, params } => {
            within(id);
            assert!(params.is_none_or(|it| it <= bytes.len()));
        }
        ScannedFrame::Notification { method: _, params } => {
            assert!(params.is_none_or(|it| it <= bytes.len()));
        }
        ScannedFrame::Batch(items) => items.iter().for_each(within),
        ScannedFrame::EmptyResponse(_) | ScannedFrame::Noise => {}
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
        let ScannedFrame::Batch(found) = scanned else { panic!("an array is a batch, not {scanned:?}") };
        let found: Vec<&str> = found.into_iter().map(|it| &text[it]).collect();
        assert_eq!(found, items.iter().map(|it| it.get()).collect::<Vec<_>>());
        return;
    }
    // The scanner does not decode escaped keys; no server writes them.
    if bytes.contains(&b'\\') || serde_json::from_str::<Value>(text).is_err() {
        return;
    }
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(text) else { return };
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut is_repeated = false;
    for (key, value) in &members {
        is_repeated |= first.insert(key, value.get()).is_some();
    }
    if is_repeated {
        return;
    }
    let get = |key: &str| first.get(key).copied();
    let error = get("error").filter(|it| *it != "null");
    let name = || get("method").and_then(|it| serde_json::from_str::<MethodName>(it).ok());
    match scanned {
        ScannedFrame::Response { id, id_text, is_error, payload_start } => {
            assert_eq!(id_text.map(|it| &text[it]), get("id"));
            let value = if is_error { error } else { get("result") };
            assert!(text[payload_start..].starts_with(value.expect("the payload exists")));
            let want = match get("id") {
                None | Some("null") => ResponseId::Absent,
                Some(it) => number(it).map_or(ResponseId::Foreign, ResponseId::Number),
            };
            assert_eq!(id, want);
        }
        ScannedFrame::Request { id, method, params } => {
            assert_eq!((Some(&text[id]), Some(method)), (get("id"), name()));
            assert_eq!(params.is_some(), get("params").is_some());
        }
        ScannedFrame::Notification { method, params } => {
            assert_eq!(Some(method), name());
            assert!(get("id").is_none_or(|it| it == "null"));
            assert_eq!(params.is_some(), get("params").is_some());
        }
        ScannedFrame::EmptyResponse(id) => {
            assert_eq!(get("id").and_then(number), Some(id));
            assert!(get("result").is_none() && error.is_none() && get("method").is_none());
        }
        ScannedFrame::Noise => {
            let has_payload = get("result").is_some() || error.is_some();
            assert!(get("method").map_or(!has_payload, |_| name().is_none()), "{text}");
        }
        ScannedFrame::Batch(_) => panic!("an object is not a batch"),
    }
}

/// The whole number of an id in any form, with or without quotes.
fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.parse().ok();
    }
    let number: f64 = serde_json::from_str(digits).ok()?;
    (number >= 0.0 && number < (1_u64 << 53) as f64 && number.fract() == 0.0).then_some(number as u64)
}

/// The members of an object in order, duplicates included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> serde::de::Visitor<'de> for MembersVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::new();
                while let Some(member) = map.next_entry()? {
                    res.push(member);
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

/// Cuts the input into chunks: the first byte is the number of cuts, the next bytes are their positions.
fn split_chunks(bytes: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let Some((count, rest)) = bytes.split_first() else { return (bytes, Vec::new()) };
    let (positions, text) = rest.split_at(usize::from(*count % 16).min(rest.len()));
    let mut cuts: Vec<usize> = positions.iter().map(|it| usize::from(*it % 128) * text.len() / 127).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    (text, cuts.windows(2).map(|it| &text[it[0]..it[1]]).collect())
}

/// Lines of a byte stream in any chunks, with a small limit.
pub fn stdio_lines(bytes: &[u8]) {
    const LIMIT: usize = 24;
    let (text, chunks) = split_chunks(bytes);
    let mut lines = LineBuffer::new(LIMIT);
    let mut got: Vec<Result<Vec<u8>, usize>> = Vec::new();
    for chunk in chunks {
        lines.read_buffer().extend_from_slice(chunk);
        while let Some(line) = lines.next_line() {
            got.push(match line {
                Line::Whole(it) => Ok(it.to_vec()),
                Line::TooLong(it) => Err(it.len),
            });
        }
    }
    let rest = lines.take_rest();

    let mut want = Vec::new();
    let mut left = text;
    let mut has_started = false;
    let trim = |line: &[u8], has_started: &mut bool| {
        let first = !std::mem::replace(has_started, true);
        let line = if first { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let end = line.len() - line.iter().rev().take_while(|it| matches!(it, b'\r' | b'\n')).count();
        line[..end].to_vec()
    };
    while let Some(at) = left.iter().position(|it| *it == b'\n') {
        let (line, after) = left.split_at(at + 1);
        left = after;
        if line.len() > LIMIT {
            want.push(Err(line.len()));
        } else {
            want.extend(Some(trim(line, &mut has_started)).filter(|it| !it.is_empty()).map(Ok));
        }
    }
    assert_eq!(got, want);
    if left.len() <= LIMIT {
        let last = Some(trim(left, &mut has_started)).filter(|it| !it.is_empty());
        assert_eq!(rest.map(|it| it.to_vec()), last);
    }
}

/// An event stream in any chunks, compared with the standard's algorithm.
pub fn event_stream(bytes: &[u8]) {
    let (text, chunks) = split_chunks(bytes);
    // A large limit: nothing is discarded.
    let mut stream = EventStreamParser::new(1 << 20);
    let mut got = Vec::new();
    for chunk in &chunks {
        stream.feed(Bytes::copy_from_slice(chunk), |it| got.push(it));
    }
    let want: Vec<Event> = reference_events(text)
        .into_iter()
        .filter_map(|(kind, data)| match &kind[..] {
            _ if data.is_empty() => None,
            b"" | b"message" => Some(Event::Message(data.into())),
            b"endpoint" => Some(Event::Endpoint(data.into())),
            _ => None,
        })
        .collect();
    assert_eq!(got, want);
    let rest = stream.finish(|it| !it.is_empty());
    assert!(rest.is_none_or(|it| !it.is_empty()));

    // A small limit: what is kept fits.
    const LIMIT: usize = 16;
    let mut stream = EventStreamParser::new(LIMIT);
    for chunk in chunks {
        stream.feed(Bytes::copy_from_slice(chunk), |it| match it {
            Event::Message(it) | Event::Endpoint(it) => {
                let breaks = it.iter().filter(|it| **it == b'\n').count();
                assert!(it.len() <= LIMIT + breaks, "{it:?}");
            }
            Event::TooLarge(it) => assert!(it.len > LIMIT, "{it:?}"),
        });
        stream.take_overhead();
    }
    stream.finish(|_| true);
}

/// The events of a stream by the standard: type and data; an incomplete event is dropped.
fn reference_events(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut lines = vec![Vec::new()];
    let mut bytes = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if(|it| **it == b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("there is a line").push(*byte),
        }
    }
    // The last line is incomplete.
    lines.pop();
    let (mut res, mut kind, mut data) = (Vec::new(), Vec::new(), Vec::<Vec<u8>>::new());
    for line in lines {
        if line.is_empty() {
            res.push((std::mem::take(&mut kind), std::mem::take(&mut data).join(&b'\n')));
            continue;
        }
        let at = line.iter().position(|it| *it == b':');
        let (name, value) = at.map_or((&line[..], &[][..]), |it| (&line[..it], &line[it + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => data.push(value.to_vec()),
            b"event" => kind = value.to_vec(),
            _ => {}
        }
    }
    res
}

/// The message of an error response: it is one line without secrets, whatever the response contains.
pub fn error_response(bytes: &[u8]) {
    const SECRET: &str = "hunter2-hunter2";
    let end = memchr::memmem::find(bytes, b"\n\n").unwrap_or(bytes.len());
    let mut headers = http::HeaderMap::new();
    for line in bytes[..end].split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) =
            (http::HeaderName::from_bytes(name), http::HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    let body = Bytes::copy_from_slice(bytes.get(end + 2..).unwrap_or_default());
    let redactor = Redactor::new([mcp_host_model::Secret::from(SECRET)].iter());
    let body = error_body::parse_error_body(&body, Some(7), &redactor);
    let message = error_body::error_response(401, &headers, body, &redactor).to_string();
    assert!(!message.contains(SECRET) && message.len() < 4096, "{message:?}");
    assert!(!message.contains(|character: char| character.is_control()), "{message:?}");
}
