//! Dialing: from a resolved endpoint to a transport.

#[cfg(any(feature = "endpoint", feature = "stdio"))]
pub(crate) mod dialer;
pub(crate) mod options;
#[cfg(feature = "endpoint")]
pub(crate) mod secrets;
#[cfg(all(feature = "http", feature = "sse"))]
pub(crate) mod sse_fallback;
#[cfg(all(feature = "http", feature = "sse"))]
pub(crate) mod sse_servers;
#[cfg(feature = "testing")]
pub mod testing;
