//! The order of posted messages.

use super::*;

fn message(id: Option<RequestId>, method: &'static str, bytes: usize) -> OutboundMessage {
    let head = MessageHead::new(id, method.into(), None);
    OutboundMessage { epoch: Epoch(0), head, body: Bytes::from(vec![0; bytes]) }
}

/// Queues messages (`7 method`, `- notification`, `- ` for a response) and abandonments (`-7`), finishes them
/// (`settled method`), and posts as many as possible after each step. Checks what was posted and aborted after each step.
#[track_caller]
fn check(steps: &[&'static str], want: &str) {
    let mut lanes = SseSendQueue::default();
    let mut said = Vec::new();
    let mut open: Vec<(MessageHead, Option<oneshot::Receiver<AbortReason>>)> = Vec::new();
    for step in steps {
        match step.split_once(' ') {
            Some(("settled", method)) => {
                let at = open.iter().position(|(head, _)| head.method == method).expect("it is under way");
                lanes.finish(&open.remove(at).0);
            }
            Some(("answered", id)) => lanes.answered(id.parse().unwrap()),
            Some((id, method)) => {
                assert_eq!(lanes.push(Outbound::Send(message(id.parse().ok(), method, 0))), None);
            }
            None => {
                let id = step.trim_start_matches('-').parse().unwrap();
                assert_eq!(lanes.push(Outbound::Cancel { id, notice: Some(Bytes::new()) }), None);
            }
        }
        let mut posted = Vec::new();
        while let Some((message, left)) = lanes.next() {
            posted.push(match message.head.method.is_empty() {
                true => "answer".to_owned(),
                false => message.head.method.trim_start_matches("notifications/").to_owned(),
            });
            open.push((message.head, left));
        }
        for (head, left) in &mut open {
            if let Some(Ok(leave)) = left.as_mut().map(oneshot::Receiver::try_recv) {
                posted.push(format!("{} {leave:?}", head.method));
            }
        }
        said.push(posted.join("+"));
    }
    assert_eq!(said.join(", "), want);
}

#[test]
fn requests_and_responses_are_concurrent() {
    check(&["1 a", "2 b", "- ", "- "], "a, b, answer, answer");
}

#[test]
fn notifications_are_sequential_and_block_nothing() {
    check(
        &["- notifications/x", "- notifications/y", "1 a", "- ", "settled notifications/x"],
        "x, , a, answer, y",
    );
}

#[test]
fn nothing_overtakes_the_initialized_notification() {
    check(
        &[
            "1 initialize",
            "settled initialize",
            "- notifications/initialized",
            "2 a",
            "- ",
            "settled notifications/initialized",
        ],
        "initialize, , initialized, , , answer+a",
    );
    check(
        &[
            "- notifications/x",
            "- notifications/initialized",
            "2 a",
            "settled notifications/x",
            "settled notifications/initialized",
        ],
        "x, , , initialized, a",
    );
}

#[test]
fn abandoned_request_is_dequeued_or_cancelled() {
    check(&["1 a", "settled a", "-1"], "a, , cancelled");
    check(&["1 a", "-1"], "a, cancelled+a Abandoned");
    check(
        &["- notifications/initialized", "1 a", "-1", "settled notifications/initialized"],
        "initialized, , , ",
    );
}

#[test]
fn post_of_an_answered_request_is_aborted() {
    check(&["1 a", "answered 1", "settled a"], "a, a Answered, ");
    check(&["1 a", "settled a", "answered 1"], "a, , ");
}

#[test]
fn posts_are_bounded_and_responses_have_their_own_limit() {
    let mut lanes = SseSendQueue::default();
    for id in 0..MAX_REQUESTS as u64 + 10 {
        assert_eq!(lanes.push(Outbound::Send(message(Some(id), "a", 0))), None);
    }
    let mut posted = Vec::new();
    while let Some((message, left)) = lanes.next() {
        posted.push((message.head, left));
    }
    assert_eq!(posted.len(), MAX_REQUESTS);
    lanes.push(Outbound::Send(message(None, "", 0)));
    assert_eq!(MessageKind::of(&lanes.next().unwrap().0.head), MessageKind::Response);
    lanes.finish(&posted[0].0);
    assert_eq!(lanes.next().unwrap().0.head.id, Some(MAX_REQUESTS as u64));
    assert!(lanes.next().is_none());
}

#[test]
fn queue_is_bounded_and_its_cost_is_released() {
    let mut lanes = SseSendQueue::default();
    lanes.push(Outbound::Send(message(None, INITIALIZED, 0)));
    let (initialized, _) = lanes.next().unwrap();
    let large = |id| Outbound::Send(message(id, "m", 1 << 20));
    let refused: Vec<_> = (1..=70).filter_map(|id| lanes.push(large(Some(id)))).collect();
    assert_eq!(refused, (64..=70).collect::<Vec<_>>());
    assert_eq!(lanes.push(large(None)), None, "a notice is dropped");
    lanes.push(Outbound::Cancel { id: 1, notice: None });
    lanes.finish(&initialized.head);
    let mut sent = 0;
    while lanes.next().is_some() {
        sent += 1;
    }
    assert_eq!((sent, lanes.cost), (62, 0));
    assert_eq!(lanes.push(large(Some(71))), None);
}
