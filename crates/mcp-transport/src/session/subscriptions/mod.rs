//! Subscriptions to changes, in both eras.

pub(crate) mod resubscribe;
pub(crate) mod subscription_stream;
