//! Requests that are sent by the calling task.

use std::sync::Arc;

use mcp_host_transport::{
    Authorization, AuthorizedRequest, Challenge, ChallengeAction, Credentials, Unauthorized,
};
use mcp_testkit::wait::wait_until;

use super::peer::{Step, stream};
use super::*;

const CHANGED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";

#[tokio::test(start_paused = true)]
async fn messages_after_a_response_are_delivered_and_the_connection_is_reused() {
    let peer = Peer::start(|request| {
        legacy(request, "s", |request| {
            let answer = format!("data: {}\n\n", tool_result(request, "hello"));
            let changed = format!("data: {CHANGED}\n\n");
            let later = format!("{:x}\r\n{changed}\r\n0\r\n\r\n", changed.len());
            stream(&[&answer], vec![Step::Wait(Duration::from_millis(50)), Step::Write(later.into())])
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let mut changes = session.list_changes();
    let mut open = Vec::new();
    // The first one may still wait for the end of the opening, and is carried by the wire then.
    for count in 1..=3 {
        assert_eq!(call(&session).await.unwrap(), "hello");
        let received = changes.wait_for(|it| it.tools == count);
        tokio::time::timeout(Duration::from_secs(5), received).await.unwrap().unwrap();
        open.push(peer.open());
    }
    assert_eq!(open[1], open[2]);
    assert_eq!(peer.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn listening_stream_is_requested_before_the_first_call() {
    for _ in 0..20 {
        let peer = Peer::start(|request| match request.kind().as_str() {
            "GET" => stream(&[], vec![Step::WaitForClose]),
            _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
        })
        .await;
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello");
        assert_eq!(peer.summary(), "initialize notifications/initialized GET tools/call");
    }
}

#[test]
fn call_from_another_runtime_leaves_no_socket_there() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (ours, other) = (runtime(), runtime());
    let (_peer, session) = ours.block_on(async {
        let slowly = |request: &ReceivedRequest| {
            let mut steps = vec![Step::Wait(Duration::from_millis(20))];
            steps.extend(json_reply(tool_result(request, "hello")));
            steps
        };
        let peer = Peer::start(move |request| modern(request, slowly)).await;
        let session = TestClient::default().connect(&peer.url).await.unwrap();
        (peer, session)
    });
    let both = async { tokio::join!(call(&session), call(&session)) };
    let (one, two) = other.block_on(both);
    assert_eq!((one.unwrap(), two.unwrap()), ("hello".to_owned(), "hello".to_owned()));
    drop(other);
    // Without a runtime at all, where no socket can be had.
    let (one, two) = parked(async { tokio::join!(call(&session), call(&session)) });
    assert_eq!((one.unwrap(), two.unwrap()), ("hello".to_owned(), "hello".to_owned()));
    let (one, two) = ours.block_on(async { tokio::join!(call(&session), call(&session)) });
    assert_eq!((one.unwrap(), two.unwrap()), ("hello".to_owned(), "hello".to_owned()));
}

/// Polls a future on this thread, which belongs to no runtime.
fn parked<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[tokio::test]
async fn panicking_caller_does_not_affect_others() {
    let peer = Peer::start(|request| {
        legacy(request, "s", |request| {
            let token = &request.rpc()["params"]["_meta"]["progressToken"];
            let progress = json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1},
            });
            let events =
                [progress.to_string(), tool_result(request, "hello")].map(|it| format!("data: {it}\n\n"));
            stream(&events.each_ref().map(String::as_str), super::peer::end())
        })
    })
    .await;
    let session = Arc::new(TestClient::legacy().connect(&peer.url).await.unwrap());
    for _ in 0..2 {
        assert_eq!(call(&session).await.unwrap(), "hello");
        let panicking = tokio::spawn({
            let session = Arc::clone(&session);
            async move {
                let progress: mcp_host_transport::OnProgress = Arc::new(|_| panic!("as a defect would"));
                call_with(&session, {
                    let mut options = CallOptions::default();
                    options.context.progress = Some(progress);
                    options
                })
                .await
            }
        });
        let ended = panicking.await;
        assert!(ended.as_ref().is_err_and(|it| it.is_panic()), "{ended:?}");
    }
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.count("notifications/cancelled") == 2).await;
}

#[tokio::test]
async fn panic_in_the_callers_task_cancels_its_call() {
    let peer = Peer::start(|request| {
        legacy(request, "s", |request| match request.rpc()["params"]["name"].as_str() {
            Some("hang") => vec![Step::WaitForClose],
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await;
    let session = Arc::new(TestClient::legacy().connect(&peer.url).await.unwrap());
    // After it the opening is over, and waited for no more.
    assert_eq!(call(&session).await.unwrap(), "hello");
    let (told, panicking) = (Arc::clone(&peer.log), Arc::clone(&session));
    let task = tokio::spawn(async move {
        let empty = RawJson::empty_object();
        let hanging = panicking.call_tool("hang", &empty, CallOptions::default());
        let panics = async {
            wait_until(|| told.count("tools/call") == 2).await;
            panic!("as a defect would");
        };
        tokio::join!(hanging, panics)
    });
    assert!(task.await.is_err_and(|it| it.is_panic()));
    wait_until(|| peer.count("notifications/cancelled") == 1 && peer.closed_by_client() == 1).await;
}

/// A token that one request at a time asks for.
#[derive(Debug, Default)]
struct OneAtATime(tokio::sync::Mutex<()>);

#[async_trait::async_trait]
impl Authorization for OneAtATime {
    async fn credentials(&self, _: AuthorizedRequest<'_>) -> Result<Option<Credentials>, Unauthorized> {
        let _turn = self.0.lock().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Some(Credentials::bearer("token-of-a-server".into())))
    }

    fn is_in_progress(&self) -> bool {
        false
    }

    async fn on_challenge(&self, _: Challenge) -> Result<ChallengeAction, Unauthorized> {
        Ok(ChallengeAction::ReturnResponse)
    }
}

#[tokio::test]
async fn unpolled_call_does_not_block_others() {
    let peer =
        Peer::start(|request| modern(request, |request| json_reply(tool_result(request, "hello")))).await;
    let endpoint = Endpoint::Http(UrlEndpoint::new(peer.url.parse().unwrap()));
    let mut options = DialOptions::default();
    options.authorization = Some(Arc::new(OneAtATime::default()));
    let session =
        Session::connect(dialer(&endpoint, &options).unwrap(), SessionOptions::default()).await.unwrap();
    let mut left = Box::pin(call(&session));
    assert!(futures_util::poll!(left.as_mut()).is_pending());
    let other = tokio::time::timeout(Duration::from_secs(5), call(&session)).await;
    assert_eq!(other.expect("it waits for a future that is not polled").unwrap(), "hello");
    assert_eq!(left.await.unwrap(), "hello");
}

#[test]
fn call_may_move_to_a_thread_without_a_runtime() {
    let ours = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let slowly = |request: &ReceivedRequest| {
        let mut steps = vec![Step::Wait(Duration::from_millis(20))];
        steps.extend(stream(&[&format!("data: {}\n\n", tool_result(request, "hello"))], super::peer::end()));
        steps
    };
    let (peer, session) = ours.block_on(async {
        let peer = Peer::start(move |request| modern(request, slowly)).await;
        let session = TestClient::default().connect(&peer.url).await.unwrap();
        (peer, session)
    });
    let mut moving = Box::pin(call(&session));
    ours.block_on(async {
        tokio::select! {
            biased;
            early = &mut moving => panic!("{early:?}"),
            () = wait_until(|| peer.count("tools/call") == 1) => {}
        }
    });
    assert_eq!(parked(moving).unwrap(), "hello");
}

#[tokio::test]
async fn closing_the_connection_aborts_the_exchanges_of_callers() {
    let before = std::sync::atomic::AtomicUsize::new(0);
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "DELETE" => vec![Step::WaitForClose],
        _ => legacy(request, "s", |request| match before.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => json_reply(tool_result(request, "hello")),
            _ => vec![Step::WaitForClose],
        }),
    })
    .await;
    let session = Arc::new(TestClient::legacy().connect(&peer.url).await.unwrap());
    // After it the opening is over, and waited for no more.
    assert_eq!(call(&session).await.unwrap(), "hello");
    let calls = || {
        let session = Arc::clone(&session);
        tokio::spawn(async move { call(&session).await })
    };
    let (first, second) = (calls(), calls());
    wait_until(|| peer.count("tools/call") == 3).await;
    let mut closing = std::pin::pin!(session.close(Duration::from_secs(30)));
    // At once, although the server is slow to say goodbye.
    tokio::select! {
        _ = &mut closing => panic!("it hangs"),
        () = wait_until(|| peer.count("DELETE") == 1 && peer.closed_by_client() == 2) => {}
    }
    drop(peer);
    closing.await;
    for call in [first, second] {
        let called = call.await.unwrap();
        assert!(matches!(called, Err(CallError::Closed(_))), "{called:?}");
    }
}
