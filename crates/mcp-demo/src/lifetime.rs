//! The end of a server: its client disconnected, its owner stopped it, or the tool `exit` was called.
//!
//! Long calls watch it in addition to their own cancellation, so that the end of input ends them too.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// The lifetime of a connection over streams, of an HTTP listener, or of one of its sessions.
#[derive(Default)]
pub(crate) struct Lifetime {
    end: CancellationToken,
    exit: Arc<Exit>,
}

/// The call of the tool `exit`.
#[derive(Default)]
struct Exit {
    /// Cancelled when the tool was called.
    exiting: CancellationToken,
    code: OnceLock<i32>,
}

impl Lifetime {
    /// The lifetime of one session. It ends with this one or on its own; an exit applies to all sessions.
    pub(crate) fn for_session(&self) -> Lifetime {
        Lifetime { end: self.end.child_token(), exit: Arc::clone(&self.exit) }
    }

    /// Ends the lifetime.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Resolves once [`Lifetime::end`] was called. Cancel-safe.
    pub(crate) async fn wait_for_end(&self) {
        self.end.cancelled().await;
    }

    /// A token that is cancelled at the end.
    pub(crate) fn token(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Ends the server like a crash: nothing is sent any more. The first code is used.
    pub(crate) fn exit(&self, code: i32) {
        self.exit.code.get_or_init(|| code);
        self.exit.exiting.cancel();
    }

    /// Whether [`Lifetime::exit`] was called.
    pub(crate) fn is_exiting(&self) -> bool {
        self.exit.exiting.is_cancelled()
    }

    /// Resolves with the code once [`Lifetime::exit`] was called. Cancel-safe.
    pub(crate) async fn wait_for_exit(&self) -> i32 {
        self.exit.exiting.cancelled().await;
        *self.exit.code.get().expect("the code is set before the token is cancelled")
    }
}
