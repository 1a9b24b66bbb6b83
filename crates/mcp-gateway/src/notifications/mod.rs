//! Notifications for clients: changed lists, changed resources and log messages.

pub(crate) mod subscribe;
pub(crate) mod watch;
