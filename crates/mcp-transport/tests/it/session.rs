//! Handshakes and lists, on the in-memory transport with a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_host_model::{Era, Limits, RawJson};
use mcp_host_transport::{
    CallError, CallOptions, ConnectError, Dial, Disconnect, DisconnectReason, EraReason, Eras, ErrorResponse,
    Link, Outbound, RequestError, Session, SessionOptions, SessionState, StreamError, StreamId,
};
use mcp_testkit::servers;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::in_memory::{Peer, Reply, answer, dial, discovered, initialized, refuse};

/// Connects. Returns the outcome and the methods that the peer received.
pub(crate) async fn connect(
    eras: Eras,
    peer: impl Fn(&Value) -> Vec<Reply> + Send + Sync + 'static,
) -> (Result<Session, ConnectError>, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let peer: Peer = Arc::new(move |message| {
        note.lock().unwrap().push(message["method"].as_str().unwrap_or("answer").to_owned());
        peer(message)
    });
    let mut limits = Limits::default();
    limits.startup = Duration::from_secs(60);
    limits.list_pages = 50;
    let mut options = SessionOptions::default();
    options.eras = eras;
    options.limits = limits;
    let session = Session::connect(dial(peer), options).await;
    let seen = seen.lock().unwrap().clone();
    (session, seen)
}

#[track_caller]
fn check(outcome: (Result<Session, ConnectError>, Vec<String>), want: &str, methods: &[&str]) {
    let got = match outcome.0 {
        Ok(session) => format!("{} {}", session.era().as_str(), session.version()),
        Err(error) => error.to_string(),
    };
    assert_eq!((got.as_str(), outcome.1), (want, methods.iter().map(|it| (*it).to_owned()).collect()));
}

