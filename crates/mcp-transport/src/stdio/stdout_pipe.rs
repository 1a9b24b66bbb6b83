//! Standard output of a child, with an adjustable pipe capacity.

use tokio::io::AsyncRead;
use tokio::process::ChildStdout;

/// A stream of messages whose capacity may be adjustable.
pub(super) trait StdoutSource: AsyncRead + Unpin {
    /// Requests this capacity: with a larger pipe, neither side waits for each piece of a long message. The default
    /// does nothing.
    fn set_capacity(&self, _bytes: usize) {}
}

impl StdoutSource for ChildStdout {
    #[cfg(target_os = "linux")]
    fn set_capacity(&self, bytes: usize) {
        use nix::fcntl::{FcntlArg, fcntl};
        // The system may refuse: the pipes of a user share one limit, and a pipe cannot be made smaller than its
        // content.
        if let Ok(bytes) = i32::try_from(bytes) {
            let result = fcntl(self, FcntlArg::F_SETPIPE_SZ(bytes));
            tracing::trace!("a pipe of {bytes} bytes: {result:?}");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;

    fn capacity(pipe: impl AsFd) -> usize {
        fcntl(pipe, FcntlArg::F_GETPIPE_SZ).expect("it is a pipe").try_into().expect("it is a size")
    }

    #[tokio::test]
    async fn pipe_capacity_follows_the_system_limit() {
        let (reader, _writer) = io::pipe().unwrap();
        let (other, _other_writer) = io::pipe().unwrap();
        let pipe = ChildStdout::from_std(OwnedFd::from(reader).into()).unwrap();
        let usual = capacity(&pipe);
        for bytes in [512 << 10, usual] {
            pipe.set_capacity(bytes);
            let allowed = fcntl(&other, FcntlArg::F_SETPIPE_SZ(bytes.try_into().unwrap()));
            assert_eq!(capacity(&pipe), capacity(&other), "{allowed:?}");
        }
    }
}
