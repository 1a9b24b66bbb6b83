//! What is to be written to a pipe: whoever sends a message makes it a line of what is written next.
//!
//! So a message has no place in a queue, and its memory is given back by the thread that got it, unless it is long. Where another
//! one, the writer's, gave back the memory of many messages at once, the threads waited for each other's allocator.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::encoding::StreamEncoding;
use crate::transport::{DirectSink, yield_once};
use crate::transport::{Outbound, OutboundQueue};

/// Up to which length messages are copied behind each other, in bytes.
const COPIED: usize = 64 << 10;

/// How much memory is kept for what is sent next, in bytes.
const KEPT: usize = 16 << 10;

/// The writer's end.
pub(super) struct Outbox {
    queue: OutboundQueue,
    /// What was in the queue before it was asked to put nothing there any more.
    early: Batch,
    shared: Arc<Shared>,
}

/// Lines in their order.
#[derive(Default)]
pub(super) struct Batch {
    parts: Vec<Bytes>,
    /// What comes behind them.
    rest: Vec<u8>,
    messages: usize,
    /// How many bytes these had when they were sent.
    queued: usize,
}

/// What who sends and who writes have in common.
struct Shared {
    encoding: StreamEncoding,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    batch: Batch,
    /// Of the writer, where it waits.
    waker: Option<Waker>,
    /// Nobody writes any more.
    is_over: bool,
}

impl Outbox {
    /// Of the messages that this queue would have.
    pub(super) fn of(queue: OutboundQueue, encoding: StreamEncoding) -> Outbox {
        let shared = Arc::new(Shared { encoding, state: Mutex::default() });
        queue.set_direct_sink(Arc::clone(&shared) as _);
        Outbox { queue, early: Batch::default(), shared }
    }

    /// Waits for something to write: how many messages, about; `None` when there is nothing more to come. Cancel-safe.
    pub(super) async fn wait(&mut self) -> Option<usize> {
        poll_fn(|cx| self.poll_messages(cx)).await
    }

    /// Lets those send who have their turn now, where so many messages are not much: who sends one wakes the writer before
    /// them, and a write for each costs them more than the wait. A call that is alone waits for nobody, and what is enough to
    /// keep the peer at work is written at once.
    pub(super) async fn gather(&self, messages: usize) {
        if !self.queue.flow.is_full_batch(messages) {
            yield_once().await;
        }
    }

    /// Takes all that waits; `into` is empty.
    pub(super) fn take(&mut self, into: &mut Batch) {
        // In this order: what somebody sent before it is in the queue by now, where it ever was.
        mem::swap(&mut self.shared.lock().batch, into);
        while let Some(out) = self.queue.try_next() {
            self.early.add_early(out, self.shared.encoding);
        }
        self.queue.flow.start_batch();
        if self.early.messages > 0 {
            into.put_behind(mem::take(&mut self.early));
        }
    }

    /// What was taken is written, and waits no more.
    pub(super) fn written(&self, batch: &mut Batch) {
        self.queue.release_bytes(batch.queued);
        batch.clear();
    }

