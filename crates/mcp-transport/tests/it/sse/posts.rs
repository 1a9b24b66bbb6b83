//! Messages on their way: which wait for which, and what is taken back.

use super::*;
use futures_util::future::join_all;
use mcp_testkit::wait::wait_until;

#[tokio::test]
async fn calls_do_not_wait_for_a_slow_post() {
    // As servers do that keep the response to a POST until the call is done, or for ever.
    let peer = Peer::start(|request| {
        legacy(request, |request| match request.rpc()["params"]["name"].as_str() {
            Some("slow") => taken().never(),
            Some("answered") => taken().push(tool_result(request, "early")).never(),
            _ => taken().push(tool_result(request, "hello")),
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let slow = session.call_tool("slow", &empty, CallOptions::default());
    let fast = async {
        wait_until(|| peer.count("tools/call") == 1).await;
        let early = session.call_tool("answered", &empty, CallOptions::default()).await.unwrap();
        assert_eq!(early.value.text(), "early");
        for _ in 0..10 {
            assert_eq!(call(&session).await.unwrap(), "hello");
        }
        // The POST that is of no more use is left; the one whose answer is awaited is not.
        wait_until(|| peer.posting() == 1).await;
    };
    tokio::select! {
        outcome = slow => panic!("{outcome:?}"),
        () = fast => {}
    }
    // And the abandoned one is left, too, and the server told.
    wait_until(|| peer.posting() == 0 && peer.count("notifications/cancelled") == 1).await;
    assert_eq!(call(&session).await.unwrap(), "hello");
}

#[tokio::test]
async fn concurrent_posts_are_bounded() {
    const CALLS: usize = 300;
    let peer = Peer::start(|request| {
        legacy(request, |request| {
            taken().push(tool_result(request, "hello")).after(Duration::from_millis(50))
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let outcomes = join_all((0..CALLS).map(|_| call(&session))).await;
    assert!(outcomes.iter().all(|it| it.as_deref().ok() == Some("hello")));
    assert_eq!(peer.count("tools/call"), CALLS);
    assert!(peer.most_posting() <= 256, "{}", peer.most_posting());
}

#[tokio::test]
async fn notifications_arrive_in_order() {
    let slow_first = std::sync::atomic::AtomicBool::new(true);
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "notifications/cancelled" if slow_first.swap(false, std::sync::atomic::Ordering::SeqCst) => {
            taken().after(Duration::from_millis(100))
        }
        _ => legacy(request, |_| taken()),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    for number in 1..=3 {
        let waiting = call(&session);
        let posted = async { wait_until(|| peer.count("tools/call") == number).await };
        tokio::select! {
            outcome = waiting => panic!("{outcome:?}"),
            () = posted => {}
        }
    }
    wait_until(|| peer.count("notifications/cancelled") == 3).await;
    let cancelled: Vec<u64> = peer
        .received()
        .iter()
        .filter(|request| request.kind() == "notifications/cancelled")
        .map(|request| request.rpc()["params"]["requestId"].as_u64().unwrap())
        .collect();
    let called: Vec<u64> = peer
        .received()
        .iter()
        .filter(|request| request.kind() == "tools/call")
        .map(|request| request.rpc()["id"].as_u64().unwrap())
        .collect();
    assert_eq!(cancelled, called);
}

#[tokio::test]
async fn nothing_overtakes_the_initialized_notification() {
    let open = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&open);
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "notifications/initialized" => taken().after(Duration::from_millis(100)),
        _ => legacy(request, |request| taken().push(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let called = async {
        assert_eq!(call(&session).await.unwrap(), "hello");
        open.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let watched = async {
        wait_until(|| peer.count("notifications/initialized") == 1).await;
        // While its POST is under way, no call comes.
        while peer.posting() > 0 && !seen.load(std::sync::atomic::Ordering::SeqCst) {
            assert!(peer.count("tools/call") == 0 || peer.most_posting() == 1, "{}", peer.summary());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::join!(called, watched);
    assert_eq!(peer.summary(), "GET initialize notifications/initialized tools/call");
    assert_eq!(peer.most_posting(), 1);
}

#[tokio::test]
async fn hd_122_call_past_its_deadline_is_cancelled_with_a_notification() {
    let peer = Peer::start(|request| legacy(request, |_| taken())).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(50));
    let error = session.call_tool("echo", &RawJson::empty_object(), options).await.unwrap_err();
    assert_eq!(error.to_string(), "no response within 0.05 s");
    wait_until(|| peer.count("notifications/cancelled") == 1).await;
    let (called, cancelled) = (peer.first("tools/call"), peer.first("notifications/cancelled"));
    assert_eq!(cancelled.rpc()["params"]["requestId"], called.rpc()["id"]);
    assert_eq!(cancelled.path, "/messages?session=1");
}

#[tokio::test]
async fn concurrent_calls_get_their_own_responses() {
    let peer = Peer::start(|request| {
        legacy(request, |request| {
            taken().push(tool_result(request, request.rpc()["params"]["name"].as_str().unwrap()))
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let calls = (0..100).map(|number| {
        let (session, empty) = (&session, &empty);
        async move {
            let name = format!("tool {number}");
            let answer = session.call_tool(&name, empty, CallOptions::default()).await.unwrap();
            assert_eq!(answer.value.text(), name);
        }
    });
    join_all(calls).await;
}
