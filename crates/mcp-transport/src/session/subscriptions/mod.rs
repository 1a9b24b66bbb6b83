//! Subscriptions to changes, in both eras.

pub(crate) mod notification_stream;
pub(crate) mod resubscribe;
