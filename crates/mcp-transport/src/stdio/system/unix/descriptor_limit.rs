//! The limit of open file descriptors: raised for this program, and restored for its servers.
//!
//! A server over HTTP needs one descriptor or two, a stdio server four. The usual soft limit of 1,024 is kept low for
//! programs that use `select`, which fails with higher descriptors. Such a program may be a server, so each gets the
//! limit that this program had.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// The limit before it was raised.
static ORIGINAL: OnceLock<DescriptorLimit> = OnceLock::new();

/// A soft and a hard limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DescriptorLimit {
    pub(super) soft: rlim_t,
    pub(super) hard: rlim_t,
}

/// Raises the soft limit of open file descriptors of this process to its hard limit, and returns it. The processes of
/// stdio servers get the earlier limit on Linux, and the raised one on other systems.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        // A second call finds the limit raised already.
        let _ = ORIGINAL.set(DescriptorLimit { soft, hard });
    }
    Ok(hard)
}

/// The limit that a server gets; `None` if it was not raised.
pub(super) fn original_limit() -> Option<DescriptorLimit> {
    ORIGINAL.get().copied()
}