#[tokio::test(start_paused = true)]
async fn modern_server_needs_no_initialize() {
    let peer = |message: &Value| match message["method"].as_str() {
        Some("server/discover") => answer(message, discovered(&["2025-11-25", "2026-07-28"])),
        _ => panic!("{message}"),
    };
    check(connect(Eras::Both, peer).await, "modern 2026-07-28", &["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn any_other_error_leads_to_initialize() {
    for code in [-32601, -32600, -32602, -32000, -1, 0] {
        let peer = move |message: &Value| match message["method"].as_str() {
            Some("server/discover") => refuse(message, code, Value::Null),
            Some("initialize") => {
                assert_eq!(message["params"]["protocolVersion"], "2025-11-25");
                answer(message, initialized("2024-11-05"))
            }
            _ => vec![],
        };
        let methods = ["server/discover", "initialize"];
        let outcome = connect(Eras::Both, peer).await;
        check((outcome.0, outcome.1[..2].to_vec()), "legacy 2024-11-05", &methods);
    }
}

#[tokio::test(start_paused = true)]
async fn modern_error_is_reported_and_supported_versions_are_used() {
    let peer = |message: &Value| refuse(message, -32021, Value::Null);
    check(
        connect(Eras::Both, peer).await,
        "the server refused the handshake: no (code -32021)",
        &["server/discover"],
    );
    let peer = |message: &Value| match message["method"].as_str() {
        Some("server/discover") => refuse(message, -32022, json!({"supported": ["2025-06-18"]})),
        Some("initialize") => answer(message, initialized("2025-06-18")),
        _ => vec![],
    };
    let outcome = connect(Eras::Both, peer).await;
    check((outcome.0, outcome.1[..2].to_vec()), "legacy 2025-06-18", &["server/discover", "initialize"]);
    // The server refuses a version that it lists as supported: the probe is repeated once.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let peer = move |message: &Value| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => refuse(message, -32022, json!({"supported": ["2026-07-28", "2025-06-18"]})),
        _ => answer(message, discovered(&["2026-07-28"])),
    };
    let twice = ["server/discover", "server/discover"];
    check(connect(Eras::Both, peer).await, "modern 2026-07-28", &twice);
    let peer = |message: &Value| refuse(message, -32022, json!({"supported": ["2026-07-28"]}));
    check(connect(Eras::Both, peer).await, "the server refused the handshake: no (code -32022)", &twice);
    let peer = |message: &Value| refuse(message, -32022, json!({"supported": ["2031-01-01"]}));
    let want = "the server supports protocol version 2031-01-01, which this client does not support";
    check(connect(Eras::Both, peer).await, want, &["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn unanswered_probe_falls_back_after_three_seconds() {
    let peer = |message: &Value| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        _ => vec![],
    };
    let begun = Instant::now();
    let (session, methods) = connect(Eras::Both, peer).await;
    let session = session.unwrap();
    assert_eq!((session.era(), session.era_reason()), (Era::Legacy, EraReason::ProbeIgnored));
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert_eq!(methods[..2], ["server/discover", "initialize"]);
}

/// A server of both eras whose start takes this long, and that answers pending requests in this order.
fn dual_era_server(start: Duration, order: [&'static str; 2]) -> Arc<dyn Dial> {
    servers::in_memory("dual", move |link| async move {
        let Link { mut outbound, inbound, mut shutdown, .. } = link;
        tokio::time::sleep(start).await;
        loop {
            let mut pending: Vec<Value> = Vec::new();
            loop {
                tokio::select! {
                    biased;
                    Some(Outbound::Send(message)) = outbound.next() => {
                        pending.push(serde_json::from_slice(&message.body).unwrap());
                    }
                    () = tokio::time::sleep(Duration::from_millis(10)) => break,
                    _ = shutdown.requested() => return Disconnect::new(DisconnectReason::Stopped),
                }
            }
            pending.sort_by_key(|message| order.iter().position(|method| message["method"] == *method));
            for message in pending {
                let result = match message["method"].as_str() {
                    Some("server/discover") => discovered(&["2026-07-28"]),
                    Some("initialize") => initialized("2025-11-25"),
                    _ => continue,
                };
                let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                inbound.deliver(StreamId::Shared, response.to_string().into());
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn era_of_a_server_does_not_depend_on_the_time_of_its_start() {
    for order in [["server/discover", "initialize"], ["initialize", "server/discover"]] {
        for (limit, starts) in [(60, &[0, 1, 3, 19, 21, 40, 58][..]), (5, &[0, 1, 3, 4]), (2, &[0, 1])] {
            for seconds in starts {
                let begun = tokio::time::Instant::now();
                let mut limits = Limits::default();
                limits.startup = Duration::from_secs(limit);
                let mut options = SessionOptions::default();
                options.limits = limits;
                let dial = dual_era_server(Duration::from_secs(*seconds), order);
                let session = Session::connect(dial, options).await.unwrap();
                let era = (session.era(), session.era_reason());
                assert_eq!(era, (Era::Modern, EraReason::Discovered), "{seconds} s of {limit} s");
                // The lists are read within the limit of the last start.
                let rest = session.start_deadline() - tokio::time::Instant::now();
                assert!(rest <= Duration::from_secs(limit) && rest > Duration::ZERO, "{rest:?}");
                assert!(begun.elapsed() < Duration::from_secs(2 * limit + 1));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_was_not_available_is_probed_again() {
    let unavailable = || RequestError::from(ErrorResponse::new(503));
    let starting = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("server/discover") if starting.swap(false, std::sync::atomic::Ordering::Relaxed) => {
            vec![Reply::FailStream(message["id"].as_u64().unwrap(), StreamError::Refused(unavailable()))]
        }
        Some("server/discover") => answer(message, discovered(&["2026-07-28"])),
        Some("initialize") => answer(message, initialized("2025-11-25")),
        _ => vec![],
    };
    let session = connect(Eras::Both, peer).await.0.unwrap();
    assert_eq!((session.era(), session.era_reason()), (Era::Modern, EraReason::Discovered));
    // A server that always refuses the probe like this is a legacy server.
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("server/discover") => {
            vec![Reply::FailStream(message["id"].as_u64().unwrap(), StreamError::Refused(unavailable()))]
        }
        Some("initialize") => answer(message, initialized("2025-11-25")),
        _ => vec![],
    };
    let session = connect(Eras::Both, peer).await.0.unwrap();
    assert_eq!((session.era(), session.era_reason()), (Era::Legacy, EraReason::ProbeRefused(503)));
}

#[tokio::test(start_paused = true)]
async fn server_that_refuses_initialize_has_the_era_of_its_probe() {
    let asked: Arc<Mutex<Option<Value>>> = Arc::default();
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("server/discover") => {
            *asked.lock().unwrap() = Some(message.clone());
            vec![]
        }
        Some("initialize") => {
            let probe = asked.lock().unwrap().take().unwrap();
            let both = [answer(&probe, discovered(&["2026-07-28"])), refuse(message, -32022, Value::Null)];
            both.into_iter().flatten().collect()
        }
        other => {
            assert_ne!(other, Some("notifications/cancelled"), "initialize must not be cancelled");
            vec![]
        }
    };
    check(connect(Eras::Both, peer).await, "modern 2026-07-28", &["server/discover", "initialize"]);
    let peer = |message: &Value| match message["method"].as_str() {
        Some("initialize") => refuse(message, -32601, Value::Null),
        _ => vec![],
    };
    let want = "the server refused the handshake: no (code -32601)";
    check(connect(Eras::Both, peer).await, want, &["server/discover", "initialize"]);
    let peer = |message: &Value| answer(message, initialized("2026-07-28"));
    let want = "the server supports protocol version 2026-07-28, which this client does not support";
    check(connect(Eras::Legacy, peer).await, want, &["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn server_that_exits_after_its_handshake_is_not_connected() {
    let peer = |message: &Value| match message["method"].as_str() {
        Some("initialize") => {
            let mut replies = answer(message, initialized("2025-11-25"));
            replies.push(Reply::Disconnect);
            replies
        }
        _ => vec![],
    };
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    session.closed().await;
    assert_eq!(*session.state().borrow(), SessionState::Error("it closed the connection".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn unsupported_version_of_the_server_is_refused() {
    let peer = |message: &Value| answer(message, initialized("1999-01-01"));
    let want = "the server supports protocol version 1999-01-01, which this client does not support";
    check(connect(Eras::Legacy, peer).await, want, &["initialize"]);
    let peer = |message: &Value| answer(message, json!({"hello": 1}));
    let (session, _) = connect(Eras::Legacy, peer).await;
    assert!(matches!(session, Err(ConnectError::InvalidResponse(_))));
}

#[tokio::test(start_paused = true)]
async fn closed_peer_is_reported() {
    let peer = |_: &Value| vec![Reply::Disconnect];
    let want = "the server could not be started: it closed the connection";
    // The server may have exited because of the probe, so there is a second connection without it.
    check(connect(Eras::Both, peer).await, want, &["server/discover", "initialize"]);
    check(connect(Eras::Legacy, peer).await, want, &["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn modern_requests_contain_the_client_info() {
    let peer = |message: &Value| match message["method"].as_str() {
        Some("server/discover") => answer(message, discovered(&["2026-07-28"])),
        Some("tools/call") => {
            let meta = &message["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcp-host");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
            answer(
                message,
                json!({"resultType": "complete", "content": [{"type": "text", "text": "input_required\""}]}),
            )
        }
        _ => answer(
            message,
            json!({"resultType": "input_required", "inputRequests": {"x\"input_required\"": 1}}),
        ),
    };
    let session = connect(Eras::Both, peer).await.0.unwrap();
    let answer = session.call_tool("t", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    assert_eq!(answer.value.text(), "input_required\"", "a text is no state");
    let nested = RawJson::parse("{\"a\":{\"b\":{}}}".into()).unwrap();
    let answer = session.request_raw("x/y", None, &nested, CallOptions::default()).await.unwrap();
    assert!(answer.value.as_str().contains("input_required"));
}

#[tokio::test(start_paused = true)]
async fn modern_listen_stream_is_reopened() {
    let listened = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&listened);
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("server/discover") => {
            let mut result = discovered(&["2026-07-28"]);
            result["capabilities"] = json!({"tools": {"listChanged": true}, "prompts": {}});
            answer(message, result)
        }
        Some("subscriptions/listen") => {
            note.lock().unwrap().push(message["params"]["notifications"].clone());
            let changed =
                Reply::Send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            match note.lock().unwrap().len() {
                1 => [vec![changed], answer(message, json!({}))].into_iter().flatten().collect(),
                _ => vec![],
            }
        }
        _ => vec![],
    };
    let session = connect(Eras::Both, peer).await.0.unwrap();
    let mut changes = session.list_changes();
    // One change was announced, and one may have been missed.
    changes.wait_for(|it| it.tools == 2 && it.prompts == 0).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(*listened.lock().unwrap(), vec![json!({"toolsListChanged": true}); 2]);
}

/// A server whose list has these pages: (requested cursor, tools, next cursor).
pub(crate) fn pages(
    pages: &'static [(Option<&str>, &[&str], Option<&str>)],
) -> impl Fn(&Value) -> Vec<Reply> {
    move |message| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        Some("tools/list") => {
            let asked = message["params"]["cursor"].as_str();
            let (_, tools, next) = pages.iter().find(|it| it.0 == asked).unwrap();
            let tools: Vec<Value> = tools.iter().map(|it| json!({"name": it, "inputSchema": {}})).collect();
            answer(message, json!({"tools": tools, "nextCursor": next}))
        }
        _ => vec![],
    }
}

#[track_caller]
pub(crate) fn names(
    listing: &Result<mcp_host_transport::ListResult<mcp_host_model::Tool>, CallError>,
) -> String {
    match listing {
        Ok(listing) => listing.items.iter().map(|it| it.name.as_ref()).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn hd_sc8_sk_10_all_pages_are_read() {
    let peer =
        pages(&[(None, &["a"], Some("y")), (Some("y"), &["b"], Some("x\"y")), (Some("x\"y"), &["c"], None)]);
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    assert_eq!(names(&session.list_tools().await), "a b c");
}

#[tokio::test(start_paused = true)]
async fn endless_list_is_ended() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        Some("tools/list") => {
            let next = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            answer(message, json!({"tools": [], "nextCursor": next.to_string()}))
        }
        _ => vec![],
    };
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    let list = session.list_tools().await.unwrap();
    assert_eq!(list.defect.unwrap().to_string(), "tools/list has more than 50 pages");
}

#[tokio::test(start_paused = true)]
async fn skills_are_listed_within_the_limits_of_lists() {
    let skill = |name: &str| {
        let frontmatter = json!({"name": name, "description": "d"});
        json!({"uri": format!("skill://{name}/SKILL.md"), "frontmatter": frontmatter, "resources": "dynamic"})
    };
    // The second page and its next cursor.
    for (second, next, want) in [
        (vec![skill("b"), json!({"uri": "skill://c"})], None, "a b, 1 rejected"),
        (vec![], Some("x"), "a, 0 rejected"),
        (vec![skill("b"); 20_000], None, "20000 items, skills/list has more than 20000 items"),
    ] {
        let first = skill("a");
        let peer = move |message: &Value| match message["method"].as_str() {
            Some("initialize") => {
                let mut result = initialized("2025-11-25");
                result["capabilities"] = json!({"extensions": {"io.modelcontextprotocol/skills": {}}});
                answer(message, result)
            }
            Some("skills/list") => match message["params"]["cursor"].as_str() {
                None => answer(message, json!({"skills": [first], "nextCursor": "x"})),
                Some(_) => answer(message, json!({"skills": second, "nextCursor": next})),
            },
            _ => vec![],
        };
        let session = connect(Eras::Legacy, peer).await.0.unwrap();
        let got = match session.list_skills(CallOptions::default()).await {
            Ok(list) if list.items.len() > 2 => {
                let defect = list.defect.map(|defect| defect.to_string());
                format!("{} items, {}", list.items.len(), defect.unwrap_or_default())
            }
            Ok(list) => {
                let names: Vec<&str> = list.items.iter().map(|it| it.name.as_str()).collect();
                format!("{}, {} rejected", names.join(" "), list.rejected.len())
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want);
    }
}

#[tokio::test(start_paused = true)]
async fn dm_110_changed_limits_apply_to_the_next_request() {
    let peer = pages(&[(None, &["a", "b"], None)]);
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    session.set_limits({
        let mut limits = Limits::default();
        limits.list_items = 1;
        limits
    });
    let list = session.list_tools().await.unwrap();
    assert_eq!(
        (list.items.len(), list.defect.unwrap().to_string()),
        (1, "tools/list has more than 1 items".into())
    );
    session.set_limits(Limits::default());
    assert_eq!(names(&session.list_tools().await), "a b");

    // The peer does not respond to calls: only the idle timeout can end this one so early.
    session.set_limits({
        let mut limits = Limits::default();
        limits.idle = Some(Duration::from_secs(3));
        limits
    });
    let arguments = mcp_host_model::RawJson::empty_object();
    let error = session.call_tool("a", &arguments, CallOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "no response and no progress for 3 s");
}

#[tokio::test(start_paused = true)]
async fn unsent_call_is_reported_as_not_sent() {
    let session = connect(Eras::Legacy, pages(&[])).await.0.unwrap();
    let call = || async {
        let arguments = mcp_host_model::RawJson::empty_object();
        session.call_tool("a", &arguments, CallOptions::default()).await.unwrap_err()
    };
    let mut sent = Box::pin(call());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(sent.as_mut().poll(&mut context).is_pending());
    session.close(Duration::from_secs(1)).await;
    assert!(matches!(sent.await, CallError::Closed(_)));
    assert!(matches!(call().await, CallError::NotSent(_)));
}

#[tokio::test(start_paused = true)]
async fn list_changes_are_counted_and_pings_answered() {
    let pinged = Arc::new(Mutex::new(None));
    let note = Arc::clone(&pinged);
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        Some("notifications/initialized") => vec![
            Reply::Send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
            Reply::Send(json!({"jsonrpc": "2.0", "method": "ping", "id": "p"})),
        ],
        Some(_) => vec![],
        None => {
            *note.lock().unwrap() = Some(message.clone());
            vec![]
        }
    };
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    let mut changes = session.list_changes();
    changes.wait_for(|it| it.tools == 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*pinged.lock().unwrap(), Some(json!({"jsonrpc": "2.0", "id": "p", "result": {}})));
}
