//! The engine with a scripted peer, in paused time.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::error::disconnect::DisconnectReason;
use crate::error::request_error::RequestError;
use crate::transport::{Epoch, MAX_CALLS};

impl Engine {
    /// The number of calls in the table and of permits in use.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        (self.pending.len(), MAX_CALLS - self.outbound.permits().available_permits())
    }
}

/// The transport's and the session's ends of an engine.
struct Peer {
    engine: Arc<Engine>,
    queue: OutboundQueue,
    incoming: mpsc::Receiver<Box<IncomingMessage>>,
}

fn peer() -> Peer {
    let (engine, queue, incoming) = Engine::new(false, None);
    let timer_engine = Arc::clone(&engine);
    tokio::spawn(async move { timer_engine.run_timer().await });
    Peer { engine, queue, incoming }
}

/// Settings with these timeouts in seconds.
fn settings(timeout: u64, idle_timeout: Option<u64>) -> CallSettings {
    CallSettings {
        timeout: Some(Duration::from_secs(timeout)),
        idle_timeout: idle_timeout.map(Duration::from_secs),
        ..CallSettings::default()
    }
}

/// Starts a call in its own task; resolves with its outcome as text.
fn call(engine: &Arc<Engine>, settings: CallSettings) -> tokio::task::JoinHandle<String> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move {
        let message = |id| OutboundMessage {
            epoch: Epoch(0),
            head: MessageHead::new(Some(id), "m", None),
            body: frame::request(id, "m", "", ""),
        };
        match engine.call(settings, message).await.1 {
            RpcOutcome::Response { frame, is_error, payload_start } => {
                let payload = String::from_utf8_lossy(&frame[payload_start..]).into_owned();
                format!("{} {payload}", if is_error { "error" } else { "result" })
            }
            RpcOutcome::StreamFailed(why) => format!("{why:?}"),
            RpcOutcome::Expired(expiry) => format!("{expiry:?}"),
            RpcOutcome::Closed(ended) => format!("closed: {ended}"),
        }
    })
}

impl Peer {
    /// The next command of the engine: the id of a message, or `-id` for a cancellation.
    async fn next_command(&mut self) -> i64 {
        match self.queue.next().await.expect("the engine is alive") {
            Outbound::Send(message) => message.head.id.map_or(0, |it| it as i64),
            Outbound::Cancel { id, .. } => -(id as i64),
        }
    }

