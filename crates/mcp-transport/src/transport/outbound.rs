//! The queue from the engine to a transport, and its flow control.
//!
//! Only the engine adds to the queue. It is bounded by permits for calls and by bytes: over the byte limit the engine
//! refuses calls and drops responses to server requests.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::sync::{Semaphore, mpsc};

use crate::transport::inline_sender::InlineSender;
use crate::transport::message::Outbound;

/// The maximum number of calls in flight. A power of two: the table of pending calls encodes a slot in the
/// low bits of an id.
pub(crate) const MAX_CALLS: usize = 1 << 16;

/// The batch size is the number of calls in flight divided by this number, between [`MIN_BATCH`] and [`MAX_BATCH`]
/// messages. Each batch costs a wake-up and a write.
const BATCH_DIVISOR: usize = 3;
const MIN_BATCH: usize = 4;
const MAX_BATCH: usize = 64;

/// The transport's end of the queue.
pub struct OutboundQueue {
    receiver: mpsc::UnboundedReceiver<Outbound>,
    pub(crate) flow: Arc<FlowState>,
}

/// The engine's end of an [`OutboundQueue`]. A transport that wraps another one sends through it.
pub struct OutboundSender {
    sender: mpsc::UnboundedSender<Outbound>,
    flow: Arc<FlowState>,
}

/// The state of the flow control, which both ends share.
pub(crate) struct FlowState {
    /// The total size of the queued messages.
    queued_bytes: AtomicUsize,
    /// One permit for each call that may be in flight.
    permits: Semaphore,
    /// Sends requests from the calling task, if the transport can do that.
    inline_sender: OnceLock<Box<dyn InlineSender>>,
    /// Takes commands instead of the queue, if the transport has such a buffer.
    direct_sink: OnceLock<Arc<dyn DirectSink>>,
    /// Responses received since the last batch was taken.
    responses_since_write: AtomicUsize,
}

/// A transport's buffer that takes messages in the sending task, instead of the queue.
pub(crate) trait DirectSink: Send + Sync {
    /// Takes a command. Commands from one task keep their order.
    fn send(&self, command: Outbound);
}

impl FlowState {
    /// The number of messages to write, or of responses to deliver, before other tasks get to run.
    pub(crate) fn batch_size(&self) -> usize {
        match self.in_flight() {
            // Calls of rmcp's client are not counted here.
            0 => MAX_BATCH,
            calls => (calls / BATCH_DIVISOR).clamp(MIN_BATCH, MAX_BATCH),
        }
    }

    /// Whether this number of messages should be written now. That is a batch, or as many messages as responses
    /// were received since the last write: each response may be followed by a new call, and more messages are not
    /// expected.
    pub(crate) fn is_full_batch(&self, messages: usize) -> bool {
        messages >= self.responses_since_write.load(Ordering::Relaxed).min(self.batch_size())
    }

    /// Records that a batch was taken.
    pub(crate) fn start_batch(&self) {
        self.responses_since_write.store(0, Ordering::Relaxed);
    }

    /// The number of calls in flight.
    fn in_flight(&self) -> usize {
        MAX_CALLS - self.permits.available_permits()
    }
}

impl OutboundQueue {
    /// An empty queue with its sender.
    pub fn new() -> (OutboundSender, OutboundQueue) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let flow = Arc::new(FlowState {
            queued_bytes: AtomicUsize::new(0),
            permits: Semaphore::new(MAX_CALLS),
            inline_sender: OnceLock::new(),
            direct_sink: OnceLock::new(),
            responses_since_write: AtomicUsize::new(0),
        });
        (OutboundSender { sender, flow: Arc::clone(&flow) }, OutboundQueue { receiver, flow })
    }

    /// Registers the sender that requests are offered to before they are queued. At most once for a queue.
    #[cfg(feature = "http")]
    pub(crate) fn set_inline_sender(&self, sender: Box<dyn InlineSender>) {
        let result = self.flow.inline_sender.set(sender);
        debug_assert!(result.is_ok(), "a queue has one transport");
    }

    /// Registers a sink that takes all later commands instead of the queue. Commands that are in the queue,
    /// or that another task is just adding, come before those that the same task sends to the sink. At most
    /// once for a queue.
    #[cfg(feature = "stdio")]
    pub(crate) fn set_direct_sink(&self, sink: Arc<dyn DirectSink>) {
        let result = self.flow.direct_sink.set(sink);
        debug_assert!(result.is_ok(), "a queue has one transport");
    }

    /// Records that this number of bytes is no longer queued.
    pub(crate) fn release_bytes(&self, bytes: usize) {
        self.flow.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the next command; `None` when the engine has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Outbound> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for the next command, like [`OutboundQueue::next`].
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Outbound>> {
        let command = ready!(self.receiver.poll_recv(context));
        self.release_bytes(command.as_ref().map_or(0, Outbound::bytes));
        Poll::Ready(command)
    }

    /// Returns the next command if there is one now.
    pub(crate) fn try_next(&mut self) -> Option<Outbound> {
        let command = self.receiver.try_recv().ok()?;
        self.release_bytes(command.bytes());
        Some(command)
    }

    /// Waits for at least one command, then takes up to `limit`. Returns their number; 0 when the engine has ended.
    /// Cancel-safe.
    pub async fn next_many(&mut self, into: &mut Vec<Outbound>, limit: usize) -> usize {
        let count = self.receiver.recv_many(into, limit).await;
        let bytes = into[into.len() - count..].iter().map(Outbound::bytes).sum();
        self.release_bytes(bytes);
        count
    }

    /// Yields once so that tasks that are ready to send join this batch, then takes up to `limit` commands in
    /// all. A sender wakes the transport before other tasks have sent, and a write for each message costs
    /// more than the wait. A batch that is full already is not delayed. Not cancel-safe: taken commands are
    /// in `into`.
    pub async fn fill_batch(&mut self, into: &mut Vec<Outbound>, limit: usize) {
        if !self.flow.is_full_batch(into.len()) {
            yield_once().await;
            while into.len() < limit
                && let Some(command) = self.try_next()
            {
                into.push(command);
            }
        }
        self.flow.start_batch();
    }
}

/// Yields to the tasks that are ready now. `tokio::task::yield_now` also waits until the runtime has polled
/// I/O, and other tasks may run many times before that.
pub(crate) async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl OutboundSender {
    /// Queues a command. If the transport has ended, the command is dropped; the engine has ended its call.
    pub fn send(&self, command: Outbound) {
        self.flow.queued_bytes.fetch_add(command.bytes(), Ordering::Relaxed);
        match self.flow.direct_sink.get() {
            Some(sink) => sink.send(command),
            None => drop(self.sender.send(command)),
        }
    }

    /// Whether the transport has dropped its end of the queue.
    #[cfg(feature = "testing")]
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Records that a call received its response; its caller may send again.
    pub(crate) fn count_response(&self) {
        self.flow.responses_since_write.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of bytes in the queue.
    pub fn queued_bytes(&self) -> usize {
        self.flow.queued_bytes.load(Ordering::Relaxed)
    }

    /// The transport's inline sender, if it has one.
    pub(crate) fn inline_sender(&self) -> Option<&dyn InlineSender> {
        self.flow.inline_sender.get().map(|sender| &**sender)
    }

    /// The permits for calls in flight.
    pub(crate) fn permits(&self) -> &Semaphore {
        &self.flow.permits
    }
}
