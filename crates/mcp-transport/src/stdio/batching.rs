//! Taking turns where many calls are on their way, so that both ends of a pipe work at once.
//!
//! Whoever has his answer may ask again. If all answers that came together are handed over before the first of these
//! questions is written, the server has nothing to do meanwhile, and answers all of them together again: one of the two
//! always waits for the other. So a part is handed over, and what comes of it is written, while the rest is still there.

use std::sync::Arc;

use crate::transport::FlowState;
use crate::transport::OutboundQueue;

/// The turns of one pipe.
pub(super) struct Turns(Arc<FlowState>);

impl Turns {
    /// Those of the calls of this queue.
    pub(super) fn of(out: &OutboundQueue) -> Turns {
        Turns(Arc::clone(&out.flow))
    }

    /// How many answers are handed over before others have their turn.
    pub(super) fn answers(&self) -> usize {
        self.0.batch_size()
    }
}
