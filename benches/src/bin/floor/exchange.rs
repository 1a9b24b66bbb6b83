//! One POST per call: hand-written on a socket, or with an HTTP library alone.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use mcp_benches::Failure;
use mcp_benches::minimal_client::{
    BOTH, Hyper, INITIALIZE, INITIALIZED, JSON, Tool, call_message, list_message, page_of, payload, text_of,
};
use mcp_benches::options::Options;
use mcp_benches::scenario::{self, Ask, Client};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Runs the scenario.
pub(crate) async fn run(options: &Options) -> Result<Value, Failure> {
    scenario::run::<Exchanges>(options).await
}

/// Pooled connections, as many as were ever used at once.
struct Exchanges {
    authority: String,
    url: String,
    by: By,
}

enum By {
    Hand(Mutex<Vec<TcpStream>>),
    Hyper(Mutex<Vec<Hyper>>),
    Reqwest(reqwest::Client),
}

impl Exchanges {
    /// The message of the response: the body or its one event.
    async fn exchange(&self, message: String) -> Result<Bytes, Failure> {
        let body = match &self.by {
            By::Hand(kept) => {
                let mut stream = match take(kept) {
                    Some(stream) => stream,
                    None => {
                        let stream = TcpStream::connect(&self.authority).await?;
                        stream.set_nodelay(true)?;
                        stream
                    }
                };
                let body = by_hand(&mut stream, &self.authority, &message).await?;
                give(kept, stream);
                body
            }
            By::Hyper(kept) => {
                let mut hyper = match take(kept) {
                    Some(hyper) => hyper,
                    None => Hyper::connect(&self.authority).await?,
                };
                let body = hyper.post(&self.authority, message).await?;
                give(kept, hyper);
                body
            }
            By::Reqwest(client) => {
                let request = client.post(&self.url).header(CONTENT_TYPE, JSON).header(ACCEPT, BOTH);
                request.body(message).send().await?.bytes().await?
            }
        };
        payload(&body)
    }
}

fn take<T>(kept: &Mutex<Vec<T>>) -> Option<T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn give<T>(kept: &Mutex<Vec<T>>, it: T) {
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(it);
}

/// Writes a request and reads its response, with a length or in chunks.
async fn by_hand(stream: &mut TcpStream, authority: &str, message: &str) -> Result<Bytes, Failure> {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {authority}\r\ncontent-type: {JSON}\r\naccept: {BOTH}\r\ncontent-length: {}\r\n\
        \r\n{message}",
        message.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = Vec::with_capacity(4096);
    let head = loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err("the server has closed the connection".into());
        }
        if let Some(at) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let length = {
        let text = str::from_utf8(&buffer[..head])?;
        text.lines().find_map(|it| it.strip_prefix("content-length: ")?.parse::<usize>().ok())
    };
    if let Some(length) = length {
        buffer.reserve(length);
        while buffer.len() < head + length {
            stream.read_buf(&mut buffer).await?;
        }
        return Ok(Bytes::from(buffer).slice(head..head + length));
    }
    let mut body = Vec::new();
    let mut at = head;
    loop {
        let Some(line) = buffer[at..].windows(2).position(|it| it == b"\r\n") else {
            stream.read_buf(&mut buffer).await?;
            continue;
        };
        let size = usize::from_str_radix(str::from_utf8(&buffer[at..at + line])?, 16)?;
        let start = at + line + 2;
        while buffer.len() < start + size + 2 {
            stream.read_buf(&mut buffer).await?;
        }
        if size == 0 {
            return Ok(Bytes::from(body));
        }
        body.extend_from_slice(&buffer[start..start + size]);
        at = start + size + 2;
    }
}

impl Client for Exchanges {
    type List = Vec<Tool>;

    async fn connect(options: &Options) -> Result<Self, Failure> {
        let url = options.url().to_owned();
        let authority = url.strip_prefix("http://").and_then(|it| it.split('/').next());
        let authority = authority.ok_or("the URL is not of HTTP")?.to_owned();
        let by = match options.text("--by", "hand") {
            "hyper" => By::Hyper(Mutex::default()),
            "reqwest" => {
                // Another provider may be installed already; TLS is not used.
                let _ = rustls::crypto::ring::default_provider().install_default();
                By::Reqwest(reqwest::Client::builder().no_proxy().build()?)
            }
            _ => By::Hand(Mutex::default()),
        };
        let res = Exchanges { authority, url, by };
        res.exchange(INITIALIZE.to_owned()).await?;
        res.exchange(INITIALIZED.to_owned()).await?;
        Ok(res)
    }

    async fn call(&self, ask: Ask) -> Result<usize, Failure> {
        Ok(text_of(&self.exchange(call_message(7, ask)).await?)?.1)
    }

    async fn list(&self) -> Result<Vec<Tool>, Failure> {
        let (mut res, mut cursor) = (Vec::new(), None);
        loop {
            let page = page_of(&self.exchange(list_message(cursor.as_deref())).await?)?;
            res.extend(page.tools);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(res);
            }
        }
    }

    fn count(list: &Vec<Tool>) -> usize {
        list.len()
    }

    async fn close(self) {}
}
