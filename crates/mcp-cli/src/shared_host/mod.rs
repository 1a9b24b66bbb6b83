//! The host that several clients of a user share: `serve --shared`.
//!
//! `serve --stdio --shared` is a shim. It connects its client to the host with the same [`identity`], which it starts
//! if there is none, and then copies messages. The shim reads no configuration and starts no server.

pub(crate) mod greeting;
pub(crate) mod identity;
pub(crate) mod log_file;
pub(crate) mod session_record;
pub(crate) mod shim;
pub(crate) mod start;
