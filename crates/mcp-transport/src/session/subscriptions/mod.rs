//! Subscriptions to changes, in both eras.

pub(crate) mod background_requests;
pub(crate) mod listen_stream;
