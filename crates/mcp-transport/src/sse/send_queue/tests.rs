//! Tests of the order and the limits of posted messages.

use super::*;

fn message(id: Option<RequestId>, method: &'static str, bytes: usize) -> OutboundMessage {
    let head = match method {
        "" => MessageHead::response(None),
        _ => MessageHead::new(id, method, None),
    };
    OutboundMessage { epoch: Epoch(0), head, body: Bytes::from(vec![0; bytes]) }
}

/// Queues messages (`7 method`, `- notification`, `- ` for a response) and abandonments (`-7`), finishes them
/// (`finished method`), and posts as many as possible after each step. Checks what was posted and aborted
/// after each step.
#[track_caller]
fn check(steps: &[&'static str], want: &str) {
    let mut queue = SseSendQueue::default();
    let mut steps_posted = Vec::new();
    let mut open: Vec<(MessageHead, Option<oneshot::Receiver<AbortReason>>)> = Vec::new();
    for step in steps {
        match step.split_once(' ') {
            Some(("finished", method)) => {
                let at = open
                    .iter()
                    .position(|(head, _)| head.method_name().unwrap_or_default() == method)
                    .expect("it is being posted");
                queue.finish(&open.remove(at).0);
            }
            Some(("answered", id)) => queue.mark_answered(id.parse().unwrap()),
            Some((id, method)) => {
                assert_eq!(queue.push(Outbound::Send(message(id.parse().ok(), method, 0))), None);
            }
            None => {
                let id = step.trim_start_matches('-').parse().unwrap();
                assert_eq!(queue.push(Outbound::Cancel { id, notice: Some(Bytes::new()) }), None);
            }
        }
        let mut posted = Vec::new();
        while let Some((message, abort)) = queue.take_next() {
            posted.push(match message.head.method_name() {
                None => "response".to_owned(),
                Some(method) => method.trim_start_matches("notifications/").to_owned(),
            });
            open.push((message.head, abort));
        }
        for (head, abort) in &mut open {
            if let Some(Ok(reason)) = abort.as_mut().map(oneshot::Receiver::try_recv) {
                posted.push(format!("{} {reason:?}", head.method_name().unwrap()));
            }
        }
        steps_posted.push(posted.join("+"));
    }
    assert_eq!(steps_posted.join(", "), want);
}

#[test]
fn requests_and_responses_are_concurrent() {
    check(&["1 a", "2 b", "- ", "- "], "a, b, response, response");
}

#[test]
fn notifications_are_sequential_and_block_nothing() {
    check(
        &["- notifications/x", "- notifications/y", "1 a", "- ", "finished notifications/x"],
        "x, , a, response, y",
    );
}

#[test]
fn nothing_overtakes_the_initialized_notification() {
    check(
        &[
            "1 initialize",
            "finished initialize",
            "- notifications/initialized",
            "2 a",
            "- ",
            "finished notifications/initialized",
        ],
        "initialize, , initialized, , , response+a",
    );
    check(
        &[
            "- notifications/x",
            "- notifications/initialized",
            "2 a",
            "finished notifications/x",
            "finished notifications/initialized",
        ],
        "x, , , initialized, a",
    );
}

#[test]
fn abandoned_request_is_dequeued_or_cancelled() {
    check(&["1 a", "finished a", "-1"], "a, , cancelled");
    check(&["1 a", "-1"], "a, cancelled+a Abandoned");
    check(
        &["- notifications/initialized", "1 a", "-1", "finished notifications/initialized"],
        "initialized, , , ",
    );
}

#[test]
fn post_of_an_answered_request_is_aborted() {
    check(&["1 a", "answered 1", "finished a"], "a, a Answered, ");
    check(&["1 a", "finished a", "answered 1"], "a, , ");
}

#[test]
fn posts_are_bounded_and_responses_have_their_own_limit() {
    let mut queue = SseSendQueue::default();
    for id in 0..MAX_REQUESTS as u64 + 10 {
        assert_eq!(queue.push(Outbound::Send(message(Some(id), "a", 0))), None);
    }
    let mut posted = Vec::new();
    while let Some((message, abort)) = queue.take_next() {
        posted.push((message.head, abort));
    }
    assert_eq!(posted.len(), MAX_REQUESTS);
    queue.push(Outbound::Send(message(None, "", 0)));
    assert_eq!(MessageKind::from_head(&queue.take_next().unwrap().0.head), MessageKind::Response);
    queue.finish(&posted[0].0);
    assert_eq!(queue.take_next().unwrap().0.head.id, Some(MAX_REQUESTS as u64));
    assert!(queue.take_next().is_none());
}

#[test]
fn queue_is_bounded_and_its_cost_is_released() {
    let mut queue = SseSendQueue::default();
    queue.push(Outbound::Send(message(None, "notifications/initialized", 0)));
    let (initialized, _) = queue.take_next().unwrap();
    let large = |id| Outbound::Send(message(id, "m", 1 << 20));
    let refused: Vec<_> = (1..=70).filter_map(|id| queue.push(large(Some(id)))).collect();
    assert_eq!(refused, (64..=70).collect::<Vec<_>>());
    assert_eq!(queue.push(large(None)), None, "a notification is dropped");
    queue.push(Outbound::Cancel { id: 1, notice: None });
    queue.finish(&initialized.head);
    let mut sent = 0;
    while queue.take_next().is_some() {
        sent += 1;
    }
    assert_eq!((sent, queue.cost), (62, 0));
    assert_eq!(queue.push(large(Some(71))), None);
}
