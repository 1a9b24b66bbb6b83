//! The ports: HTTP, connection faults, and TLS in front of HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{http, secure};

/// Serves until standard input ends.
#[expect(clippy::print_stdout, reason = "its ports are told to whoever started it")]
pub(crate) async fn listen() {
    let (http_port, listener) = open().await;
    let site = Arc::new(http::Site::default());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            tokio::spawn(http::serve(socket, Arc::clone(&site)));
        }
    });
    let hush = rude(|socket| async move {
        let _socket = socket;
        std::future::pending::<()>().await;
    });
    let banner = rude(|mut socket| async move {
        let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.9\r\n").await;
        std::future::pending::<()>().await;
    });
    let flood = rude(|mut socket| async move { while socket.write_all(&[b'x'; 64 << 10]).await.is_ok() {} });
    let reset = rude(|socket| async move { socket.set_zero_linger().unwrap() });
    let end = rude(|socket| async move { drop(socket) });
    let mut ports = json!({
        "http": http_port, "hush": hush.await, "banner": banner.await, "flood": flood.await, "reset": reset.await,
        "end": end.await,
    });
    for (name, acceptor) in secure::acceptors() {
        let (port, listener) = open().await;
        ports[name] = port.into();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that rejects the certificate disconnects here.
                    let Ok(mut near) = acceptor.accept(socket).await else { return };
                    let mut far = TcpStream::connect(("127.0.0.1", http_port)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
    }
    ports["authority"] = secure::authority().into();
    println!("{ports}");
    let mut rest = [0; 64];
    let mut input = tokio::io::stdin();
    while input.read(&mut rest).await.is_ok_and(|it| it > 0) {}
    std::process::exit(0);
}

async fn open() -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap().port(), listener)
}

/// A port that handles each connection with this function.
async fn rude<F: Future<Output = ()> + Send + 'static>(
    about: impl Fn(TcpStream) -> F + Send + 'static,
) -> u16 {
    let (port, listener) = open().await;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // Longer than any client waits, so that no connection is held forever.
            tokio::spawn(tokio::time::timeout(Duration::from_secs(60), about(socket)));
        }
    });
    port
}
