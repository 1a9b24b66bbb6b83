//! The benchmark server: `server [--mode stdio|http] [--tools N] [--page N] [--startup-ms N] [--reply json|sse]
//! [--definitions full|short]`.
//!
//! Over HTTP it listens on a free loopback port and prints its URL.

#![expect(clippy::print_stdout, reason = "its parent process reads the URL from standard output")]

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use mcp_benches::Failure;
use mcp_benches::bench_server::{BenchServer, Definitions, ResponseAction};
use mcp_benches::options::Options;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The kind of HTTP response.
#[derive(Clone, Copy)]
enum Reply {
    Json,
    Stream,
}

fn main() -> Result<(), Failure> {
    let options = Options::read();
    std::thread::sleep(Duration::from_millis(options.number("--startup-ms", 0) as u64));
    let definitions = match options.text("--definitions", "full") {
        "short" => Definitions::Short,
        _ => Definitions::Full,
    };
    let (tools, page) = (options.number("--tools", 0), options.number("--page", 0));
    let answers = Arc::new(BenchServer::new(tools, page, definitions));
    match options.text("--mode", "stdio") {
        "http" => {
            let reply = if options.text("--reply", "json") == "sse" { Reply::Stream } else { Reply::Json };
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(http(answers, reply))
        }
        _ => stdio(&answers),
    }
}

/// Responses to requests of one read are sent in one write.
fn stdio(answers: &BenchServer) -> Result<(), Failure> {
    let mut input = std::io::BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let (mut line, mut out) = (Vec::new(), String::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let start = out.len();
        match answers.answer(&line, &mut out) {
            ResponseAction::Now => out.push('\n'),
            ResponseAction::Nothing => {}
            ResponseAction::After(milliseconds) => {
                let late = format!("{}\n", out.split_off(start));
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(milliseconds));
                    std::io::stdout().lock().write_all(late.as_bytes())
                });
            }
        }
        if !out.is_empty() && !input.buffer().contains(&b'\n') {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(out.as_bytes())?;
            stdout.flush()?;
            out.clear();
        }
    }
}

async fn http(answers: Arc<BenchServer>, reply: Reply) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream, Arc::clone(&answers), reply));
    }
}

async fn connection(mut stream: TcpStream, answers: Arc<BenchServer>, reply: Reply) -> Result<(), Failure> {
    let mut buffer = Vec::with_capacity(16 << 10);
    let (mut body, mut out) = (String::new(), Vec::new());
    loop {
        let head = loop {
            if let Some(at) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let (is_post, length) = {
            let text = str::from_utf8(&buffer[..head])?;
            let length = text.lines().find_map(|it| {
                let (name, value) = it.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            (text.starts_with("POST"), length.unwrap_or(0))
        };
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        body.clear();
        let answer = match is_post {
            true => Some(answers.answer(&buffer[head..head + length], &mut body)),
            false => None,
        };
        buffer.drain(..head + length);
        if let Some(ResponseAction::After(milliseconds)) = answer {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        out.clear();
        match (answer, reply) {
            (None, _) => {
                out.extend_from_slice(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
            }
            (Some(ResponseAction::Nothing), _) => {
                out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            }
            (Some(ResponseAction::Now | ResponseAction::After(_)), Reply::Json) => write!(
                out,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )?,
            (Some(ResponseAction::Now | ResponseAction::After(_)), Reply::Stream) => {
                let event = format!("event: message\ndata: {body}\n\n");
                write!(
                    out,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n\
                    {event}\r\n0\r\n\r\n",
                    event.len()
                )?;
            }
        }
        stream.write_all(&out).await?;
    }
}
