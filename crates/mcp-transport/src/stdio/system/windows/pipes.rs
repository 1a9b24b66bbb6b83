//! The pipes to a child on Windows: named pipes. The end in this process is asynchronous.
//!
//! The standard library's pipes would need a thread for each read.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

pub(in crate::stdio) use tokio::net::windows::named_pipe::{
    NamedPipeServer as StdinPipe, NamedPipeServer as StdoutPipe, NamedPipeServer as StderrPipe,
};

/// The capacity of a pipe.
const PIPE_BYTES: u32 = 64 << 10;

/// The direction of a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToChild,
    FromChild,
}

/// A pipe: our end, registered with this runtime, and the end of the child.
pub(super) struct Pipe {
    pub(super) ours: NamedPipeServer,
    pub(super) child_end: File,
}

impl Pipe {
    /// Creates a pipe. It has one instance and accepts one client, which is the end of the child.
    pub(super) fn new(direction: Direction) -> io::Result<Pipe> {
        let is_to_child = direction == Direction::ToChild;
        let name = random_name();
        let ours = ServerOptions::new()
            .access_outbound(is_to_child)
            .access_inbound(!is_to_child)
            .first_pipe_instance(true)
            .max_instances(1)
            .in_buffer_size(PIPE_BYTES)
            .out_buffer_size(PIPE_BYTES)
            .create(&name)?;
        let child_end = OpenOptions::new().read(is_to_child).write(!is_to_child).open(&name)?;
        // The client is there already, so this does not wait.
        match pin!(ours.connect()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(connected) => connected?,
            Poll::Pending => return Err(io::Error::other("the pipe is not connected")),
        }
        Ok(Pipe { ours, child_end })
    }
}

/// A name that no other process can guess: the hashes of the standard library have random keys.
fn random_name() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!(r"\\.\pipe\mcp-host-{}-{:016x}{:016x}", std::process::id(), random(), random())
}

/// Does nothing: Windows cannot change the capacity of a named pipe.
pub(in crate::stdio) fn set_pipe_capacity(_: &StdoutPipe, _: usize) {}
