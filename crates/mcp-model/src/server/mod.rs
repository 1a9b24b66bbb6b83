//! A server: its specification in a configuration, and its resolved endpoint.

pub(crate) mod call_rule;
pub(crate) mod credentials;
#[cfg(feature = "endpoint")]
pub(crate) mod endpoint;
pub(crate) mod exposure;
pub(crate) mod id;
pub(crate) mod limits;
#[cfg(feature = "endpoint")]
pub(crate) mod loopback;
pub(crate) mod name;
pub(crate) mod origin;
pub(crate) mod sandbox;
pub(crate) mod secret;
pub(crate) mod sharing;
pub(crate) mod spec;
pub(crate) mod stdio_endpoint;
pub(crate) mod value_name;
