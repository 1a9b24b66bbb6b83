//! A relay in front of a peer: all connections pass through it, so a test can delay data, count bytes and cut
//! connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// The speed of the relay towards the peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum RelaySpeed {
    /// Without a delay.
    Fast,
    /// A few kilobytes at a time, with pauses and small buffers.
    Slow,
}

/// A relay. Dropping it closes all connections and the listener.
pub(super) struct Relay {
    pub(super) begin: SocketAddr,
    sent_bytes: Arc<AtomicUsize>,
    _carrying: JoinSet<()>,
}

impl Relay {
    pub(super) fn start(end: SocketAddr, speed: RelaySpeed) -> Relay {
        let socket = TcpSocket::new_v4().unwrap();
        if let RelaySpeed::Slow = speed {
            socket.set_recv_buffer_size(64 << 10).unwrap();
        }
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let begin = listener.local_addr().unwrap();
        let sent_bytes = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent_bytes);
        let mut carrying = JoinSet::new();
        carrying.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(forward(socket, end, speed, Arc::clone(&count)));
            }
        });
        Relay { begin, sent_bytes, _carrying: carrying }
    }

    /// The number of bytes that were sent to the peer.
    pub(super) fn sent_bytes(&self) -> usize {
        self.sent_bytes.load(Ordering::SeqCst)
    }
}

async fn forward(near: TcpStream, end: SocketAddr, speed: RelaySpeed, count: Arc<AtomicUsize>) {
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
            count.fetch_add(read, Ordering::SeqCst);
            if let RelaySpeed::Slow = speed {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
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
