//! The peer on Streamable HTTP, where each request has its own response: an event stream that is open while the script
//! sends on it, or one JSON document.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcp_host_transport::testing::{ResponseForm, Script, ServerAction, Value};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::framing;
use super::peers::WriteStyle;
use crate::http::peer::{Peer, ReceivedRequest, Reply, Step, reply};

/// The open responses, by the id of their request.
type Lanes = Arc<Mutex<HashMap<String, UnboundedSender<Step>>>>;

pub(super) async fn start(form: ResponseForm, style: WriteStyle, script: Script) -> Peer {
    let lanes = Lanes::default();
    Peer::start(move |received| answer(received, form, style, &script, &lanes)).await
}

fn answer(
    received: &ReceivedRequest,
    form: ResponseForm,
    style: WriteStyle,
    script: &Script,
    lanes: &Lanes,
) -> Reply {
    match received.verb.as_str() {
        "POST" => {}
        "GET" => return reply(405, "", ""),
        _ => return reply(200, "", ""),
    }
    let message = received.rpc();
    let acts = script(&message);
    if message["id"].is_null() || message["method"].is_null() {
        let dies = acts.iter().any(|it| matches!(it, ServerAction::Disconnect));
        return if dies { vec![Step::Close] } else { reply(202, "", "") };
    }
    let (lane, steps) = unbounded_channel();
    if form == ResponseForm::Stream {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        lane.send(Step::Write(head.into())).unwrap();
        if !style.begin.is_empty() {
            lane.send(Step::Write(framing::chunk(style.begin))).unwrap();
        }
    }
    let framed = move |text: &str| match form {
        ResponseForm::Stream => framing::chunk(&framing::event(text, style.line_ending)),
        _ => document(text, style),
    };
    let begun = move |text: &str| match form {
        ResponseForm::Stream => framing::chunk(framing::halves(&framing::event(text, style.line_ending)).0),
        _ => framing::halved(&document(text, style)).0.to_vec(),
    };
    // The end of a response. A document has a content length and needs none.
    let end =
        move || Step::Write(if form == ResponseForm::Stream { b"0\r\n\r\n".to_vec() } else { Vec::new() });
    let key = |id: &Value| id.to_string();
    lanes.lock().unwrap().insert(key(&message["id"]), lane.clone());
    let mut over = !acts.is_empty();
    for act in acts {
        let step = match act {
            ServerAction::Send(text) => Step::Write(framed(&text)),
            ServerAction::SendFirstHalf(text) => Step::Write(begun(&text)),
            ServerAction::Disconnect => Step::Close,
            ServerAction::Respond(id, text) => {
                if let Some(lane) = lanes.lock().unwrap().remove(&key(&id)) {
                    let _ = lane.send(Step::Write(framed(&text)));
                    let _ = lane.send(end());
                }
                continue;
            }
            ServerAction::SendSecondHalf(_) => continue,
            ServerAction::KeepOpen => {
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

/// A complete response.
fn document(text: &str, style: WriteStyle) -> Vec<u8> {
    let body = format!("{}{text}{}", style.begin, style.line_ending.after_json());
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    format!("{head}{body}").into_bytes()
}
