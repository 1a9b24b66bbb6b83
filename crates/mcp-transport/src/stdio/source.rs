//! What a child's messages are read from, and how much of them it holds until then.

use tokio::io::AsyncRead;
use tokio::process::ChildStdout;

/// A stream that may be able to hold more.
pub(super) trait Source: AsyncRead + Unpin {
    /// Holds so many bytes from now on, where it can: whoever writes a long message need not wait for each piece to be
    /// read, nor whoever reads it for each to be written.
    fn hold(&self, _bytes: usize) {}
}

impl Source for ChildStdout {
    #[cfg(target_os = "linux")]
    fn hold(&self, bytes: usize) {
        use nix::fcntl::{FcntlArg, fcntl};
        // The system may say no: a user has so much for all pipes together. Nor is a pipe made smaller than what is in it.
        if let Ok(bytes) = i32::try_from(bytes) {
            let held = fcntl(self, FcntlArg::F_SETPIPE_SZ(bytes));
            tracing::trace!("a pipe of {bytes} bytes: {held:?}");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;

    fn size(pipe: impl AsFd) -> usize {
        fcntl(pipe, FcntlArg::F_GETPIPE_SZ).expect("it is a pipe").try_into().expect("it is a size")
    }

    #[tokio::test]
    async fn a_pipe_holds_what_the_system_allows() {
        let (ours, _theirs) = io::pipe().unwrap();
        let (other, _others) = io::pipe().unwrap();
        let pipe = ChildStdout::from_std(OwnedFd::from(ours).into()).unwrap();
        let usual = size(&pipe);
        for bytes in [512 << 10, usual] {
            pipe.hold(bytes);
            let allowed = fcntl(&other, FcntlArg::F_SETPIPE_SZ(bytes.try_into().unwrap()));
            assert_eq!(size(&pipe), size(&other), "{allowed:?}");
        }
    }
}
