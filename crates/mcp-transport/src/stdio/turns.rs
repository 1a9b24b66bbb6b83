//! Taking turns where many calls are on their way, so that both ends of a pipe work at once.
//!
//! Whoever has his answer may ask again. If all answers that came together are handed over before the first of these
//! questions is written, the server has nothing to do meanwhile, and answers all of them together again: one of the two
//! always waits for the other. So a part is handed over, and what comes of it is written, while the rest is still there.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::OutQueue;
use crate::link::Load;

/// The turns of one pipe.
pub(super) struct Turns(Arc<Load>);

impl Turns {
    /// Those of the calls of this queue.
    pub(super) fn of(out: &OutQueue) -> Turns {
        Turns(Arc::clone(&out.load))
    }

    /// How many answers are handed over before others have their turn.
    pub(super) fn answers(&self) -> usize {
        self.0.turn()
    }
}

/// Lets those have their turn who are ready by now. Unlike Tokio's way to yield it does not wait until the runtime has
/// looked for input and output, before which everybody who is ready would have had a turn, again and again.
pub(super) async fn pass() {
    let mut has_passed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_passed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
