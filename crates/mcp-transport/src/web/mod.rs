//! What the wires over HTTP share: the client, one request with its redirects, headers, event streams, and what errors
//! say. What a message means to a wire, and what becomes of its request, is the wire's own.

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod event_stream;
mod exchange;
pub(crate) mod headers;
mod place;
pub(crate) mod said;

pub(crate) use client::{Client, Failed};
pub(crate) use place::Place;

/// The notice that a request is given up.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// The notice that the opening is over. Nothing of its session may overtake it: servers refuse what comes earlier.
pub(crate) const INITIALIZED: &str = "notifications/initialized";
