//! The keyring of each system.

#[cfg(target_os = "macos")]
mod macos;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
pub(super) use macos::{open_store, search_key};
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) use secret_service::{open_store, search_key};
#[cfg(windows)]
pub(super) use windows::{open_store, search_key};
