//! A process near its limit of file descriptors.

use std::fs::File;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Limits, RawJson};
use mcp_host_runtime::{
    DesiredServers, Host, HostOptions, RestartPolicy, ServerState, Supervision, ToolCall,
};
use mcp_testkit::isolation::{Isolation, run_isolated_in};
use mcp_tests::faults::{NO_DESCRIPTOR, ONE_DESCRIPTOR, RUNNING, STARTING, STARTING_PROCESS, Transport};

use super::check;
use crate::host::resolved_server;
use crate::peer::Faulty;

/// The time limit, for busy machines.
const TIME_LIMIT: Duration = Duration::from_secs(60);

#[test]
fn hd_117_host_continues_at_the_descriptor_limit() {
    let name = "machine::descriptors::hd_117_host_continues_at_the_descriptor_limit";
    if run_isolated_in(name, "ulimit -n 128; exec \"$0\" \"$@\"", &[]) == Isolation::AlreadyRun {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let faulty = Faulty::start();
        let mut policy = RestartPolicy::default();
        policy.initial_backoff = Duration::from_millis(100);
        let mut options = HostOptions::default();
        options.supervision = Supervision::Restart(policy);
        options.connections.authorities = faulty.authorities();
        let host = Host::start(options);
        let one = |name: &str, transport| {
            resolved_server(name, faulty.endpoint(transport, name, "start=well"), Limits::default())
        };
        let there: Vec<_> = Transport::ALL
            .into_iter()
            .enumerate()
            .map(|(number, it)| one(&format!("there{number}"), it))
            .collect();
        let later: Vec<_> = Transport::ALL
            .into_iter()
            .enumerate()
            .map(|(number, it)| one(&format!("later{number}"), it))
            .collect();
        host.apply(DesiredServers::new(there.clone())).await;
        host.wait_until_ready().await;
        let call = async |name: &str| host.call(ToolCall::new(name, RawJson::empty_object())).await;
        for number in 0..there.len() {
            assert!(call(&format!("there{number}__other")).await.success);
        }

        let fails = async |names: &[ResolvedServer]| {
            let servers = there.iter().chain(names).cloned().collect();
            host.apply(DesiredServers::new(servers)).await;
            tokio::time::timeout(TIME_LIMIT, host.wait_until_ready()).await.expect("each start ends");
            for status in host.snapshot().servers.iter().filter(|server| server.id.starts_with("later")) {
                let failure = status.error.as_ref();
                let outcome =
                    failure.map(|error| format!("{}: {}", error.kind, error.message)).unwrap_or_default();
                assert!(
                    outcome.starts_with("MCPConnectionError: "),
                    "{} is {}: {outcome}",
                    status.id,
                    status.state.as_str()
                );
            }
            for number in 0..there.len() {
                let result = tokio::time::timeout(TIME_LIMIT, call(&format!("there{number}__other"))).await;
                let result = result.expect("each call ends");
                assert!(result.success, "{result:?}");
            }
        };
        let take = || std::iter::from_fn(|| File::open("/dev/null").ok());
        let mut taken: Vec<File> = take().collect();
        drop(taken.pop());
        // A process needs descriptors for its pipes.
        fails(&later[..1]).await;
        check(ONE_DESCRIPTOR, RUNNING, "it responds");
        check(ONE_DESCRIPTOR, STARTING_PROCESS, "MCPConnectionError");
        taken.extend(take());
        fails(&later).await;
        check(NO_DESCRIPTOR, RUNNING, "it responds");

        drop(taken);
        let mut published = host.subscribe();
        let all = published
            .wait_for(|server| server.servers.iter().all(|server| server.state == ServerState::Ready));
        tokio::time::timeout(TIME_LIMIT, all).await.expect("they come back").unwrap();
        for number in 0..later.len() {
            assert!(call(&format!("later{number}__other")).await.success);
        }
        check(NO_DESCRIPTOR, STARTING, "MCPConnectionError; it is restarted when descriptors are free");
        host.shutdown().await;
    });
}
