//! Prompts, resources and completions of the demo server, requested through the host.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{
    Content, ExposureFilter, PromptResult, RawJson, ResourceBody, ResourceResult, ServerId, Sharing,
};
use mcp_host_runtime::{DesiredServers, DialogId, Host, HostError, HostOptions, RequestOptions, Supervision};
use mcp_host_transport::{CompletionArgument, CompletionReference};
use mcp_testkit::servers::configured_server;
use serde_json::json;

use crate::demo_server::demo_dialer;
use crate::fixture::HostFixture;
use crate::scripted_server::ScriptedServer;

async fn host(servers: Vec<ResolvedServer>) -> Host {
    let dialer = demo_dialer();
    let host = Host::with_dialer(
        {
            let mut options = HostOptions::default();
            options.supervision = Supervision::Off;
            options
        },
        dialer,
    );
    host.apply(DesiredServers::new(servers)).await;
    host.wait_until_ready().await;
    host
}

fn of(server: &str) -> RequestOptions {
    let mut options = RequestOptions::default();
    options.server = Some(ServerId::parse(server).unwrap());
    options
}

fn raw(text: &'static str) -> RawJson {
    RawJson::parse(text.as_bytes().into()).unwrap()
}

/// Returns the text of a prompt, or the error.
fn said(result: Result<PromptResult, HostError>) -> String {
    match result {
        Err(failure) => failure.to_string(),
        Ok(result) => {
            let texts = result.messages.iter().map(|it| match &it.content {
                Content::Text(text) => text.clone(),
                other => format!("{other:?}"),
            });
            texts.collect::<Vec<_>>().join("|")
        }
    }
}

/// Returns the content of a resource, or the error.
fn read(result: Result<ResourceResult, HostError>) -> String {
    match result {
        Err(failure) => failure.to_string(),
        Ok(result) => match &result.contents[0].body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Blob(bytes) => format!("{} bytes", bytes.len()),
            other => panic!("{other:?}"),
        },
    }
}

