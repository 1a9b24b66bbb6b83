//! A minimal HTTP client of the gateway: one connection, which sends prepared requests.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::minimal_client::{BOTH, INITIALIZE, INITIALIZED, JSON};
use crate::{Failure, TEXT};

/// A connection.
#[derive(Debug)]
pub struct GatewayClient {
    /// The host and the port.
    address: String,
    /// Headers of every request, each with its line end.
    headers: String,
    stream: TcpStream,
    response: Vec<u8>,
}

/// The message of a call of a tool with the arguments of `echo`; `meta` precedes the other parameters.
pub fn call_message(meta: &str, tool: &str) -> String {
    let text = json!(TEXT);
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{meta}"name":"{tool}","arguments":{{"text":{text}}}}}}}"#
    )
}

/// The message that requests the list of tools.
pub const LIST_MESSAGE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;

impl GatewayClient {
    /// Connects to `host:port`, with this token in each request.
    pub async fn connect(address: &str, token: Option<&str>) -> Result<GatewayClient, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let headers = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        Ok(GatewayClient { address: address.to_owned(), headers, stream, response: Vec::new() })
    }

    /// The last response with its head.
    pub fn response(&self) -> &[u8] {
        &self.response
    }

    /// Opens a session, which each later request of the connection belongs to.
    pub async fn open_session(&mut self) -> Result<(), Failure> {
        self.send(&self.request("", INITIALIZE)).await?;
        let head = String::from_utf8_lossy(&self.response).to_lowercase();
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.ok_or_else(|| format!("there is no session in {head:.300}"))?;
        self.headers.push_str(&format!("mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n"));
        self.send(&self.request("", INITIALIZED)).await
    }

    /// Opens the event stream of the session. Nothing can be sent after it.
    pub async fn open_stream(&mut self) -> Result<(), Failure> {
        let GatewayClient { address, headers, .. } = &*self;
        let request =
            format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n{headers}\r\n");
        self.stream.write_all(request.as_bytes()).await?;
        self.response.clear();
        self.read_head().await?;
        self.check_status()
    }

    /// A request with this body and further headers.
    pub fn request(&self, headers: &str, body: &str) -> Vec<u8> {
        let GatewayClient { address, headers: own, .. } = self;
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: {JSON}\r\naccept: {BOTH}\r\n\
            {own}{headers}content-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// A stateless call of a tool.
    pub fn stateless_call(&self, tool: &str) -> Vec<u8> {
        let meta = concat!(
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1"},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{}},"#
        );
        let headers =
            format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
        self.request(&headers, &call_message(meta, tool))
    }

    /// Sends a request and reads a response of any length.
    pub async fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(request).await?;
        self.response.clear();
        let head = self.read_head().await?;
        let text = str::from_utf8(&self.response[..head])?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let whole = head + length.map_or(Ok(0), str::parse::<usize>)?;
        while self.response.len() < whole {
            self.read_more().await?;
        }
        self.check_status()
    }

    /// Sends a request and reads a response as long as the last one, which costs the least.
    pub async fn repeat(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(request).await?;
        self.stream.read_exact(&mut self.response).await?;
        self.check_status()
    }

    /// Reads the head of a response and returns its length.
    async fn read_head(&mut self) -> Result<usize, Failure> {
        loop {
            if let Some(at) = self.response.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                return Ok(at + 4);
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.response).await? {
            0 => Err("the gateway closed the connection".into()),
            _ => Ok(()),
        }
    }

    fn check_status(&self) -> Result<(), Failure> {
        match self.response.starts_with(b"HTTP/1.1 20") {
            true => Ok(()),
            false => {
                Err(format!("the gateway responds {:.300}", String::from_utf8_lossy(&self.response)).into())
            }
        }
    }
}
