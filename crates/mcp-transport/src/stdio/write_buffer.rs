//! The write buffer of a pipe: senders append lines to a shared buffer, and the writer flushes it.
//!
//! A message is copied and freed in the sending thread, unless it is long. When the writer freed many messages at once
//! that other threads had allocated, the threads contended for the allocator.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;

use super::encoding::StreamEncoding;
use crate::transport::{DirectSink, Outbound, OutboundQueue, yield_once};

/// Messages up to this length are copied into a shared chunk.
const MAX_COPIED_BYTES: usize = 64 << 10;

/// Buffer capacity that is kept after a write.
const RETAINED_BYTES: usize = 16 << 10;

/// The writer's end of the buffer.
pub(super) struct WriteBuffer {
    queue: OutboundQueue,
    /// Commands that were queued before this buffer replaced the queue.
    earlier: WriteBatch,
    shared: Arc<SharedBuffer>,
}

/// A batch of lines to write.
#[derive(Default)]
pub(super) struct WriteBatch {
    /// Complete chunks in order.
    chunks: Vec<Bytes>,
    /// The bytes after the chunks.
    tail: Vec<u8>,
    /// Number of messages.
    messages: usize,
    /// The size of the messages as counted by the flow control.
    queued_bytes: usize,
}

/// State shared by senders and the writer.
struct SharedBuffer {
    encoding: StreamEncoding,
    state: Mutex<BufferState>,
}

/// The buffered messages, and the state of the writer.
#[derive(Default)]
struct BufferState {
    /// The messages for the next write.
    batch: WriteBatch,
    /// The writer's waker while it waits.
    waker: Option<Waker>,
    /// The writer was dropped.
    is_closed: bool,
}

impl WriteBuffer {
    /// Makes the senders of `queue` use a new buffer instead.
    pub(super) fn new(queue: OutboundQueue, encoding: StreamEncoding) -> WriteBuffer {
        let shared = Arc::new(SharedBuffer { encoding, state: Mutex::default() });
        queue.set_direct_sink(Arc::clone(&shared) as _);
        WriteBuffer { queue, earlier: WriteBatch::default(), shared }
    }

    /// Waits for messages and returns their approximate number; `None` when the engine has ended. Cancel-safe.
    pub(super) async fn wait(&mut self) -> Option<usize> {
        poll_fn(|cx| self.poll_messages(cx)).await
    }

    /// Yields once so that tasks that are ready to send join this write. A sender wakes the writer before other tasks
    /// have sent, and a write for each message costs more than the wait. A full batch is written at once.
    pub(super) async fn wait_for_senders(&self, messages: usize) {
        if !self.queue.flow.is_full_batch(messages) {
            yield_once().await;
        }
    }

    /// Moves all queued messages into `into`, which is empty.
    pub(super) fn take(&mut self, into: &mut WriteBatch) {
        // In this order: a command that a task sent earlier through the queue has arrived there by now.
        mem::swap(&mut self.shared.state.lock().batch, into);
        while let Some(command) = self.queue.try_next() {
            self.earlier.add_queued(command, self.shared.encoding);
        }
        self.queue.flow.start_batch();
        if self.earlier.messages > 0 {
            into.prepend(mem::take(&mut self.earlier));
        }
    }

    /// Clears a written batch: its bytes no longer count as queued.
    pub(super) fn release(&self, batch: &mut WriteBatch) {
        self.queue.release_bytes(batch.queued_bytes);
        batch.clear();
    }

    /// The number of queued messages; `None` when the engine has ended.
    fn poll_messages(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        if self.earlier.messages > 0 {
            return Poll::Ready(Some(self.earlier.messages));
        }
        if let Some(messages) = self.shared.poll_messages(cx) {
            return Poll::Ready(Some(messages));
        }
        match self.queue.poll_next(cx) {
            Poll::Ready(Some(command)) => self.earlier.add_queued(command, self.shared.encoding),
            // The last message may have arrived since the previous check.
            Poll::Ready(None) => return Poll::Ready(self.shared.poll_messages(cx)),
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(Some(self.earlier.messages))
    }
}

impl Drop for WriteBuffer {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let (batch, waker) = (mem::take(&mut state.batch), state.waker.take());
        // Dropped outside the lock, because the waker and the bytes may run any code then.
        drop(state);
        drop((batch, waker));
    }
}

