//! Requests to follow files, and the profiles of the files.

use std::time::Duration;

use mcp_host_config::Profile;

use super::lock::FollowLock;
use crate::config::load::LoadRequest;

/// A request to follow files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowRequest {
    /// The files in order of precedence: of entries with the same name the first one counts, and servers are ordered
    /// by file. A missing file is empty if its dialect is known from its name, as that of `mcp.json` and
    /// `.minds/mcp.yaml`, or from [`LoadRequest::dialect`]; another one is refused. Folders may be missing.
    pub files: Vec<LoadRequest>,
    /// The lock file whose approvals apply to their servers from when it exists, as by
    /// [`Host::set_approval`](crate::host::Host::set_approval). A lock file that cannot be used or was deleted
    /// changes nothing and is published as a problem.
    pub lock: Option<FollowLock>,
    /// The time without changes after which files are read (DM-093); clamped to 100..=500 ms.
    pub debounce: Duration,
    /// The maximum delay of a read; at least `debounce`.
    pub max_delay: Duration,
    /// The time for which a file must be empty or missing before that takes effect.
    pub settle: Duration,
    /// The polling interval (DM-092); clamped to 100 ms..=1 h.
    pub poll_interval: Duration,
    /// The timeout of a read. After it the previous content remains in effect, a problem is published, and
    /// the next poll tries again.
    pub read_timeout: Duration,
}

impl FollowRequest {
    /// Creates a request for these files without a lock file: they are read 200 ms after the last change and at most
    /// 1 s after the first; 1 s until a removal takes effect; polled every 2 s; a read timeout of 10 s.
    pub fn new(files: Vec<LoadRequest>) -> FollowRequest {
        FollowRequest {
            files,
            lock: None,
            debounce: Duration::from_millis(200),
            max_delay: Duration::from_secs(1),
            settle: Duration::from_secs(1),
            poll_interval: Duration::from_secs(2),
            read_timeout: Duration::from_secs(10),
        }
    }
}

/// A followed file that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileProfile {
    /// The path.
    pub path: String,
    /// The profile by which it was read.
    pub profile: Profile,
}
