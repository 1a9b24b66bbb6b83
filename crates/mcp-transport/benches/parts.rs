//! The cost of single steps of processing a message: lines of a pipe, the kind of a frame, and events of a stream.
//!
//! memchr and serde_json process the same bytes for comparison: memchr finds line breaks and keeps nothing, serde_json
//! reads a frame to its end and keeps nothing.

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use mcp_host_transport::internal::scan::{ResponseId, ScannedFrame, scan};
use mcp_host_transport::internal::{Event, EventStreamParser, Line, LineBuffer};
use serde::de::IgnoredAny;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A limit that the measured messages do not reach, in bytes.
const LIMIT: usize = 64 << 20;

/// Lengths of a result's text.
const LENGTHS: [usize; 4] = [100, 1_000, 100_000, 1_000_000];

/// The size of a read, in bytes.
const PIECE: usize = 16 << 10;

/// A response with its id before its result, as most servers write it.
fn id_first(length: usize) -> String {
    let text = "x".repeat(length);
    format!(r#"{{"jsonrpc":"2.0","id":1234,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

/// A response with its id after its result.
fn id_last(length: usize) -> String {
    let text = "x".repeat(length);
    format!(r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}]}},"jsonrpc":"2.0","id":1234}}"#)
}

/// At least 64 KiB of repeated messages, in pieces as they are read.
fn pieces(message: &str) -> Vec<Bytes> {
    let all = Bytes::from(message.repeat((64 << 10) / message.len() + 1));
    (0..all.len()).step_by(PIECE).map(|at| all.slice(at..all.len().min(at + PIECE))).collect()
}

fn total(pieces: &[Bytes]) -> BytesCount {
    BytesCount::new(pieces.iter().map(Bytes::len).sum::<usize>())
}

/// Counts the complete lines in chunks from a pipe.
fn count_lines(pieces: &[Bytes]) -> usize {
    let mut lines = LineBuffer::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        lines.read_buffer().extend_from_slice(piece);
        while let Some(line) = lines.next_line() {
            res += usize::from(matches!(line, Line::Whole(_)));
        }
    }
    res
}

/// The id of the call that a frame responds to.
fn response_id(frame: &[u8]) -> Option<u64> {
    match scan(frame) {
        ScannedFrame::Response { id: ResponseId::Number(id), .. } => Some(id),
        ScannedFrame::Response { id: ResponseId::Absent | ResponseId::Foreign, .. }
        | ScannedFrame::EmptyResponse(_)
        | ScannedFrame::Request { .. }
        | ScannedFrame::Notification { .. }
        | ScannedFrame::Batch(_)
        | ScannedFrame::Noise => None,
    }
}

/// Counts the messages in chunks of an event stream.
fn count_events(pieces: &[Bytes]) -> usize {
    let mut stream = EventStreamParser::new(LIMIT);
    let mut res = 0;
    for piece in pieces {
        stream.feed(piece.clone(), |event| res += usize::from(matches!(event, Event::Message(_))));
    }
    res
}

#[divan::bench(args = LENGTHS)]
fn lines_of_a_pipe(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("{}\n", id_first(length)));
    bencher.counter(total(&pieces)).bench_local(|| count_lines(black_box(&pieces)));
}

#[divan::bench(args = LENGTHS)]
fn lines_by_memchr_alone(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("{}\n", id_first(length)));
    let count = |piece: &Bytes| memchr::memchr_iter(b'\n', piece).count();
    bencher.counter(total(&pieces)).bench_local(|| black_box(&pieces).iter().map(count).sum::<usize>());
}

#[divan::bench(args = LENGTHS)]
fn scan_an_answer(bencher: Bencher<'_, '_>, length: usize) {
    let frame = id_first(length);
    bencher.bench_local(|| response_id(black_box(frame.as_bytes())).expect("a response"));
}

#[divan::bench(args = LENGTHS)]
fn scan_an_answer_with_its_id_behind(bencher: Bencher<'_, '_>, length: usize) {
    let frame = id_last(length);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench_local(|| response_id(black_box(frame.as_bytes())).expect("a response"));
}

#[divan::bench(args = LENGTHS)]
fn walk_by_serde_json_alone(bencher: Bencher<'_, '_>, length: usize) {
    let frame = id_last(length);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench_local(|| serde_json::from_str::<IgnoredAny>(black_box(&frame)).expect("it is JSON"));
}

#[divan::bench(args = LENGTHS)]
fn events_of_a_stream(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("event: message\nid: 7\ndata: {}\n\n", id_first(length)));
    bencher.counter(total(&pieces)).bench_local(|| count_events(black_box(&pieces)));
}
