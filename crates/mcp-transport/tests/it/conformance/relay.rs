//! A relay in front of a peer that delays what the client sends.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// The time between two pieces of 64 KiB.
const PAUSE: Duration = Duration::from_millis(1);

/// A relay. Dropping it closes all connections and the listener.
pub(super) struct Relay {
    pub(super) begin: SocketAddr,
    _carrying: JoinSet<()>,
}

impl Relay {
    pub(super) fn start(end: SocketAddr) -> Relay {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let begin = listener.local_addr().unwrap();
        let mut carrying = JoinSet::new();
        carrying.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(forward(socket, end));
            }
        });
        Relay { begin, _carrying: carrying }
    }
}

async fn forward(near: TcpStream, end: SocketAddr) {
    let Ok(far) = TcpStream::connect(end).await else { return };
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    let (mut near_reads, mut near_writes) = near.into_split();
    let (mut far_reads, mut far_writes) = far.into_split();
    let there = async move {
        let mut piece = vec![0; 64 << 10];
        while let Ok(read @ 1..) = near_reads.read(&mut piece).await {
            if far_writes.write_all(&piece[..read]).await.is_err() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let _ = far_writes.shutdown().await;
        // The peer ends a connection: a client that has stopped sending may still receive the rest.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = there => {}
        _ = tokio::io::copy(&mut far_reads, &mut near_writes) => {}
    }
}
