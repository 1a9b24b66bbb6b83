//! Subscriptions to changes, in both eras.

pub(crate) mod listen_stream;
pub(crate) mod resubscribe;
