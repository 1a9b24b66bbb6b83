//! The WebSocket transport against a peer that misbehaves.

mod closing;
mod frames;
mod opening;
mod peer;

use std::time::Duration;

use mcp_host_model::{Endpoint, Limits, RawJson, Secret, UrlEndpoint};
use mcp_host_transport::{
    Authorities, CallError, CallOptions, ConnectError, DialOptions, Eras, Session, SessionOptions, dialer,
};

pub(crate) use peer::{Opening, Peer, Plan, Step, legacy, modern, tool_result};

/// The settings of a connection.
#[derive(Default)]
pub(crate) struct TestClient {
    pub(crate) eras: Option<Eras>,
    pub(crate) limits: Option<Limits>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) authorities: Authorities,
}

impl TestClient {
    pub(crate) async fn connect(self, url: &str) -> Result<Session, ConnectError> {
        let TestClient { eras, limits, headers, authorities } = self;
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers = headers;
        let limits = limits.unwrap_or_default();
        let mut options = DialOptions::default();
        options.limits = limits.clone();
        options.authorities = authorities;
        let dial = dialer(&Endpoint::WebSocket(endpoint), &options)?;
        let eras = eras.unwrap_or(Eras::Both);
        Session::connect(dial, {
            let mut options = SessionOptions::default();
            options.limits = limits;
            options.eras = eras;
            options
        })
        .await
    }
}

async fn connect(peer: &Peer) -> Result<Session, ConnectError> {
    TestClient::default().connect(&peer.url).await
}

/// Calls the tool `echo`; the text of the result, or the error.
pub(crate) async fn call(session: &Session) -> Result<String, CallError> {
    let answer = session.call_tool("echo", &RawJson::empty_object(), CallOptions::default()).await?;
    Ok(answer.value.text())
}
