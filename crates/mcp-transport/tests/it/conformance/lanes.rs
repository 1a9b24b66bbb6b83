//! The peer on Streamable HTTP, where each request has a response of its own: an event stream, which is open as long as
//! the script has something to say on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::framing;
use super::wires::{Act, Manner, Script};
use crate::http::peer::{Heard, Peer, Reply, Step, reply};

/// The responses that are open, by the id of their request.
type Lanes = Arc<Mutex<HashMap<String, UnboundedSender<Step>>>>;

pub(super) async fn start(manner: Manner, script: Script) -> Peer {
    let lanes = Lanes::default();
    Peer::start(move |heard| answer(heard, manner, &script, &lanes)).await
}

fn answer(heard: &Heard, manner: Manner, script: &Script, lanes: &Lanes) -> Reply {
    match heard.verb.as_str() {
        "POST" => {}
        "GET" => return reply(405, "", ""),
        _ => return reply(200, "", ""),
    }
    let message = heard.rpc();
    let acts = script(&message);
    if message["id"].is_null() || message["method"].is_null() {
        let dies = acts.iter().any(|it| matches!(it, Act::Die));
        return if dies { vec![Step::Close] } else { reply(202, "", "") };
    }
    let (lane, steps) = unbounded_channel();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    lane.send(Step::Write(head.into())).unwrap();
    if !manner.begin.is_empty() {
        lane.send(Step::Write(framing::chunk(manner.begin))).unwrap();
    }
    let key = |id: &Value| id.to_string();
    lanes.lock().unwrap().insert(key(&message["id"]), lane.clone());
    let mut over = !acts.is_empty();
    for act in acts {
        let event = |text: &str| framing::event(text, manner.ends);
        let write = |text: &str| Step::Write(framing::chunk(text));
        let step = match act {
            Act::Say(text) => write(&event(&text)),
            Act::Begin(text) => write(framing::halves(&event(&text)).0),
            Act::Die => Step::Close,
            Act::Answer(id, text) => {
                if let Some(lane) = lanes.lock().unwrap().remove(&key(&id)) {
                    let _ = lane.send(write(&event(&text)));
                    let _ = lane.send(end());
                }
                continue;
            }
            Act::Finish(_) => continue,
            Act::Hold => {
                over = false;
                continue;
            }
        };
        lane.send(step).unwrap();
    }
    if over && lanes.lock().unwrap().remove(&key(&message["id"])).is_some() {
        lane.send(end()).unwrap();
    }
    vec![Step::Follow(Arc::new(tokio::sync::Mutex::new(steps)))]
}

/// The orderly end of a response.
fn end() -> Step {
    Step::Write(b"0\r\n\r\n".to_vec())
}
