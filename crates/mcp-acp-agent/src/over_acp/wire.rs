//! A wire that writes nothing itself: each message becomes a request of the ACP connection.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::FuturesUnordered;
use mcp_transport::{
    Dial, EndReason, Ended, Epoch, Fault, Inbox, Lane, LaneEnd, Link, Opening, Out, Outgoing, RequestId,
    Transport,
};
use serde_json::Value;

use super::message::{Message, answer, lane_end, params};
use super::{OverAcp, Route};

/// A server of the client's.
pub(super) struct OverAcpDial {
    pub(super) over: OverAcp,
    pub(super) server_id: String,
    /// The largest answer that is taken, in bytes.
    pub(super) longest: usize,
}

impl Dial for OverAcpDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(OverAcpWire {
            over: self.over.clone(),
            server_id: self.server_id.clone(),
            longest: self.longest,
            refused: None,
        })
    }

    fn label(&self) -> String {
        "MCP over ACP".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        // The client was given nothing that is secret.
        text.chars().filter(|it| !it.is_control()).take(1000).collect()
    }

    fn redact_json(&self, _: &str) -> Option<String> {
        None
    }

    fn opening(&self) -> Opening {
        Opening::Negotiate
    }
}

struct OverAcpWire {
    over: OverAcp,
    server_id: String,
    longest: usize,
    /// How `server/discover` was refused.
    refused: Option<Fault>,
}

/// How a request ended.
struct Done {
    id: RequestId,
    epoch: Epoch,
    outcome: Result<Value, agent_client_protocol::Error>,
}

#[async_trait]
impl Transport for OverAcpWire {
    async fn run(mut self: Box<Self>, link: Link) -> Ended {
        let Link { mut out, inbox, mut stop } = link;
        let connection = self.over.0.connection.clone();
        let over = connection.terminated();
        tokio::pin!(over);
        let mut pending = FuturesUnordered::new();
        // A request that is abandoned is dropped, which the SDK tells the client.
        let mut abandons: HashMap<RequestId, AbortHandle> = HashMap::new();
        loop {
            tokio::select! {
                _ = stop.requested() => return Ended::new(EndReason::Stopped),
                _ = &mut over => return Ended::new(EndReason::PeerClosed),
                Some(done) = pending.next() => {
                    if let Ok(Done { id, epoch, outcome }) = done {
                        abandons.remove(&id);
                        self.settle(&*inbox, id, epoch, outcome);
                    }
                }
                next = out.next() => match next {
                    None => return Ended::new(EndReason::Stopped),
                    Some(Out::Abandon { id, notice: _ }) => {
                        if let Some(abandon) = abandons.remove(&id) {
                            abandon.abort();
                        }
                    }
                    Some(Out::Message(message)) => {
                        if let Some((id, sent)) = self.send(&inbox, &message) {
                            let (sent, abandon) = abortable(sent);
                            abandons.insert(id, abandon);
                            pending.push(sent);
                        }
                    }
                },
            }
        }
    }
}

impl OverAcpWire {
    /// Sends a request. What is none has no way to the client: the era that needs notifications and answers of ours is
    /// not spoken here.
    fn send(
        &self,
        inbox: &Arc<dyn Inbox>,
        message: &Outgoing,
    ) -> Option<(RequestId, impl Future<Output = Done> + Send + use<>)> {
        let (id, epoch) = (message.head.id?, message.epoch);
        if message.head.method == "initialize" {
            inbox.lane_ended(id, LaneEnd::Refused(self.only_modern()));
            return None;
        }
        let params = match params(&message.body) {
            Ok(params) => params,
            Err(error) => {
                let message = format!("the request cannot be put into ACP: {error}");
                inbox.lane_ended(id, LaneEnd::Refused(Fault { status: None, message, error: None }));
                return None;
            }
        };
        let ends = &self.over.0;
        let inbox = Arc::downgrade(inbox);
        let open = ends.routes.open(Route { server_id: self.server_id.clone(), inbox, id, epoch });
        let sent = ends.connection.send_request(Message {
            server_id: self.server_id.clone(),
            request_id: open.name.clone(),
            method: message.head.method.clone().into_owned(),
            params,
        });
        Some((id, async move {
            let outcome = sent.block_task().await;
            drop(open);
            Done { id, epoch, outcome }
        }))
    }

    fn settle(
        &mut self,
        inbox: &dyn Inbox,
        id: RequestId,
        epoch: Epoch,
        outcome: Result<Value, agent_client_protocol::Error>,
    ) {
        let answer = match outcome {
            Ok(response) => answer(id, response, self.longest),
            Err(error) => Err(lane_end(&error)),
        };
        match answer {
            Ok(frame) => {
                inbox.deliver(Lane::Request(id, epoch), frame);
            }
            Err(end) => {
                if let LaneEnd::Refused(fault) | LaneEnd::Lost(fault) = &end {
                    self.refused.get_or_insert_with(|| fault.clone());
                }
                inbox.lane_ended(id, end);
            }
        }
    }

    /// Why the older era is not tried: the way the stateless one was refused says it best.
    fn only_modern(&self) -> Fault {
        self.refused.clone().unwrap_or_else(|| Fault {
            status: None,
            message: "only MCP's stateless era goes over ACP, which the server does not speak".to_owned(),
            error: None,
        })
    }
}
