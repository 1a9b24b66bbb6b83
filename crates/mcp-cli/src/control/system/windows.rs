//! Windows: there is no control socket, because Tokio has no sockets of the file system there.

use std::io;

use tokio::io::DuplexStream;
use tokio::net::TcpStream;

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

/// A connection of a shared host. There is none.
pub(crate) type SharedStream = TcpStream;

/// A connection of a shim. There is none.
pub(crate) type ShimStream = std::net::TcpStream;

/// The socket of a shared host. There is none.
pub(crate) struct SharedListener(());

impl SharedListener {
    /// Fails.
    pub(crate) fn bind(_: &str) -> io::Result<Option<SharedListener>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "hosts cannot be shared on this system"))
    }

    /// Never returns.
    pub(crate) async fn accept(&self) -> io::Result<SharedStream> {
        let SharedListener(()) = self;
        std::future::pending().await
    }
}

/// Fails.
pub(crate) fn connect_shared(_: &str) -> io::Result<ShimStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "hosts cannot be shared on this system"))
}

/// Finds no hosts.
pub(in crate::control) async fn connect_all() -> io::Result<Vec<(u32, ControlStream)>> {
    Err(io::ErrorKind::Unsupported.into())
}