    /// How many messages wait; `None` when nobody sends any more.
    fn poll_messages(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        if self.early.messages > 0 {
            return Poll::Ready(Some(self.early.messages));
        }
        if let Some(messages) = self.shared.poll_messages(cx) {
            return Poll::Ready(Some(messages));
        }
        match self.queue.poll_next(cx) {
            Poll::Ready(Some(out)) => self.early.add_early(out, self.shared.encoding),
            // What was sent last may have come since it was looked at.
            Poll::Ready(None) => return Poll::Ready(self.shared.poll_messages(cx)),
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(Some(self.early.messages))
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        let (batch, waker) = (mem::take(&mut state.batch), state.waker.take());
        // What strangers made is dropped outside the lock.
        drop(state);
        drop((batch, waker));
    }
}

impl Shared {
    /// How many messages wait; whoever sends the next one wakes the writer where there are none.
    fn poll_messages(&self, cx: &Context<'_>) -> Option<usize> {
        let mut state = self.lock();
        if state.batch.messages > 0 {
            return Some(state.batch.messages);
        }
        let former = match &state.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            Some(_) | None => state.waker.replace(cx.waker().clone()),
        };
        drop(state);
        drop(former);
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirectSink for Shared {
    fn put(&self, out: Outbound) {
        let queued = out.bytes();
        let Some(body) = body(out, self.encoding) else { return };
        let mut state = self.lock();
        if state.is_over {
            return;
        }
        state.batch.add(&body, queued);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Batch {
    /// What is to be written, in this order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|it| &it[..]).chain([&self.rest[..]])
    }

    /// Empties it, with no more memory than for a little.
    fn clear(&mut self) {
        let mut rest = mem::take(&mut self.rest);
        rest.clear();
        rest.shrink_to(KEPT);
        *self = Batch { rest, ..Batch::default() };
    }

    /// Adds a message, as a line.
    fn add(&mut self, body: &Bytes, queued: usize) {
        if self.rest.len() + body.len() >= COPIED && !self.rest.is_empty() {
            self.parts.push(mem::take(&mut self.rest).into());
        }
        if body.len() <= COPIED {
            append(&mut self.rest, body);
        } else {
            self.parts.push(body.clone());
        }
        self.rest.push(b'\n');
        self.messages += 1;
        self.queued += queued;
    }

    /// Adds something that was in the queue.
    fn add_early(&mut self, out: Outbound, encoding: StreamEncoding) {
        if let Some(body) = body(out, encoding) {
            self.add(&body, 0);
        }
    }

    /// Comes behind another one.
    fn put_behind(&mut self, before: Batch) {
        let Batch { mut parts, rest, messages, queued } = before;
        parts.push(rest.into());
        parts.append(&mut self.parts);
        self.parts = parts;
        self.messages += messages;
        self.queued += queued;
    }
}

/// What is written of it, where something is, as one line if it is so long that it is not copied.
fn body(out: Outbound, encoding: StreamEncoding) -> Option<Bytes> {
    let body = match out {
        Outbound::Send(message) => message.body,
        Outbound::Cancel { id: _, notice } => notice?,
    };
    let body = encoding.encode(body);
    if body.len() <= COPIED || memchr::memchr2(b'\n', b'\r', &body).is_none() {
        return Some(body);
    }
    let mut line = Vec::with_capacity(body.len());
    append(&mut line, &body);
    Some(line.into())
}

/// A caller's JSON may have line breaks between its tokens; on this wire they would cut the message in two.
fn append(line: &mut Vec<u8>, body: &[u8]) {
    let start = line.len();
    // With its end.
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
    use crate::transport::OutboundSender;
    use crate::transport::{Epoch, MessageHead, OutboundMessage};

    fn message(body: impl Into<Bytes>) -> Outbound {
        let head = MessageHead::new(None, "m".into(), None);
        Outbound::Send(OutboundMessage { epoch: Epoch(0), head, body: body.into() })
    }

    /// A queue that something was put into before anybody wrote, and its writer's end.
    fn outbox(early: &[&'static str]) -> (OutboundSender, Outbox) {
        let (sender, queue) = OutboundQueue::new();
        early.iter().for_each(|it| sender.send(message(*it)));
        (sender, Outbox::of(queue, StreamEncoding::for_label("utf-8").unwrap()))
    }

    /// What would be written now.
    fn taken(outbox: &mut Outbox) -> String {
        let mut batch = Batch::default();
        outbox.take(&mut batch);
        let text = batch.parts().flatten().copied().collect();
        outbox.written(&mut batch);
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn messages_are_lines_in_the_order_in_which_they_were_sent() {
        let (sender, mut outbox) = outbox(&["1", "2"]);
        let long = format!("[\n{}\r\n]", "4".repeat(COPIED));
        sender.send(message("3\n3"));
        sender.send(message(long.clone()));
        sender.send(Outbound::Cancel { id: 1, notice: None });
        sender.send(Outbound::Cancel { id: 1, notice: Some("5".into()) });
        sender.send(message(long.clone()));
        let line = format!("[ {}  ]", "4".repeat(COPIED));
        assert!(outbox.wait().await.is_some());
        assert_ne!(sender.queued_bytes(), 0);
        assert_eq!(taken(&mut outbox), format!("1\n2\n3 3\n{line}\n5\n{line}\n"));
        assert_eq!((sender.queued_bytes(), taken(&mut outbox)), (0, String::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_writer_hears_of_the_first_message_and_of_the_end() {
        let (sender, mut outbox) = outbox(&[]);
        let writing = tokio::spawn(async move {
            let mut heard = Vec::new();
            while let Some(messages) = outbox.wait().await {
                heard.push((messages, taken(&mut outbox)));
            }
            heard
        });
        for two in [["1", "2"], ["3", "4"]] {
            // Where nothing is to be done, it waits.
            tokio::time::sleep(Duration::from_secs(1)).await;
            two.into_iter().for_each(|it| sender.send(message(it)));
        }
        drop(sender);
        let heard = tokio::time::timeout(Duration::from_secs(1), writing).await.unwrap().unwrap();
        assert_eq!(heard, [(2, "1\n2\n".to_owned()), (2, "3\n4\n".to_owned())]);
    }

    #[tokio::test]
    async fn who_is_ready_has_a_turn_before_little_is_written() {
        let (sender, mut outbox) = outbox(&[]);
        // One is answered, and another one on its way; one that stands for long says nothing.
        let permits = sender.permits().acquire_many(3).await.unwrap();
        (0..2).for_each(|_| sender.count_response());
        sender.send(message("1"));
        assert_eq!(outbox.wait().await, Some(1));
        let second = async { sender.send(message("2")) };
        tokio::join!(biased; outbox.gather(1), second);
        assert_eq!(taken(&mut outbox), "1\n2\n");
        // As many as were answered: nobody else has anything to say.
        sender.count_response();
        sender.send(message("3"));
        let mut alone = pin!(outbox.gather(1));
        assert!(alone.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        drop(permits);
    }

    #[tokio::test]
    async fn nothing_is_kept_for_a_writer_that_has_gone() {
        let (sender, mut outbox) = outbox(&[]);
        let body = Bytes::from(vec![b'x'; COPIED + 1]);
        sender.send(message(body.clone()));
        assert!(!body.is_unique());
        let mut batch = Batch::default();
        outbox.take(&mut batch);
        // It waits until it is written.
        assert_eq!(sender.queued_bytes(), body.len());
        outbox.written(&mut batch);
        assert!(body.is_unique() && sender.queued_bytes() == 0);
        for _ in 0..2 {
            sender.send(message(body.clone()));
            drop(mem::replace(&mut outbox, tests::outbox(&[]).1));
            assert!(body.is_unique());
        }
    }

    #[test]
    fn memory_is_kept_for_a_little_only() {
        let mut batch = Batch::default();
        for _ in 0..10 {
            (0..100).for_each(|_| batch.add(&Bytes::from(vec![b'x'; 10_000]), 1));
            assert!(batch.parts().all(|it| (1..=COPIED).contains(&it.len())));
            batch.clear();
            assert!(batch.rest.capacity() <= KEPT && batch.parts().all(<[u8]>::is_empty));
        }
    }

    #[test]
    fn what_one_thread_sends_stays_in_its_order_from_the_queue_on() {
        for _ in 0..50 {
            let (sender, queue) = OutboundQueue::new();
            let said = std::thread::scope(|scope| {
                let sender = &sender;
                for name in ["a", "b"] {
                    scope.spawn(move || (0..200).for_each(|it| sender.send(message(format!("{name}{it}")))));
                }
                let mut outbox = Outbox::of(queue, StreamEncoding::for_label("utf-8").unwrap());
                let mut said = String::new();
                while said.lines().count() < 400 {
                    said += &taken(&mut outbox);
                }
                said
            });
            for name in ["a", "b"] {
                let of: Vec<&str> = said.lines().filter_map(|it| it.strip_prefix(name)).collect();
                assert_eq!(of, (0..200).map(|it| it.to_string()).collect::<Vec<_>>());
            }
        }
    }
}