    fn deliver(&self, text: impl Into<String>) {
        self.engine.deliver(StreamId::Shared, Bytes::from(text.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn responses_match_their_calls_in_any_order() {
    let mut peer = peer();
    let (a, b) = (call(&peer.engine, settings(60, None)), call(&peer.engine, settings(60, None)));
    let (first, second) = (peer.next_command().await, peer.next_command().await);
    peer.deliver(format!(r#"{{"result":{{"id":{first}}},"id":{second}}}"#));
    peer.deliver(format!(r#"{{"id":{first},"error":{{"code":1}}}}"#));
    let outcomes = (a.await.unwrap(), b.await.unwrap());
    assert_eq!(outcomes.0, r#"error {"code":1}}"#);
    assert_eq!(outcomes.1, format!(r#"result {{"id":{first}}},"id":{second}}}"#));
}

#[tokio::test(start_paused = true)]
async fn late_unknown_and_duplicate_responses_are_dropped() {
    let mut peer = peer();
    let waiting = call(&peer.engine, settings(60, None));
    let id = peer.next_command().await;
    for other in [id + 1, id + (1 << 16), 0, i64::MAX] {
        peer.deliver(format!(r#"{{"id":{other},"result":1}}"#));
    }
    peer.deliver(r#"{"id":"x","result":1}"#);
    peer.deliver(r#"{"id":null,"error":{"code":-1}}"#);
    // A ping from the server with the id of our call is a request.
    peer.deliver(format!(r#"{{"id":{id},"method":"ping"}}"#));
    peer.deliver(format!(r#"{{"id":{id},"result":2}}"#));
    peer.deliver(format!(r#"{{"id":{id},"result":3}}"#));
    assert_eq!(waiting.await.unwrap(), "result 2}");
    assert!(matches!(peer.incoming.recv().await.map(|it| *it),
            Some(IncomingMessage::Request { method, .. }) if method == Method::Ping));
}

#[tokio::test(start_paused = true)]
async fn only_an_error_on_a_request_stream_may_lack_an_id() {
    let mut peer = peer();
    let waiting = [(); 2].map(|()| call(&peer.engine, settings(60, None)));
    let ids = [peer.next_command().await as u64, peer.next_command().await as u64];
    let deliver = |stream, text: &'static str| {
        peer.engine.deliver(stream, Bytes::from_static(text.as_bytes()));
    };
    let own = |id| StreamId::Request(id, Epoch(0));
    for unmatched in
        [r#"{"id":null,"result":"unmatched"}"#, r#"{"result":{}}"#, r#"[{"result":1,"id":null}]"#]
    {
        ids.into_iter().for_each(|id| deliver(own(id), unmatched));
    }
    deliver(StreamId::Notifications(Epoch(0)), r#"{"id":null,"error":{"code":-1}}"#);
    deliver(own(ids[1]), r#"{"id":null,"error":{"code":-2}}"#);
    peer.deliver(format!(r#"{{"id":{},"result":2}}"#, ids[0]));
    let [first, second] = waiting;
    assert_eq!(first.await.unwrap(), "result 2}");
    assert_eq!(second.await.unwrap(), r#"error {"code":-2}}"#);
}

#[tokio::test(start_paused = true)]
async fn hd_119_silent_server_ends_a_call_at_its_deadline_with_a_cancel_notice() {
    let mut peer = peer();
    let started_at = Instant::now();
    let waiting = call(&peer.engine, settings(60, None));
    let id = peer.next_command().await;
    assert_eq!(waiting.await.unwrap(), "Absolute(60s)");
    assert_eq!(started_at.elapsed().as_secs(), 60);
    assert_eq!(peer.next_command().await, -id);
}

#[tokio::test(start_paused = true)]
async fn progress_moves_the_idle_deadline_and_is_reported() {
    let mut peer = peer();
    let received = Arc::new(Mutex::new(Vec::new()));
    let received_by_callback = Arc::clone(&received);
    let progress: OnProgress = Arc::new(move |it| received_by_callback.lock().unwrap().push(it.progress));
    let started_at = Instant::now();
    let waiting = call(&peer.engine, CallSettings { progress: Some(progress), ..settings(60, Some(5)) });
    let id = peer.next_command().await;
    for step in 1..=3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        peer.deliver(format!(
            r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{step}}}}}"#
        ));
    }
    assert_eq!(waiting.await.unwrap(), "Idle(5s)");
    assert_eq!(started_at.elapsed().as_secs(), 17);
    assert_eq!(*received.lock().unwrap(), [1.0, 2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn only_a_dropped_call_is_cancelled() {
    let mut peer = peer();
    let (dropped, completed) =
        (call(&peer.engine, settings(60, None)), call(&peer.engine, settings(60, None)));
    let (first, second) = (peer.next_command().await, peer.next_command().await);
    dropped.abort();
    assert_eq!(peer.next_command().await, -first);
    peer.deliver(format!(r#"{{"id":{first},"result":1}}"#));
    peer.deliver(format!(r#"{{"id":{second},"result":2}}"#));
    assert_eq!(completed.await.unwrap(), "result 2}");
    let next = call(&peer.engine, settings(60, None));
    assert!(peer.next_command().await > second, "nothing was cancelled in between");
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn hd_117_disconnect_ends_every_call() {
    let mut peer = peer();
    let waiting = call(&peer.engine, settings(60, None));
    peer.next_command().await;
    peer.engine.close(Disconnect::new(DisconnectReason::PeerClosed));
    assert_eq!(waiting.await.unwrap(), "closed: it closed the connection");
    assert_eq!(call(&peer.engine, settings(60, None)).await.unwrap(), "closed: it closed the connection");
}

#[tokio::test(start_paused = true)]
async fn stream_error_ends_only_its_own_call() {
    let mut peer = peer();
    let (a, b) = (call(&peer.engine, settings(60, None)), call(&peer.engine, settings(60, None)));
    let (first, second) = (peer.next_command().await as u64, peer.next_command().await as u64);
    let error = RequestError::new("no");
    peer.engine.fail_stream(first, StreamError::Lost(error));
    assert!(a.await.unwrap().starts_with("Lost(Other("));
    // An error without an id belongs to the request of its stream.
    let error = Bytes::from_static(br#"{"error":{"code":7},"id":null}"#);
    peer.engine.deliver(StreamId::Request(second, Epoch(0)), error);
    assert_eq!(b.await.unwrap(), r#"error {"code":7},"id":null}"#);
}

#[tokio::test(start_paused = true)]
async fn excess_messages_are_counted_and_refused() {
    let mut peer = peer();
    for _ in 0..MAX_INCOMING + 10 {
        peer.deliver(r#"{"method":"notifications/message"}"#);
    }
    assert_eq!((peer.engine.noise_bytes(), peer.engine.dropped_messages()), (0, 10));
    peer.deliver(r#"{"method":"sampling/createMessage","id":"x"}"#);
    let Some(Outbound::Send(refusal)) = peer.queue.next().await else { panic!("a request is answered") };
    assert!(refusal.body.starts_with(br#"{"jsonrpc":"2.0","id":"x","error":"#));
    peer.deliver("no protocol");
    assert_eq!((peer.engine.noise_bytes(), peer.engine.dropped_messages()), (11, 11));
}

#[tokio::test(start_paused = true)]
async fn calls_are_refused_when_the_server_does_not_read() {
    let peer = peer();
    let big = "x".repeat(1 << 20);
    let mut outcomes = Vec::new();
    for _ in 0..(MAX_QUEUED_BYTES >> 20) + 2 {
        let engine = Arc::clone(&peer.engine);
        let body = Bytes::from(big.clone());
        outcomes.push(tokio::spawn(async move {
            let head = |id| MessageHead::new(Some(id), "m", None);
            engine
                .call(settings(60, None), |id| OutboundMessage { epoch: Epoch(0), head: head(id), body })
                .await
                .1
        }));
    }
    let mut refused = 0;
    for outcome in outcomes {
        match outcome.await.unwrap() {
            RpcOutcome::StreamFailed(StreamError::Refused(_)) => refused += 1,
            RpcOutcome::Expired(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0);
}

#[tokio::test(start_paused = true)]
async fn responses_are_dropped_when_the_server_does_not_read() {
    let peer = peer();
    let id = ServerRequestId { epoch: Epoch(0), text: "1".repeat(1000) };
    for _ in 0..2 * MAX_QUEUED_BYTES / 1000 {
        peer.engine.respond(&id, &Ok(RawJson::empty_object()));
    }
    assert!(peer.engine.outbound.queued_bytes() < MAX_QUEUED_BYTES + 2000);
    assert!(peer.engine.dropped_messages() > 0);
    let long = "1".repeat(MAX_REQUEST_ID_BYTES + 1);
    peer.deliver(format!(r#"{{"id":{long},"method":"ping"}}"#));
    assert!(peer.engine.noise_bytes() > 1000, "a request with an oversized id is noise");
}

#[tokio::test(start_paused = true)]
async fn response_is_sent_to_the_session_of_its_request() {
    let mut peer = peer();
    let streams =
        [(StreamId::Shared, 0), (StreamId::Notifications(Epoch(1)), 1), (StreamId::Request(7, Epoch(2)), 2)];
    for (stream, epoch) in streams {
        peer.engine.deliver(stream, Bytes::from_static(br#"{"id":1,"method":"roots/list"}"#));
        let Some(IncomingMessage::Request { id, .. }) = peer.incoming.recv().await.map(|it| *it) else {
            panic!("a request")
        };
        peer.engine.respond(&id, &Ok(RawJson::empty_object()));
        let Some(Outbound::Send(response)) = peer.queue.next().await else { panic!("an answer") };
        assert_eq!(
            (response.epoch, &response.body[..]),
            (Epoch(epoch), &br#"{"jsonrpc":"2.0","id":1,"result":{}}"#[..])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nested_batch_is_ignored() {
    let mut peer = peer();
    let waiting = call(&peer.engine, settings(60, None));
    let id = peer.next_command().await;
    peer.deliver(format!(r#"[[{{"id":{id},"result":0}}],{{"method":"n"}},{{"id":{id},"result":1}}]"#));
    assert_eq!(waiting.await.unwrap(), "result 1}");
    assert!(matches!(peer.incoming.recv().await.map(|it| *it),
            Some(IncomingMessage::Notification { method, .. }) if method.as_str() == "n"));
}

#[tokio::test(start_paused = true)]
async fn frames_are_classified_as_solicited_or_unsolicited() {
    let mut peer = peer();
    let waiting = call(&peer.engine, settings(60, None));
    let id = peer.next_command().await;
    let check = |text: String, want| {
        assert_eq!(peer.engine.deliver(StreamId::Shared, Bytes::from(text.clone())), want, "{text}");
    };
    let changed = r#"{"method":"notifications/tools/list_changed"}"#;
    let progress = |token| {
        format!(r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#)
    };
    // Progress is unsolicited even while its call is in flight.
    check(progress(id), MessageClass::Unsolicited(1));
    check(progress(id + 1), MessageClass::Unsolicited(1));
    check(r#"{"method":"notifications/progress"}"#.to_owned(), MessageClass::Unsolicited(1));
    check(r#"{"id":1,"method":"ping"}"#.to_owned(), MessageClass::Unsolicited(1));
    check(
        format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(MAX_REQUEST_ID_BYTES)),
        MessageClass::Unsolicited(1),
    );
    for unsolicited in
        [changed, r#"{"id":null,"result":1}"#, r#"{"id":"x","result":1}"#, "{what", "[]", r#"{"method":1}"#]
    {
        check(unsolicited.to_owned(), MessageClass::Unsolicited(1));
    }
    check(format!("[{changed},{changed},{}]", progress(id)), MessageClass::Unsolicited(3));
    check(format!(r#"[{},{{"id":2,"method":"ping"}}]"#, progress(id)), MessageClass::Unsolicited(2));
    check(format!(r#"{{"id":{id},"result":2}}"#), MessageClass::Solicited);
    // The call has ended, so the response is late.
    check(progress(id), MessageClass::Unsolicited(1));
    check(format!(r#"{{"id":{id},"result":3}}"#), MessageClass::Unsolicited(1));
    assert_eq!(waiting.await.unwrap(), "result 2}");
    // The queue is full: the request is refused and counts as unsolicited.
    for _ in 0..MAX_INCOMING {
        peer.engine.deliver(StreamId::Shared, Bytes::from_static(br#"{"id":3,"method":"x"}"#));
    }
    check(r#"{"id":3,"method":"x"}"#.to_owned(), MessageClass::Unsolicited(1));
}

/// Returns the size of a batch. `calls` calls are in flight, and all of them have received a response since the last
/// write. The transport takes `first` messages, then yields to ready tasks, one of which starts another call.
async fn batch_len(calls: usize, first: usize) -> usize {
    let Peer { engine, mut queue, incoming: _incoming } = peer();
    let _calls: Vec<_> = (0..calls).map(|_| call(&engine, settings(60, None))).collect();
    while engine.in_flight().0 < calls {
        tokio::task::yield_now().await;
    }
    let mut batch = Vec::new();
    queue.next_many(&mut batch, first).await;
    (0..calls).for_each(|_| engine.outbound.count_response());
    let _one_more = call(&engine, settings(60, None));
    queue.fill_batch(&mut batch, 256).await;
    batch.len()
}

#[tokio::test(start_paused = true)]
async fn messages_are_batched_until_the_batch_is_full() {
    assert_eq!((batch_len(60, 2).await, batch_len(60, 19).await, batch_len(60, 20).await), (61, 61, 20));
    assert_eq!((batch_len(2, 1).await, batch_len(2, 2).await, batch_len(1, 1).await), (3, 2, 1));
}