impl SharedBuffer {
    /// The number of queued messages; registers the waker if there are none.
    fn poll_messages(&self, cx: &Context<'_>) -> Option<usize> {
        let mut state = self.state.lock();
        if state.batch.messages > 0 {
            return Some(state.batch.messages);
        }
        let replaced = match &state.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            Some(_) | None => state.waker.replace(cx.waker().clone()),
        };
        drop(state);
        drop(replaced);
        None
    }
}

impl DirectSink for SharedBuffer {
    fn send(&self, command: Outbound) {
        let queued_bytes = command.bytes();
        let Some(body) = line_body(command, self.encoding) else { return };
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.batch.add(&body, queued_bytes);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl WriteBatch {
    /// The chunks to write, in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().map(|it| &it[..]).chain([&self.tail[..]])
    }

    /// Clears the batch and keeps only a small buffer.
    fn clear(&mut self) {
        let mut tail = mem::take(&mut self.tail);
        tail.clear();
        tail.shrink_to(RETAINED_BYTES);
        *self = WriteBatch { tail, ..WriteBatch::default() };
    }

    /// Adds a message as a line.
    fn add(&mut self, body: &Bytes, queued_bytes: usize) {
        if self.tail.len() + body.len() >= MAX_COPIED_BYTES && !self.tail.is_empty() {
            self.chunks.push(mem::take(&mut self.tail).into());
        }
        if body.len() <= MAX_COPIED_BYTES {
            append_line(&mut self.tail, body);
        } else {
            self.chunks.push(body.clone());
        }
        self.tail.push(b'\n');
        self.messages += 1;
        self.queued_bytes += queued_bytes;
    }

    /// Adds a command from the queue, which has already released its bytes.
    fn add_queued(&mut self, command: Outbound, encoding: StreamEncoding) {
        if let Some(body) = line_body(command, encoding) {
            self.add(&body, 0);
        }
    }

    /// Puts another batch before this one.
    fn prepend(&mut self, earlier: WriteBatch) {
        let WriteBatch { mut chunks, tail, messages, queued_bytes } = earlier;
        chunks.push(tail.into());
        chunks.append(&mut self.chunks);
        self.chunks = chunks;
        self.messages += messages;
        self.queued_bytes += queued_bytes;
    }
}

/// The body of the line to write, if any. Line breaks in long messages, which are not copied later, are replaced here.
fn line_body(command: Outbound, encoding: StreamEncoding) -> Option<Bytes> {
    let body = match command {
        Outbound::Send(message) => message.body,
        Outbound::Cancel { id: _, notice } => notice?,
    };
    let body = encoding.encode(body);
    if body.len() <= MAX_COPIED_BYTES || memchr::memchr2(b'\n', b'\r', &body).is_none() {
        return Some(body);
    }
    let mut line = Vec::with_capacity(body.len());
    append_line(&mut line, &body);
    Some(line.into())
}

/// Appends a message with spaces in place of its line breaks, because a line break ends a message on this transport.
fn append_line(line: &mut Vec<u8>, body: &[u8]) {
    let start = line.len();
    // Including the line end.
    line.reserve(body.len() + 1);
    line.extend_from_slice(body);
    let added = &mut line[start..];
    if memchr::memchr2(b'\n', b'\r', added).is_some() {
        for byte in added {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use super::*;
    use crate::transport::{Epoch, MessageHead, OutboundMessage, OutboundSender};

    fn message(body: impl Into<Bytes>) -> Outbound {
        let head = MessageHead::new(None, "m", None);
        Outbound::Send(OutboundMessage { epoch: Epoch(0), head, body: body.into() })
    }

    /// A queue with early messages, and its writer's end.
    fn write_buffer(queued_before: &[&'static str]) -> (OutboundSender, WriteBuffer) {
        let (sender, queue) = OutboundQueue::new();
        queued_before.iter().for_each(|it| sender.send(message(*it)));
        (sender, WriteBuffer::new(queue, StreamEncoding::for_label("utf-8").unwrap()))
    }

    /// The text that would be written now.
    fn take_text(write_buffer: &mut WriteBuffer) -> String {
        let mut batch = WriteBatch::default();
        write_buffer.take(&mut batch);
        let text = batch.chunks().flatten().copied().collect();
        write_buffer.release(&mut batch);
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn messages_are_written_as_lines_in_order() {
        let (sender, mut write_buffer) = write_buffer(&["1", "2"]);
        let long = format!("[\n{}\r\n]", "4".repeat(MAX_COPIED_BYTES));
        sender.send(message("3\n3"));
        sender.send(message(long.clone()));
        sender.send(Outbound::Cancel { id: 1, notice: None });
        sender.send(Outbound::Cancel { id: 1, notice: Some("5".into()) });
        sender.send(message(long.clone()));
        let line = format!("[ {}  ]", "4".repeat(MAX_COPIED_BYTES));
        assert!(write_buffer.wait().await.is_some());
        assert_ne!(sender.queued_bytes(), 0);
        assert_eq!(take_text(&mut write_buffer), format!("1\n2\n3 3\n{line}\n5\n{line}\n"));
        assert_eq!((sender.queued_bytes(), take_text(&mut write_buffer)), (0, String::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn writer_is_woken_by_the_first_message_and_the_end() {
        let (sender, mut write_buffer) = write_buffer(&[]);
        let writing = tokio::spawn(async move {
            let mut batches = Vec::new();
            while let Some(messages) = write_buffer.wait().await {
                batches.push((messages, take_text(&mut write_buffer)));
            }
            batches
        });
        for two in [["1", "2"], ["3", "4"]] {
            // The writer waits while there is nothing to write.
            tokio::time::sleep(Duration::from_secs(1)).await;
            two.into_iter().for_each(|it| sender.send(message(it)));
        }
        drop(sender);
        let batches = tokio::time::timeout(Duration::from_secs(1), writing).await.unwrap().unwrap();
        assert_eq!(batches, [(2, "1\n2\n".to_owned()), (2, "3\n4\n".to_owned())]);
    }

    #[tokio::test]
    async fn small_batch_waits_for_ready_senders() {
        let (sender, mut write_buffer) = write_buffer(&[]);
        // One call has a response, another is in flight; a call with a slow response does not count.
        let permits = sender.permits().acquire_many(3).await.unwrap();
        (0..2).for_each(|_| sender.count_response());
        sender.send(message("1"));
        assert_eq!(write_buffer.wait().await, Some(1));
        let second = async { sender.send(message("2")) };
        tokio::join!(biased; write_buffer.wait_for_senders(1), second);
        assert_eq!(take_text(&mut write_buffer), "1\n2\n");
        // As many messages as responses: no other task has anything to send.
        sender.count_response();
        sender.send(message("3"));
        let mut alone = pin!(write_buffer.wait_for_senders(1));
        assert!(alone.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        drop(permits);
    }

    #[tokio::test]
    async fn messages_are_dropped_when_the_writer_is_gone() {
        let (sender, mut write_buffer) = write_buffer(&[]);
        let body = Bytes::from(vec![b'x'; MAX_COPIED_BYTES + 1]);
        sender.send(message(body.clone()));
        assert!(!body.is_unique());
        let mut batch = WriteBatch::default();
        write_buffer.take(&mut batch);
        // The bytes count as queued until they are written.
        assert_eq!(sender.queued_bytes(), body.len());
        write_buffer.release(&mut batch);
        assert!(body.is_unique() && sender.queued_bytes() == 0);
        for _ in 0..2 {
            sender.send(message(body.clone()));
            drop(mem::replace(&mut write_buffer, tests::write_buffer(&[]).1));
            assert!(body.is_unique());
        }
    }

    #[test]
    fn buffer_capacity_is_bounded() {
        let mut batch = WriteBatch::default();
        for _ in 0..10 {
            (0..100).for_each(|_| batch.add(&Bytes::from(vec![b'x'; 10_000]), 1));
            assert!(batch.chunks().all(|it| (1..=MAX_COPIED_BYTES).contains(&it.len())));
            batch.clear();
            assert!(batch.tail.capacity() <= RETAINED_BYTES && batch.chunks().all(<[u8]>::is_empty));
        }
    }

    #[test]
    fn order_of_each_sender_is_kept_across_the_switch() {
        for _ in 0..50 {
            let (sender, queue) = OutboundQueue::new();
            let text = std::thread::scope(|scope| {
                let sender = &sender;
                for name in ["a", "b"] {
                    scope.spawn(move || (0..200).for_each(|it| sender.send(message(format!("{name}{it}")))));
                }
                let mut write_buffer = WriteBuffer::new(queue, StreamEncoding::for_label("utf-8").unwrap());
                let mut text = String::new();
                while text.lines().count() < 400 {
                    text += &take_text(&mut write_buffer);
                }
                text
            });
            for name in ["a", "b"] {
                let numbers: Vec<&str> = text.lines().filter_map(|it| it.strip_prefix(name)).collect();
                assert_eq!(numbers, (0..200).map(|it| it.to_string()).collect::<Vec<_>>());
            }
        }
    }
}
