//! What the steps on the way of a message cost, one by one: a pipe's lines, what a frame is, and a stream's events.
//!
//! What memchr and serde_json take for the same bytes stands beside it, so that a figure can be read as a ratio: the one
//! finds line breaks and keeps nothing, the other walks over a frame to its end and finds nothing in it.

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use mcp_transport::internal::parts;
use serde::de::IgnoredAny;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Lengths of a result's text, for growth.
const LENGTHS: [usize; 4] = [100, 1_000, 100_000, 1_000_000];

/// How much a read brings at once, in bytes.
const PIECE: usize = 16 << 10;

/// An answer as most servers write it.
fn usual(length: usize) -> String {
    let text = "x".repeat(length);
    format!(r#"{{"jsonrpc":"2.0","id":1234,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

/// An answer whose id stands behind its result.
fn unusual(length: usize) -> String {
    let text = "x".repeat(length);
    format!(r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}]}},"jsonrpc":"2.0","id":1234}}"#)
}

/// At least 64 KiB of it, in pieces as they are read.
fn pieces(one: &str) -> Vec<Bytes> {
    let all = Bytes::from(one.repeat((64 << 10) / one.len() + 1));
    (0..all.len()).step_by(PIECE).map(|at| all.slice(at..all.len().min(at + PIECE))).collect()
}

fn total(pieces: &[Bytes]) -> BytesCount {
    BytesCount::new(pieces.iter().map(Bytes::len).sum::<usize>())
}

#[divan::bench(args = LENGTHS)]
fn lines_of_a_pipe(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("{}\n", usual(length)));
    bencher.counter(total(&pieces)).bench_local(|| parts::lines(black_box(&pieces)));
}

#[divan::bench(args = LENGTHS)]
fn lines_by_memchr_alone(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("{}\n", usual(length)));
    let count = |piece: &Bytes| memchr::memchr_iter(b'\n', piece).count();
    bencher.counter(total(&pieces)).bench_local(|| black_box(&pieces).iter().map(count).sum::<usize>());
}

#[divan::bench(args = LENGTHS)]
fn scan_an_answer(bencher: Bencher<'_, '_>, length: usize) {
    let frame = usual(length);
    bencher.bench_local(|| parts::answered(black_box(frame.as_bytes())).expect("it is an answer"));
}

#[divan::bench(args = LENGTHS)]
fn scan_an_answer_with_its_id_behind(bencher: Bencher<'_, '_>, length: usize) {
    let frame = unusual(length);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench_local(|| parts::answered(black_box(frame.as_bytes())).expect("it is an answer"));
}

#[divan::bench(args = LENGTHS)]
fn walk_by_serde_json_alone(bencher: Bencher<'_, '_>, length: usize) {
    let frame = unusual(length);
    bencher
        .counter(BytesCount::of_str(&frame))
        .bench_local(|| serde_json::from_str::<IgnoredAny>(black_box(&frame)).expect("it is JSON"));
}

#[divan::bench(args = LENGTHS)]
fn events_of_a_stream(bencher: Bencher<'_, '_>, length: usize) {
    let pieces = pieces(&format!("event: message\nid: 7\ndata: {}\n\n", usual(length)));
    bencher.counter(total(&pieces)).bench_local(|| parts::messages(black_box(&pieces)));
}
