//! Sockets of the same user. Each system has the same items.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{ControlListener, ControlStream, connect_all};
#[cfg(unix)]
pub(crate) use unix::{SharedListener, SharedStream, ShimStream, connect_shared};
#[cfg(windows)]
pub(super) use windows::{ControlListener, ControlStream, connect_all};
#[cfg(windows)]
pub(crate) use windows::{SharedListener, SharedStream, ShimStream, connect_shared};
