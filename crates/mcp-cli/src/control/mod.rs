//! The control socket of a running host: other commands of the same user talk to it.
//!
//! A message is one line of JSON in each direction. The socket lies in a folder that only its user can open, and each
//! peer must be of that user. Nothing of it passes through the clients of the host.

pub(crate) mod client;
pub(crate) mod protocol;
pub(crate) mod server;
pub(crate) mod system;