#[tokio::test(start_paused = true)]
async fn hd_081_prompt_is_found_by_exposed_or_original_name() {
    let host = host(vec![configured_server("a")]).await;
    let ask = async |name: &str, arguments| {
        said(host.get_prompt(name, &raw(arguments), RequestOptions::default()).await)
    };
    let hello = ask("a__hello", "{}").await;
    assert!(!hello.is_empty() && !hello.contains("Error"), "{hello}");
    assert_eq!(ask("hello", "{}").await, hello);
    assert!(ask("summarise", r#"{"text":"long story"}"#).await.contains("long story"));
    assert_eq!(
        ask("summarise", "{}").await,
        "ValidationError: Prompt 'a__summarise' needs the argument 'text'"
    );
    assert_eq!(ask("nobody", "{}").await, "ValidationError: Prompt 'nobody' not found");
    host.shutdown().await;
    assert_eq!(ask("hello", "{}").await, "MCPConnectionError: the host was shut down");
}

#[tokio::test(start_paused = true)]
async fn ambiguous_name_is_resolved_by_the_server_option() {
    let mut quiet = configured_server("c");
    quiet.spec.exposure.prompts.filter =
        ExposureFilter { whitelist: vec![], blacklist: vec!["hello".into()] };
    let host = host(vec![configured_server("a"), configured_server("b"), quiet]).await;
    let ask = async |name: &str, asking| said(host.get_prompt(name, &raw("{}"), asking).await);
    let ambiguous = "ValidationError: Prompt 'hello' is ambiguous: use one of 'a__hello', 'b__hello'";
    assert_eq!(ask("hello", RequestOptions::default()).await, ambiguous);
    assert!(!ask("hello", of("b")).await.contains("Error"));
    let hidden = "ValidationError: Prompt 'hello' not found: server 'c' has it, but it is not shown: blacklist `hello`";
    assert_eq!(ask("hello", of("c")).await, hidden);
    assert_eq!(
        ask("hello", of("d")).await,
        "ValidationError: Prompt 'hello' not found: there is no server 'd'"
    );
}

#[tokio::test(start_paused = true)]
async fn resource_is_read_from_the_server_that_lists_it_or_has_a_matching_template() {
    let host = host(vec![configured_server("a")]).await;
    let ask = async |uri: &str, asking| read(host.read_resource(uri, asking).await);
    assert!(ask("demo://greeting", RequestOptions::default()).await.contains("ello"));
    assert!(ask("demo://picture", RequestOptions::default()).await.ends_with(" bytes"));
    assert_eq!(ask("demo://numbers/3", RequestOptions::default()).await.trim(), "1\n2\n3");
    // A URI that is in no list is requested as well: the server decides whether it exists.
    for asking in [of("a"), RequestOptions::default()] {
        let answer = ask("other://x", asking).await;
        assert!(
            answer.starts_with("MCPProtocolError: server 'a'") && answer.contains("no such resource"),
            "{answer}"
        );
    }
}

/// Without a named server, those with resources are asked in order for a URI that no list contains.
#[tokio::test(start_paused = true)]
async fn unlisted_resource_is_searched() {
    let content = |text: &str| Ok(json!({"contents": [{"uri": "u:x", "text": text}]}));
    let fails = || Err(json!({"code": -32603, "message": "disk on fire"}));
    let peers = ["a", "b", "c", "d"].map(|id| (id, ScriptedServer::new(&["t"])));
    for (id, peer) in &peers {
        // `a` does not support resources.
        *peer.resources.lock().unwrap() = (*id != "a").then(Vec::new);
    }
    *peers[1].1.unlisted.lock().unwrap() =
        BTreeMap::from([("u:b", content("b")), ("u:bd", fails()), ("u:b!", fails())]);
    *peers[3].1.unlisted.lock().unwrap() = BTreeMap::from([("u:d", content("d")), ("u:bd", content("d"))]);
    let fixture = HostFixture::running(&peers).await;
    let check = async |uri: &str, servers: Option<&[&str]>, want: &str, asked: &str| {
        let before = peers.each_ref().map(|(_, peer)| peer.count("resources/read"));
        let servers = servers.map(|ids| ids.iter().map(|id| ServerId::parse(id).unwrap()).collect());
        let mut options = RequestOptions::default();
        options.servers = servers;
        let answer = read(fixture.host.read_resource(uri, options).await);
        assert!(answer.contains(want), "{uri}: {answer}");
        let has_asked = |at: &usize| peers[*at].1.count("resources/read") > before[*at];
        assert_eq!((0..4).filter(has_asked).map(|at| peers[at].0).collect::<String>(), asked, "{uri}");
    };
    check("u:b", None, "b", "b").await;
    check("u:d", None, "d", "bcd").await;
    check("u:bd", None, "d", "bcd").await;
    check("u:b!", None, "disk on fire", "bcd").await;
    check("u:none", None, "Resource 'u:none' not found", "bcd").await;
    check("u:d", Some(&["c", "d"]), "d", "cd").await;
    check("u:b", Some(&["c", "d"]), "Resource 'u:b' not found", "cd").await;
    check("u:b", Some(&[]), "Resource 'u:b' not found", "").await;

    let subscribed = fixture.host.subscribe_resource("u:d", RequestOptions::default()).await.unwrap();
    assert_eq!(subscribed.server().as_str(), "d");
    assert!(fixture.host.subscribe_resource("u:none", RequestOptions::default()).await.is_err());
    assert_eq!(peers[3].1.count("subscribe u:d"), 1);

    // A server that does not answer delays the others, but does not hide them.
    fixture.peer("b").silent_methods.lock().unwrap().push("resources/read");
    check("u:d", None, "d", "bcd").await;
}

#[tokio::test(start_paused = true)]
async fn filtered_resource_cannot_be_read() {
    let mut some = configured_server("a");
    some.spec.exposure.resources.filter =
        ExposureFilter { whitelist: vec!["greeting".into()], blacklist: vec![] };
    let host = host(vec![some, configured_server("b")]).await;
    let ask = async |uri: &str, asking| read(host.read_resource(uri, asking).await);
    assert!(ask("demo://greeting", of("a")).await.contains("ello"));
    let listed =
        "ValidationError: Resource 'demo://picture' not found: server 'a' has it, but it is not shown";
    assert_eq!(ask("demo://picture", of("a")).await, listed);
    for hidden in ["demo://numbers/3", "other://x"] {
        let want = format!(
            "ValidationError: Resource '{hidden}' not found: server 'a' has a filter, and it is not shown"
        );
        assert_eq!(ask(hidden, of("a")).await, want);
    }
    let both = "ValidationError: Resource 'demo://greeting' is ambiguous: name one of the servers 'a', 'b'";
    assert_eq!(ask("demo://greeting", RequestOptions::default()).await, both);
    assert!(ask("demo://picture", RequestOptions::default()).await.ends_with(" bytes"), "only b shows it");
}

/// A visible template does not make a resource readable that a filter hides.
#[tokio::test(start_paused = true)]
async fn filtered_resource_cannot_be_read_through_a_template() {
    let mut some = configured_server("a");
    some.spec.exposure.resources.filter =
        ExposureFilter { whitelist: vec![], blacklist: vec!["greeting".into()] };
    let host = host(vec![some]).await;
    let ask = async |uri: &str, asking| read(host.read_resource(uri, asking).await);
    assert_eq!(ask("demo://numbers/2", of("a")).await.trim(), "1\n2");
    let hidden =
        "ValidationError: Resource 'demo://greeting' not found: server 'a' has it, but it is not shown";
    assert_eq!(ask("demo://greeting", of("a")).await, hidden);
    assert_eq!(ask("demo://greeting", RequestOptions::default()).await, hidden);
}

#[tokio::test(start_paused = true)]
async fn dm_074_dialog_request_leases_and_pinned_request_keeps_its_generation() {
    let mut own = configured_server("a");
    own.spec.sharing = Sharing::PerOwner;
    let host = host(vec![own]).await;
    let dialog = host.dialog(DialogId::new("d"));
    assert!(host.leases().is_empty());
    assert!(!said(dialog.get_prompt("hello", &raw("{}"), RequestOptions::default()).await).contains("Error"));
    let turn = dialog.pin();
    assert!(read(turn.read_resource("demo://greeting", RequestOptions::default()).await).contains("ello"));
    let leased: Vec<String> = host.leases().iter().map(|it| format!("{}/{}", it.server, it.dialog)).collect();
    assert_eq!(leased, ["a/d"]);
    host.apply(DesiredServers::default()).await;
    let late = async || said(turn.get_prompt("hello", &raw("{}"), RequestOptions::default()).await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let late = late().await;
    assert!(late.starts_with("MCPConnectionError: Replaced: server 'a'"), "{late}");
}

#[tokio::test(start_paused = true)]
async fn hd_119_missing_response_ends_at_the_deadline() {
    let peer = ScriptedServer::new(&["t"]);
    *peer.prompts.lock().unwrap() = Some(vec![serde_json::json!({"name": "p"})]);
    peer.silent_methods.lock().unwrap().push("prompts/get");
    let fixture = HostFixture::running(&[("a", peer)]).await;
    let mut asking = RequestOptions::default();
    asking.deadline = Some(Duration::from_secs(2));
    let begun = tokio::time::Instant::now();
    let answer = said(fixture.host.get_prompt("p", &raw("{}"), asking).await);
    assert!(answer.starts_with("MCPTimeoutError: server 'a'") && answer.contains("within 2 s"), "{answer}");
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn completion_goes_to_the_server_of_the_prompt_or_template() {
    let host = host(vec![configured_server("a")]).await;
    let argument = CompletionArgument::new("text", "x");
    let of = CompletionReference::Prompt("a__summarise".into());
    // The demo server returns an empty completion.
    let answer = host.complete(&of, &argument, RequestOptions::default()).await.unwrap();
    assert!(answer.values.is_empty() && !answer.has_more);
    let of = CompletionReference::Prompt("nobody".into());
    let failure = host.complete(&of, &argument, RequestOptions::default()).await.unwrap_err().to_string();
    assert_eq!(failure, "ValidationError: Prompt 'nobody' not found");
    let of = CompletionReference::ResourceTemplate("demo://nowhere/{x}".into());
    let failure = host.complete(&of, &argument, RequestOptions::default()).await.unwrap_err().to_string();
    assert_eq!(failure, "ValidationError: Resource template 'demo://nowhere/{x}' not found");
}
