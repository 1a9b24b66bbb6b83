//! Distribution of server notifications to subscribers.

pub(crate) mod dialog_callers;
pub(crate) mod log_levels;
pub(crate) mod stream;
pub(crate) mod subscriptions;
