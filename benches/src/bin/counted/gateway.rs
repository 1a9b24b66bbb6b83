//! The gateway in front of stdio servers. The client is minimal: it repeats one request on one connection and expects
//! responses of the same length.

use std::sync::Arc;

use mcp_benches::minimal_client::{BOTH, INITIALIZE, INITIALIZED, JSON};
use mcp_benches::{Failure, TEXT};
use mcp_host_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::started;

/// The repeated request.
#[derive(Clone, Copy)]
pub(crate) enum GatewayRequest {
    /// A call in a session.
    Call,
    /// A stateless call.
    ModernCall,
    /// The list of all tools in a session.
    List,
}

/// Sends the request this many times.
pub(crate) async fn run_requests(what: GatewayRequest, times: usize) -> Result<(), Failure> {
    let (servers, tools) = match what {
        GatewayRequest::Call | GatewayRequest::ModernCall => (1, 0),
        // 230 tools, with the three that each server has.
        GatewayRequest::List => (10, 20),
    };
    let host = Arc::new(started(servers, tools).await?);
    let gateway = Gateway::new(Arc::clone(&host), GatewayOptions::default());
    let server = HttpServer::bind("127.0.0.1:0".parse()?, gateway, HttpOptions::default()).await?;
    let address = server.address().to_string();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let mut client = Client::connect(&address).await?;
    let (request, expected) = match what {
        GatewayRequest::Call => (client.in_a_session(&call("")).await?, TEXT),
        GatewayRequest::ModernCall => (modern(&address), TEXT),
        GatewayRequest::List => (
            client.in_a_session(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#).await?,
            "s9_count_meeting_19",
        ),
    };
    client.first(&request).await?;
    let said = String::from_utf8_lossy(&client.answer);
    if !said.starts_with("HTTP/1.1 200") || !said.contains(expected) {
        return Err(format!("the gateway answers {said:.300}").into());
    }
    for _ in 0..times {
        client.again(&request).await?;
    }
    drop(client);
    drop(stop);
    serving.await?;
    host.shutdown().await;
    Ok(())
}

/// A call of `echo`; `meta` precedes the other parameters.
fn call(meta: &str) -> String {
    let text = json!(TEXT);
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{meta}"name":"s0_echo","arguments":{{"text":{text}}}}}}}"#
    )
}

fn modern(address: &str) -> Vec<u8> {
    let meta = concat!(
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"floor","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}},"#
    );
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: s0_echo\r\n";
    request(address, headers, &call(meta))
}

fn request(address: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: {JSON}\r\naccept: {BOTH}\r\n\
        {headers}content-length: {length}\r\n\r\n"
    );
    format!("{head}{body}").into_bytes()
}

/// The connection.
struct Client {
    address: String,
    stream: TcpStream,
    /// The last response; all have the length of the first one.
    answer: Vec<u8>,
}

impl Client {
    async fn connect(address: &str) -> Result<Client, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Client { address: address.to_owned(), stream, answer: Vec::new() })
    }

    /// Opens a session and returns the request with this body in it.
    async fn in_a_session(&mut self, body: &str) -> Result<Vec<u8>, Failure> {
        self.first(&request(&self.address, "", INITIALIZE)).await?;
        let head = String::from_utf8_lossy(&self.answer).to_lowercase();
        let session = head.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
        let session = session.ok_or_else(|| format!("there is no session in {head}"))?;
        let headers = format!("mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n");
        self.first(&request(&self.address, &headers, INITIALIZED)).await?;
        Ok(request(&self.address, &headers, body))
    }

    /// Sends a request and reads a response of any length.
    async fn first(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(request).await?;
        self.answer.clear();
        while whole(&self.answer).is_none_or(|it| self.answer.len() < it) {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err("the gateway went away".into());
            }
        }
        Ok(())
    }

    /// Sends a request and reads a response as long as the last one.
    async fn again(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(request).await?;
        self.stream.read_exact(&mut self.answer).await?;
        if self.answer.starts_with(b"HTTP/1.1 200") {
            Ok(())
        } else {
            Err("the gateway answers otherwise".into())
        }
    }
}

/// The length of a response, once its head has arrived.
fn whole(response: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(response).ok()?;
    let head = text.find("\r\n\r\n")? + 4;
    let body = text[..head].lines().find_map(|it| it.strip_prefix("content-length: "));
    Some(head + body.map_or(Some(0), |it| it.parse::<usize>().ok())?)
}
