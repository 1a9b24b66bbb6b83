//! What differs between systems: how a program is found, and how a process is asked to end.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{program_path, terminate};
#[cfg(windows)]
pub(crate) use windows::{program_path, terminate};
