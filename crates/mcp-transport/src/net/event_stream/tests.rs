//! Tests of the event stream parser, with different chunks.

use proptest::prelude::*;

use super::*;

fn describe(event: &Event) -> String {
    match event {
        Event::Message(data) => String::from_utf8_lossy(data).into_owned(),
        Event::Endpoint(data) => format!("<endpoint> {}", String::from_utf8_lossy(data)),
        Event::TooLarge(it) => {
            let OversizedMessage { head, tail, len: _ } = it;
            format!("<too large> {}…{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
        }
    }
}

/// Describes the events of a stream, its last id and its retry.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> String {
    let mut stream = EventStreamParser::new(limit);
    let mut res = Vec::new();
    for chunk in chunks {
        stream.feed(Bytes::copy_from_slice(chunk), |it| res.push(describe(&it)));
    }
    if let Some(rest) = stream.finish(|it| !it.ends_with(b"cut")) {
        res.push(format!("<rest> {}", String::from_utf8_lossy(&rest)));
    }
    if let Some(id) = &stream.last_id {
        res.push(format!("<id> {}", String::from_utf8_lossy(id)));
    }
    if let Some(retry) = stream.retry {
        res.push(format!("<retry> {}", retry.as_millis()));
    }
    res.join(" | ")
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(read([text.as_bytes()], 1000), want, "in one piece: {text:?}");
    assert_eq!(read(text.as_bytes().chunks(1), 1000), want, "byte by byte: {text:?}");
}

#[test]
fn events_end_with_an_empty_line_of_any_kind() {
    check("data: a\n\ndata: b\n\n", "a | b");
    check("data: a\r\n\r\ndata: b\r\n\r\n", "a | b");
    check("data: a\r\rdata: b\r\r", "a | b");
    check("data: a\r\n\ndata: b\n\r\n", "a | b");
    check("\n\n\r\r\n\n", "");
}

#[test]
fn fields_follow_the_standard() {
    check("event: message\nid: 7\ndata: a\n\n", "a | <id> 7");
    check("data:a\n\ndata:  b\n\n", "a |  b");
    check("data: a\ndata: b\ndata\ndata:c\n\n", "a\nb\n\nc");
    check(": a comment\ndata: a\n:\n\n", "a");
    check("other: x\ndata: a\nDATA: y\n\n", "a");
    check("data: {\"a\": \"b: c\"}\n\n", "{\"a\": \"b: c\"}");
}

#[test]
fn truncated_event_leaves_no_id() {
    check("id: 1\ndata: a\n\nid: 2\ndata: cut", "a | <id> 1");
    check("id: 1\ndata: a\n\nid: 2", "a | <id> 1");
    check("id: 1\ndata: a\n\nid: 2\ndata: b", "a | <rest> b | <id> 2");
}

#[test]
fn only_messages_with_data_are_messages() {
    check("event: ping\ndata: a\n\ndata: b\n\n", "b");
    check("event:\ndata: a\n\n", "a");
    check("id: 1\ndata:\n\nid: 2\n\n", "<id> 2");
    check("event: ping\n\ndata: a\n\n", "a");
}

#[test]
fn endpoint_event_is_distinguished_from_a_message() {
    check("event: endpoint\ndata: /messages?s=1\n\ndata: a\n\n", "<endpoint> /messages?s=1 | a");
    check("data: /m\r\nevent: endpoint\r\n\r\n", "<endpoint> /m");
    check("event: endpoint\nevent: ping\ndata: /m\n\n", "");
    check("event: endpoint\n\ndata: a\n\n", "a");
    check("event: endpoint\ndata: /m", "");
}

#[test]
fn id_counts_when_its_event_is_complete() {
    check("id: 1\ndata: a\n\nid: 2\ndata: b\nid: 3\n\n", "a | b | <id> 3");
    check("id: 1\ndata: a\n\ndata: b\n\n", "a | b | <id> 1");
    check("id: 1\u{0}2\ndata: a\n\n", "a");
    check("id\ndata: a\n\n", "a | <id> ");
}

#[test]
fn retry_is_a_number() {
    check("retry: 250\n\n", "<retry> 250");
    check("retry: 250\nretry: soon\nretry: -1\nretry:\n\n", "<retry> 250");
    check("retry: 99999999999999999999999\n\n", "");
}

#[test]
fn byte_order_mark_is_skipped_once() {
    check("\u{feff}data: a\n\n", "a");
    check("\u{feff}\u{feff}data: a\n\n", "");
    check("data: a\n\n\u{feff}data: b\n\n", "a");
}

#[test]
fn end_without_an_empty_line_leaves_a_rest() {
    check("data: a\n\ndata: b\n", "a | <rest> b");
    check("data: b", "<rest> b");
    check("data: a\n\n", "a");
}

