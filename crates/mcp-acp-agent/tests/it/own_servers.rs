//! The agent's own servers, besides those of the client, and servers that start with the first use.

use std::sync::Arc;

use mcp_host_acp_agent::{
    ConnectOptions, NoticeSupport, RequiredServers, ServerSource, SessionRegistry, SessionServers,
    SessionSetupError, StartPolicy,
};
use mcp_host_model::{Endpoint, Sharing};
use mcp_host_runtime::{DesiredServers, LoadRequest, load};
use serde_json::json;

use crate::sessions::{entries, failure, options, summary, text_or_error, tool_call, validated};

/// A configuration of the agent with these servers, one of which has a variable that is not set.
fn own_servers(names: &[&str]) -> DesiredServers {
    let mut servers = serde_json::Map::new();
    for name in names {
        servers.insert((*name).to_owned(), json!({ "command": "own-server" }));
    }
    servers
        .insert("unset".to_owned(), json!({ "type": "http", "url": "https://example/${NO_SUCH_VARIABLE}" }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, json!({ "mcpServers": servers }).to_string()).unwrap();
    load(&LoadRequest::new(file)).unwrap().into_desired().unwrap()
}

fn options_with_own(names: &[&str]) -> ConnectOptions {
    let mut res = options();
    res.own_servers = own_servers(names);
    res
}

#[tokio::test(start_paused = true)]
async fn acpx_14_server_of_the_client_replaces_the_agents_server_of_the_same_name() {
    let own = options_with_own(&["a", "b"]);
    let session = SessionServers::connect(validated(&entries(&["b", "c"])), own).await.unwrap();
    assert_eq!(summary(&session), "b:connected c:connected a:connected unset:failed");
    let sources: Vec<_> = session.statuses().into_iter().map(|status| status.source).collect();
    assert_eq!(
        sources,
        [ServerSource::Client, ServerSource::Client, ServerSource::Agent, ServerSource::Agent]
    );
    let transports: Vec<_> = session.statuses().iter().map(|status| status.transport.to_string()).collect();
    assert_eq!(transports[..3], ["http", "http", "stdio"]);
    assert_eq!(text_or_error(&session.call(tool_call("a__echo", r#"{"text":"own"}"#)).await), "own");
    assert!(failure(&session, "unset").contains("NO_SUCH_VARIABLE"), "{}", failure(&session, "unset"));
    let meta = session.to_meta();
    assert_eq!(meta["mcpServers"][2]["source"], "agent");
    insta::assert_snapshot!(serde_json::to_string(&meta["mcpReports"]).unwrap(), @r#"[{"effect":"noted","serverName":"b","pointer":"/params/mcpServers/0","message":"it replaces the agent's own server of the same name","suggestion":"rename one of them to have both"}]"#);
}

#[tokio::test(start_paused = true)]
async fn acp_021_failure_of_the_agents_own_server_does_not_refuse_a_session() {
    let strict = |names: &[&str]| {
        let mut options = options_with_own(names);
        options.required = RequiredServers::All;
        options.max_servers = 1;
        options
    };
    let own = strict(&["gone", "b"]);
    let session = SessionServers::connect(validated(&entries(&["a"])), own).await.unwrap();
    assert_eq!(summary(&session), "a:connected gone:failed b:connected unset:failed");
    // The client's own server of that name is required.
    let refused =
        SessionServers::connect(validated(&entries(&["gone"])), strict(&["gone"])).await.err().unwrap();
    assert!(matches!(refused, SessionSetupError::Failed(_)), "{refused}");
    let many = SessionServers::connect(validated(&entries(&["a", "b"])), strict(&[])).await.err().unwrap();
    assert_eq!(many, SessionSetupError::TooManyServers { requested: 2, limit: 1 });
}

#[tokio::test(start_paused = true)]
async fn agents_own_child_process_runs_in_the_folder_of_the_session() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut own = options_with_own(&["a"]);
    own.own_servers.servers[0].spec.sharing = Sharing::PerOwner;
    let (inner, dialed) = (own.dialer.take().unwrap(), Arc::clone(&seen));
    own.dialer = Some(Arc::new(move |server, options| {
        if let Endpoint::Stdio(stdio) = &server.endpoint {
            dialed.lock().unwrap().push((stdio.cwd.clone(), server.spec.sharing));
        }
        inner(server, options)
    }));
    SessionServers::connect(validated(&entries(&[])), own).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(Some(std::env::temp_dir()), Sharing::Shared)]);
}

#[tokio::test(start_paused = true)]
async fn servers_that_start_with_the_first_use_need_no_slot_until_then() {
    let sessions = SessionRegistry::with_capacity(1);
    let mut lazy = options_with_own(&["own"]);
    lazy.start = StartPolicy::FirstUse;
    for id in ["1", "2"] {
        let request = validated(&entries(&["a", "gone"]));
        let slot = sessions.reserve(id, &request, &lazy).unwrap();
        let session = SessionServers::connect(request, lazy.clone()).await.unwrap();
        sessions.install(session, slot).unwrap();
    }
    let state = |id: &str| summary(&sessions.get(id).unwrap());
    assert_eq!(state("1"), "a:not_started gone:not_started own:not_started unset:not_started");
    let mut updates = sessions.get("1").unwrap().status_updates(NoticeSupport::Supported);
    let first = async {
        let first = sessions.acquire("1").await.unwrap().unwrap();
        assert_eq!(text_or_error(&first.call(tool_call("own__echo", r#"{"text":"now"}"#)).await), "now");
        first
    };
    let (first, news) = tokio::join!(first, updates.next());
    assert_ne!(news.unwrap().status().state.as_str(), "not_started", "the response has told that");
    assert_eq!(state("1"), "a:connected gone:failed own:connected unset:failed");
    assert_eq!(state("2"), "a:not_started gone:not_started own:not_started unset:not_started");
    let full = sessions.acquire("2").await.err();
    assert_eq!(full, Some(SessionSetupError::TooManySessions { limit: 1 }));
    drop(first);
    sessions.acquire("2").await.unwrap().unwrap();
    assert_eq!(state("1"), "a:idle gone:idle own:idle unset:idle");
    sessions.close_all().await;
}
