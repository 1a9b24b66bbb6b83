//! The endpoints: the handlers of requests, by path and method.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod post;
pub(crate) mod router;
pub(crate) mod stateless;
pub(crate) mod subscriptions;
