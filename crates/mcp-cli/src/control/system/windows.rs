//! Windows: there is no control socket, because Tokio has no sockets of the file system there.

use std::io;

use tokio::io::DuplexStream;

/// A connection. There is none.
pub(in crate::control) type ControlStream = DuplexStream;

/// A listening socket. There is none.
pub(in crate::control) struct ControlListener(());

impl ControlListener {
    /// Fails.
    pub(in crate::control) fn bind() -> io::Result<ControlListener> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never returns.
    pub(in crate::control) async fn accept(&self) -> io::Result<ControlStream> {
        let ControlListener(()) = self;
        std::future::pending().await
    }
}

/// Finds no hosts.
pub(in crate::control) async fn connect_all() -> io::Result<Vec<(u32, ControlStream)>> {
    Err(io::ErrorKind::Unsupported.into())
}
