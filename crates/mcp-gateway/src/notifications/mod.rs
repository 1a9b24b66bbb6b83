//! Notifications for clients: changed lists, changed resources and log messages.

pub(crate) mod resource_subscriptions;
pub(crate) mod subscribe;
pub(crate) mod watch;
