//! Records a session with the demo server and replays it without the server:
//! `cargo run -p mcp-host-recording --example record_and_replay`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_demo::HttpServer;
use mcp_host_model::{Endpoint, RawJson, UrlEndpoint};
use mcp_host_recording::{Recorder, Recording, endpoint_secrets};
use mcp_host_transport::{CallOptions, Dial, DialOptions, Session, SessionOptions, dialer};

/// What a test would do with its server. Returns the results of its calls.
async fn use_server(dial: Arc<dyn Dial>) -> Result<Vec<String>, Box<dyn Error>> {
    let session = Session::connect(dial, SessionOptions::default()).await?;
    let mut results = Vec::new();
    for (tool, arguments) in [
        ("echo", r#"{"text":"hello"}"#),
        ("add", r#"{"a":2,"b":3}"#),
        // The demo server returns a header of the request.
        ("header", r#"{"name":"authorization"}"#),
    ] {
        let arguments = RawJson::parse(arguments.into())?;
        results.push(session.call_tool(tool, &arguments, CallOptions::default()).await?.value.text());
    }
    // The recording is complete once the session is closed.
    session.close(Duration::from_secs(1)).await;
    Ok(results)
}

/// What the server returned, what its recording returned, and the text of the recording.
pub(crate) async fn run() -> Result<(Vec<String>, Vec<String>, String), Box<dyn Error>> {
    let server = HttpServer::bind("127.0.0.1:0".parse()?).await?;
    let mut endpoint = UrlEndpoint::new(server.url().parse()?);
    endpoint.headers.push(("Authorization".to_owned(), "Bearer hunter2hunter2".into()));
    let endpoint = Endpoint::Http(endpoint);
    let serving = tokio::spawn(server.serve(std::future::pending()));

    let recorder = Recorder::default();
    let dial = dialer(&endpoint, &DialOptions::default())?;
    let recorded = use_server(recorder.wrap("demo", dial, &endpoint_secrets(&endpoint))).await?;
    let text = recorder.recording().to_text();
    serving.abort();

    let recording = Recording::parse(&text)?;
    let server = recording.server("demo").ok_or("the recording has no such server")?;
    Ok((recorded, use_server(server.dialer()).await?, text))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (recorded, replayed, text) = run().await?;
    println!("recorded: {recorded:?}\nreplayed: {replayed:?}\n\n{text}");
    Ok(())
}
