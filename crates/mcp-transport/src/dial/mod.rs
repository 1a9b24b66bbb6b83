//! Dialing: from a resolved endpoint to a transport.

pub(crate) mod options;
#[cfg(feature = "endpoint")]
pub(crate) mod secrets;
#[cfg(all(feature = "http", feature = "sse"))]
pub(crate) mod sse_fallback;
#[cfg(feature = "testing")]
pub mod testing;
