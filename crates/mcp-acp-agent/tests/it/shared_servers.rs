//! Servers that sessions with equal lists share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_host_acp_agent::{ConnectOptions, SessionRegistry, SessionServers, SharedServers, StartPolicy};

use crate::server_requests::handlers_with_word;
use crate::sessions::{entries, options, summary, text_or_error, tool_call, validated};

/// Options of an agent that shares servers, and a counter of the connections.
fn sharing_options() -> (ConnectOptions, Arc<AtomicUsize>) {
    let mut options = options();
    options.shared = Some(SharedServers::new());
    let connections = Arc::new(AtomicUsize::new(0));
    let (inner, counter) = (options.dialer.take().unwrap(), Arc::clone(&connections));
    options.dialer = Some(Arc::new(move |server, options| {
        counter.fetch_add(1, Ordering::Relaxed);
        inner(server, options)
    }));
    (options, connections)
}

async fn connect(names: &[&str], options: &ConnectOptions) -> SessionServers {
    SessionServers::connect(validated(&entries(names)), options.clone()).await.unwrap()
}

async fn call_echo(session: &SessionServers) -> String {
    text_or_error(&session.call(tool_call("a__echo", r#"{"text":"here"}"#)).await)
}

/// Lets background tasks run.
async fn pause() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn equal_lists_share_servers_until_the_last_session_ends() {
    let (options, connections) = sharing_options();
    let [first, second] = [connect(&["a", "b"], &options).await, connect(&["a", "b"], &options).await];
    assert_eq!(connections.load(Ordering::Relaxed), 2);
    // Another list has servers of its own.
    let other = connect(&["a"], &options).await;
    assert_eq!(connections.load(Ordering::Relaxed), 3);
    assert!(other.tools().iter().all(|tool| tool.server.as_str() == "a"));

    let mut changes = first.status_stream();
    first.close().await;
    assert_eq!(summary(&first), "a:closed b:closed");
    let mut last = None;
    while let Some(status) = changes.next().await {
        last = Some(status.state.as_str());
    }
    assert_eq!((last, first.tools().len()), (Some("closed"), 0));
    let refused = call_echo(&first).await;
    assert_eq!(refused, "MCPConnectionError: the session does not use its servers now");
    assert_eq!(
        (summary(&second).as_str(), call_echo(&second).await.as_str()),
        ("a:connected b:connected", "here")
    );

    let third = connect(&["a", "b"], &options).await;
    drop(second);
    pause().await;
    assert_eq!((connections.load(Ordering::Relaxed), call_echo(&third).await.as_str()), (3, "here"));
    third.close().await;
    let fourth = connect(&["a", "b"], &options).await;
    assert_eq!((connections.load(Ordering::Relaxed), call_echo(&fourth).await.as_str()), (5, "here"));
}

#[tokio::test(start_paused = true)]
async fn handle_of_a_closed_session_keeps_no_servers() {
    let (options, connections) = sharing_options();
    let [first, second] = [connect(&["a"], &options).await, connect(&["a"], &options).await];
    first.close().await;
    first.close().await;
    assert_eq!(call_echo(&second).await, "here");
    second.close().await;
    // The set was removed with its last open session: another one uses the dialer of the next session.
    let (inner, dials) = (options.dialer.clone().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&dials);
    let mut next = options.clone();
    next.dialer = Some(Arc::new(move |server, options| {
        counter.fetch_add(1, Ordering::Relaxed);
        inner(server, options)
    }));
    let third = connect(&["a"], &next).await;
    assert_eq!((dials.load(Ordering::Relaxed), connections.load(Ordering::Relaxed)), (1, 2));
    drop((first, second));
    pause().await;
    assert_eq!(call_echo(&third).await, "here");
}

#[tokio::test(start_paused = true)]
async fn idle_session_stops_only_its_own_use_of_shared_servers() {
    let (mut options, connections) = sharing_options();
    options.start = StartPolicy::FirstUse;
    let sessions = SessionRegistry::with_capacity(1);
    for id in ["1", "2"] {
        let request = validated(&entries(&["a"]));
        let slot = sessions.reserve(id, &request, &options).unwrap();
        sessions.install(SessionServers::connect(request, options.clone()).await.unwrap(), slot).unwrap();
    }
    let state = |id: &str| summary(&sessions.get(id).unwrap());
    for (used, idle) in [("1", "a:not_started"), ("2", "a:idle"), ("1", "a:idle"), ("2", "a:idle")] {
        let session = sessions.acquire(used).await.unwrap().unwrap();
        pause().await;
        assert_eq!(call_echo(&session).await, "here");
        let other = if used == "1" { "2" } else { "1" };
        assert_eq!((state(used).as_str(), state(other).as_str()), ("a:connected", idle));
    }
    // Neither session uses the servers then, so the next use starts them again.
    let before = connections.load(Ordering::Relaxed);
    sessions.close("2").await;
    pause().await;
    assert_eq!(state("1"), "a:idle");
    sessions.acquire("1").await.unwrap().unwrap();
    assert_eq!((state("1").as_str(), connections.load(Ordering::Relaxed)), ("a:connected", before + 1));
}

#[tokio::test(start_paused = true)]
async fn x_25_request_of_a_shared_server_reaches_the_session_of_its_call() {
    let (options, connections) = sharing_options();
    let connect_with_word = async |word: &'static str| {
        let mut options = options.clone();
        options.host.server_requests.handlers = handlers_with_word(word);
        connect(&["a"], &options).await
    };
    let [red, blue] = [connect_with_word("red").await, connect_with_word("blue").await];
    // Another set of handlers declares other capabilities to the server.
    let plain = connect(&["a"], &options).await;
    assert_eq!(connections.load(Ordering::Relaxed), 2);
    let ask = async |session: &SessionServers, what: &str| {
        let arguments = format!(r#"{{"question":"why?","of":"{what}"}}"#);
        text_or_error(&session.call(tool_call("a__ask", &arguments)).await)
    };
    for _ in 0..3 {
        let (red, blue, red_model, blue_model) =
            tokio::join!(ask(&red, "user"), ask(&blue, "user"), ask(&red, "model"), ask(&blue, "model"));
        assert_eq!([red, blue], ["the user answers: why? red", "the user answers: why? blue"]);
        assert_eq!(
            [red_model, blue_model],
            ["the model parrot answers: red", "the model parrot answers: blue"]
        );
    }
    // The same holds for a call of a pinned turn.
    let pinned = blue.pin().call(tool_call("a__ask", r#"{"question":"why?"}"#)).await;
    assert_eq!(text_or_error(&pinned), "the user answers: why? blue");
    let refused = ask(&plain, "user").await;
    assert!(refused.contains("the server needs elicitation"), "{refused}");
}
