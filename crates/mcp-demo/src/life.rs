//! When a server ends, and why: its client is gone, its owner stops it, or the tool `exit` was called.
//!
//! Long calls watch this besides their own cancellation, so that the end of input ends them too.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// The life of one server: a connection over streams, an HTTP listener with all its sessions, or one of these.
#[derive(Default)]
pub(crate) struct Life {
    over: CancellationToken,
    exit: Arc<Exit>,
}

#[derive(Default)]
struct Exit {
    exiting: CancellationToken,
    code: OnceLock<i32>,
}

impl Life {
    /// The life of one session among several: it ends with this one, or alone, and an exit is everybody's.
    pub(crate) fn of_a_session(&self) -> Life {
        Life { over: self.over.child_token(), exit: Arc::clone(&self.exit) }
    }

    /// There is nobody left to answer.
    pub(crate) fn end(&self) {
        self.over.cancel();
    }

    /// Resolves once [`Life::end`] was called. Cancel-safe.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// A token that ends with this life.
    pub(crate) fn token(&self) -> CancellationToken {
        self.over.clone()
    }

    /// The server is to end as a crashed process would: from now on nothing is answered. The first code counts.
    pub(crate) fn exit(&self, code: i32) {
        self.exit.code.get_or_init(|| code);
        self.exit.exiting.cancel();
    }

    /// Whether [`Life::exit`] was called.
    pub(crate) fn is_exiting(&self) -> bool {
        self.exit.exiting.is_cancelled()
    }

    /// Resolves with the code once [`Life::exit`] was called. Cancel-safe.
    pub(crate) async fn exited(&self) -> i32 {
        self.exit.exiting.cancelled().await;
        *self.exit.code.get().expect("the code is set before the token is cancelled")
    }
}
