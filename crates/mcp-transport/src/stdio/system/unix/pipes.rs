//! The pipes to a child on Unix.

pub(in crate::stdio) use tokio::process::{
    ChildStderr as StderrPipe, ChildStdin as StdinPipe, ChildStdout as StdoutPipe,
};

/// Requests a capacity of a pipe, which only Linux can change.
#[cfg(target_os = "linux")]
pub(in crate::stdio) fn set_pipe_capacity(pipe: &StdoutPipe, bytes: usize) {
    use nix::fcntl::{FcntlArg, fcntl};
    // The system may refuse: the pipes of a user share one limit, and a pipe cannot be made smaller than its content.
    if let Ok(bytes) = i32::try_from(bytes) {
        let result = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(bytes));
        tracing::trace!("a pipe of {bytes} bytes: {result:?}");
    }
}

#[cfg(not(target_os = "linux"))]
pub(in crate::stdio) fn set_pipe_capacity(_: &StdoutPipe, _: usize) {}

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
        let pipe = StdoutPipe::from_std(OwnedFd::from(reader).into()).unwrap();
        let usual = capacity(&pipe);
        for bytes in [512 << 10, usual] {
            set_pipe_capacity(&pipe, bytes);
            let allowed = fcntl(&other, FcntlArg::F_SETPIPE_SZ(bytes.try_into().unwrap()));
            assert_eq!(capacity(&pipe), capacity(&other), "{allowed:?}");
        }
    }
}
