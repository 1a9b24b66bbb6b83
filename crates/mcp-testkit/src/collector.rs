//! An OpenTelemetry collector that keeps what it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector over HTTP on its own port. It accepts every request and runs until the process ends.
pub struct OtlpCollector {
    /// Its base URL.
    pub url: String,
    requests: Requests,
}

/// The path and body of each request.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

impl OtlpCollector {
    /// Starts a collector.
    pub fn start() -> OtlpCollector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let received = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let received = Arc::clone(&received);
                // A connection may be kept open for the next export.
                std::thread::spawn(move || while receive(stream.as_ref().unwrap(), &received).is_some() {});
            }
        });
        OtlpCollector { url, requests }
    }

    /// The bodies of the requests to a path so far, such as `/v1/traces`.
    pub fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.0 == path).map(|request| request.1.clone()).collect()
    }
}

/// Receives one request. Returns `None` at the end of the connection.
fn receive(mut stream: &TcpStream, requests: &Requests) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().to_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1).unwrap().to_owned();
    requests.lock().unwrap().push((path, body));
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
        .ok()
}
