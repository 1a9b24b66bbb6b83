//! WebSocket against a peer that is rude in the ways that servers are, and in some that they are not.

mod closing;
mod frames;
mod opening;
mod peer;

use std::time::Duration;

use mcp_model::{Endpoint, Limits, RawJson, Secret, UrlEndpoint};
use mcp_transport::{
    Authorities, CallError, CallOptions, ConnectError, DialOptions, Eras, Session, SessionOptions, dialer,
};

pub(crate) use peer::{Opening, Peer, Plan, Step, legacy, modern, said};

/// How a test connects; [`How::default`] is how everybody does.
#[derive(Default)]
pub(crate) struct How {
    pub(crate) eras: Option<Eras>,
    pub(crate) limits: Option<Limits>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) authorities: Authorities,
}

impl How {
    pub(crate) async fn connect(self, url: &str) -> Result<Session, ConnectError> {
        let How { eras, limits, headers, authorities } = self;
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers = headers;
        let limits = limits.unwrap_or_default();
        let options = DialOptions { limits: limits.clone(), authorities, ..DialOptions::default() };
        let dial = dialer(&Endpoint::WebSocket(endpoint), &options)?;
        let eras = eras.unwrap_or(Eras::Both);
        Session::connect(dial, SessionOptions { limits, eras, ..SessionOptions::default() }).await
    }
}

async fn connect(peer: &Peer) -> Result<Session, ConnectError> {
    How::default().connect(&peer.url).await
}

/// Calls the tool `echo`; the text of the result, or the error.
pub(crate) async fn call(session: &Session) -> Result<String, CallError> {
    let answer = session.call_tool("echo", &RawJson::empty_object(), CallOptions::default()).await?;
    Ok(answer.value.text())
}

/// Waits until something is so, for the other side needs a moment to notice.
pub(crate) async fn until(what: impl Fn() -> bool) {
    let patience = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), patience).await.expect("it does not come to be so");
}
