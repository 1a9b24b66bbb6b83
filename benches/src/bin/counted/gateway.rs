//! The gateway in front of stdio servers. The client is minimal: it repeats one request on one connection and expects
//! responses of the same length.

use std::sync::Arc;

use mcp_benches::gateway_client::{GatewayClient, LIST_MESSAGE, call_message};
use mcp_benches::{Failure, TEXT};
use mcp_host_gateway::{Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host_runtime::Host;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::growth::large_servers;
use crate::{started, started_with};

/// The repeated request.
#[derive(Clone, Copy)]
pub(crate) enum GatewayRequest {
    /// A call in a session.
    Call,
    /// A stateless call.
    ModernCall,
    /// The list of all tools in a session.
    List,
    /// A call of one of 100,000 tools, in a session.
    HitAmongMany,
    /// A call of a tool that does not exist among 100,000 tools, in a session.
    MissAmongMany,
}

/// Sends the request this many times.
pub(crate) async fn run_requests(what: GatewayRequest, times: usize) -> Result<(), Failure> {
    let prepared = PreparedRequest::new(what).await?;
    prepared.send(times).await?.end().await
}

/// A request with its client, and the gateway.
pub(crate) struct PreparedRequest {
    serving: ServingGateway,
    client: GatewayClient,
    request: Vec<u8>,
}

impl PreparedRequest {
    /// Starts the gateway, and sends the request once.
    pub(crate) async fn new(what: GatewayRequest) -> Result<PreparedRequest, Failure> {
        let host = match what {
            GatewayRequest::Call | GatewayRequest::ModernCall => started(1, 0).await?,
            // 230 tools, with the three that each server has.
            GatewayRequest::List => started(10, 20).await?,
            GatewayRequest::HitAmongMany | GatewayRequest::MissAmongMany => {
                started_with(large_servers(10, 10_000)?).await?
            }
        };
        let serving = ServingGateway::start(host).await?;
        let mut client = GatewayClient::connect(&serving.address, None).await?;
        if !matches!(what, GatewayRequest::ModernCall) {
            client.open_session().await?;
        }
        let (request, expected) = match what {
            GatewayRequest::Call | GatewayRequest::HitAmongMany => {
                (client.request("", &call_message("", "s0_echo")), TEXT)
            }
            GatewayRequest::MissAmongMany => {
                (client.request("", &call_message("", "s0_ecco_x")), "not found")
            }
            GatewayRequest::ModernCall => (client.stateless_call("s0_echo"), TEXT),
            GatewayRequest::List => (client.request("", LIST_MESSAGE), "s9_count_meeting_19"),
        };
        client.send(&request).await?;
        let response = String::from_utf8_lossy(client.response());
        if !response.contains(expected) {
            return Err(format!("the gateway responds {response:.300}").into());
        }
        Ok(PreparedRequest { serving, client, request })
    }

    /// Sends the request this many times, and disconnects.
    pub(crate) async fn send(self, times: usize) -> Result<ServingGateway, Failure> {
        let PreparedRequest { serving, mut client, request } = self;
        for _ in 0..times {
            client.repeat(&request).await?;
        }
        Ok(serving)
    }
}

/// A gateway that serves a host.
pub(crate) struct ServingGateway {
    pub(crate) host: Arc<Host>,
    pub(crate) address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl ServingGateway {
    /// Serves the host on a free port.
    pub(crate) async fn start(host: Host) -> Result<ServingGateway, Failure> {
        let host = Arc::new(host);
        let gateway = Gateway::new(Arc::clone(&host), GatewayOptions::default());
        let server = HttpServer::bind("127.0.0.1:0".parse()?, gateway, HttpOptions::default()).await?;
        let address = server.address().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.serve(async { drop(stopped.await) }));
        Ok(ServingGateway { host, address, stop, task })
    }

    /// Ends the gateway and its servers.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        drop(self.stop);
        self.task.await?;
        self.host.shutdown().await;
        Ok(())
    }
}