#[test]
fn event_is_bounded_with_any_chunks() {
    let limited = |text: &str, limit| {
        let whole = read([text.as_bytes()], limit);
        assert_eq!(read(text.as_bytes().chunks(1), limit), whole, "{text:?}");
        whole
    };
    assert_eq!(limited("data: 12345\n\ndata:12345\n\n", 5), "12345 | 12345");
    assert_eq!(limited("data: 123456\n\ndata: a\n\n", 5), "<too large> 123456…123456 | a");
    assert_eq!(limited("data: 123456\r\n\r\ndata: a\r\n\r\n", 5), "<too large> 123456…123456 | a");
    assert_eq!(
        limited("data: 12345678901234567\nid: 3\n\ndata: a\n\n", 5),
        "<too large> 12345678901234567id: 3…12345678901234567id: 3 | a"
    );
    assert_eq!(
        limited("id: 3\ndata: 123\ndata: 456\n\nid: 4\n\n", 5),
        "<too large> 123\n456…123\n456 | <id> 4"
    );
    assert_eq!(
        limited("\u{feff}data: 123456789012345\n\ndata: a\n\n", 5),
        "<too large> 123456789012345…123456789012345 | a"
    );
    assert_eq!(limited("event: ping\ndata: 123456789012345\n\ndata: a\n\n", 5), "a");
    assert_eq!(limited("event: endpoint\ndata: 123456789012345\n\ndata: a\n\n", 5), "a");
    assert_eq!(limited("data: a\n\ndata: 123456789012345678901234", 5), "a");
    assert_eq!(limited("data: 12\ndata: 34\n\n", 5), "12\n34");
    let comment = format!("data: 1\n: {}\ndata: 2\n\n", "x".repeat(2000));
    assert_eq!(limited(&comment, 50), "1\n2", "a comment may be long, and is not kept");
    assert_eq!(limited(&("data\n".repeat(20) + "\ndata: a\n\n"), 5).chars().last(), Some('a'));
}

#[test]
fn line_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: payload\n\n");
    let mut stream = EventStreamParser::new(100);
    let mut seen = None;
    stream.feed(chunk.clone(), |it| seen = Some(it));
    let Some(Event::Message(seen)) = seen else { panic!("no message") };
    assert_eq!(seen.as_ptr(), chunk[6..].as_ptr());
}

proptest! {
    #[test]
    fn chunk_boundaries_do_not_matter(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "\n", "\r", "\r\n", "data: ", "data", "data:", "id: ", "event: ", "message", "ping", "retry: ",
                    "12", ":",
                " ", "{\"a\":1}", "\u{feff}", "x", "\u{0}",
            ]),
            0..40,
        ),
        cuts in prop::collection::vec(0usize..200, 0..8),
        limit in 1usize..60,
    ) {
        let text = pieces.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|it| &text.as_bytes()[it[0]..it[1]]);
        prop_assert_eq!(read(chunks, limit), read([text.as_bytes()], limit));
    }
}

#[test]
fn endless_event_is_detected() {
    const BOUND: usize = 64 << 20;
    // The start of the stream, and the chunk that follows repeatedly.
    let check = |begin: &'static str, piece: String| {
        let mut stream = EventStreamParser::new(100);
        stream.feed(Bytes::from_static(begin.as_bytes()), |it| panic!("{it:?}"));
        let chunk = Bytes::from(piece);
        for _ in 0..BOUND / chunk.len() - 1 {
            stream.feed(chunk.clone(), |it| panic!("{it:?}"));
            assert_eq!(stream.endless_bytes(), None, "{begin:?}");
        }
        for _ in 0..2 {
            stream.feed(chunk.clone(), |it| panic!("{it:?}"));
        }
        assert!(
            stream.endless_bytes().is_some_and(|it| it > BOUND),
            "{begin:?}: {:?}",
            stream.endless_bytes()
        );
        // The parser still parses what follows.
        let mut events = Vec::new();
        stream.feed(Bytes::from_static(b"\n\ndata: a\n\n"), |it| events.push(describe(&it)));
        assert_eq!((stream.endless_bytes(), events.last().map(|it| &**it)), (None, Some("a")), "{begin:?}");
    };
    let piece = "x".repeat(1 << 20);
    check(": ", piece.clone());
    check("id: ", piece.clone());
    check("data: ", piece.clone());
    check("event: ping\ndata: ", piece);
    // Line breaks do not count, so slightly more bytes are needed.
    let lines = format!("data: {}\n", "x".repeat(1_000)).repeat(100);
    let mut stream = EventStreamParser::new(100);
    let mut fed = 0;
    while stream.endless_bytes().is_none() && fed < 2 * BOUND {
        stream.feed(Bytes::from(lines.clone()), |it| panic!("{it:?}"));
        fed += lines.len();
    }
    assert!((BOUND..BOUND * 11 / 10).contains(&fed), "{fed}");
}

#[test]
fn complete_lines_are_unlimited() {
    let mut stream = EventStreamParser::new(100);
    let comments = Bytes::from(format!(": {}\n", "still there ".repeat(10_000)).repeat(10));
    for _ in 0..100 {
        stream.feed(comments.clone(), |it| panic!("{it:?}"));
        assert_eq!(stream.endless_bytes(), None);
    }
}

/// Checks the number of unsolicited messages that a stream counts for, with several chunk sizes.
#[track_caller]
fn check_overhead(text: &str, want: usize) {
    for size in [1, 7, text.len()] {
        let mut stream = EventStreamParser::new(1 << 20);
        let mut overhead = 0;
        for chunk in text.as_bytes().chunks(size) {
            stream.feed(Bytes::copy_from_slice(chunk), drop);
            overhead += stream.take_overhead();
        }
        assert_eq!(overhead, want, "{text:.40?} in pieces of {size}");
    }
}

#[test]
fn data_without_a_message_is_counted() {
    check_overhead("event: message\nid: 7\nretry: 5\ndata: {}\n\n", 0);
    check_overhead(": ping\ndata: {\ndata: }\n\n", 0);
    check_overhead(": ping\n\n", 2);
    check_overhead(&":\n".repeat(100), 97);
    check_overhead("event: ping\ndata: {}\n\n\n", 3);
    check_overhead("data\n\n", 1);
    check_overhead(&format!(": {}\n\ndata: {{}}\n\n", "x".repeat(40_960)), 12);
    // Many short lines of one event are charged, a few are free.
    check_overhead(&format!("{}\n", "data: x\n".repeat(63)), 0);
    check_overhead(&format!("{}\n", "data: x\n".repeat(640)), 10);
}
