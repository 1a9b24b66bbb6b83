//! Tests of the lookup of tools, after steps of a state machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use mcp_host_model::{RawJson, read_tools};
use mcp_host_registry::CatalogServer;

use super::*;
use crate::calls::tool_ref::ToolRef;
use crate::state::published::HostSnapshot;
use crate::supervisor::machine::RouteTarget;
use crate::supervisor::machine::tests::fixture::{MachineDriver, server};

/// Expects what `name` resolves to after `steps`: server and original name, or the error. `s/n` is `n` on server `s`.
#[track_caller]
fn check(steps: &[&str], name: &str, want: &str) {
    let mut run = MachineDriver::new();
    for step in steps {
        run.step(step);
    }
    let routing_table = run.machine.next_routing_table(UNIX_EPOCH);
    let (server, name) = match name.split_once('/') {
        Some((server, name)) => (Some(ServerId::parse(server).unwrap()), name),
        None => (None, name),
    };
    let got = match find_tool(&routing_table, name, server.as_ref()) {
        Ok((tool, Some(Route { target: RouteTarget::Shared(instance), .. }))) => {
            format!("{} {} by {instance}", tool.server, tool.tool.name)
        }
        Ok((tool, route)) => format!("{} {} by {route:?}", tool.server, tool.tool.name),
        Err(failure) => failure.to_string(),
    };
    assert_eq!(got, want, "{name}");
}

const TWO: &[&str] = &["configure a=1.1 b=1.1", "started 1 read,list", "started 2 read,write"];

#[test]
fn tool_is_found_by_exposed_name_or_unique_original_name() {
    check(TWO, "a__read", "a read by 1");
    check(TWO, "b__read", "b read by 2");
    check(TWO, "write", "b write by 2");
    check(TWO, "read", "MCPToolNotFoundError: Tool 'read' is ambiguous: use 'a__read' or 'b__read'");
    check(TWO, "b/read", "b read by 2");
    check(TWO, "a/a__read", "a read by 1");
}

#[test]
fn hd_092_unknown_name_suggests_nearest() {
    check(TWO, "b__writ", "MCPToolNotFoundError: Tool 'b__writ' not found; did you mean 'b__write'?");
    check(TWO, "nothing_like_it", "MCPToolNotFoundError: Tool 'nothing_like_it' not found");
    check(TWO, "a/write", "MCPToolNotFoundError: Tool 'write' not found");
    check(TWO, "c/read", "MCPToolNotFoundError: Tool 'read' not found: there is no server 'c'");
    let long = format!("x\n{}", "y".repeat(200));
    check(TWO, &long, &format!("MCPToolNotFoundError: Tool 'x{}…' not found", "y".repeat(127)));
}

#[test]
fn hd_117_tool_of_lost_server_names_the_reason() {
    let lost: Vec<&str> = TWO.iter().copied().chain(["disconnect 2"]).collect();
    let gone = |name: &str| format!("MCPConnectionError: Tool '{name}' is not available: server 'b': lost");
    check(&lost, "b__write", &gone("b__write"));
    check(&lost, "write", &gone("write"));
    check(&lost, "b/anything", &gone("anything"));
    check(&lost, "a__read", "a read by 1");
}

#[test]
fn hd_sc6_tool_of_failed_server_names_the_reason() {
    let failed = &["configure a=1.1 b=1.2 c!", "started 1", "fail 2"];
    check(failed, "b__x-2", "MCPConnectionError: Tool 'b__x-2' is not available: server 'b': no start");
    check(
        failed,
        "else",
        "MCPToolNotFoundError: Tool 'else' not found; servers that are not available: 'b', 'c'",
    );
    check(
        failed,
        "a__u",
        "MCPToolNotFoundError: Tool 'a__u' not found; servers that are not available: 'b', 'c'; did you mean 'a__t'?",
    );
    check(failed, "c/x", "ConfigError: Tool 'x' is not available: server 'c': bad entry");
    let starting = &["configure a=1.1"];
    check(starting, "a__x", "MCPConnectionError: Tool 'a__x' is not available: server 'a' is starting");
}

#[test]
fn hd_029_tool_of_server_without_loaded_tools_says_so() {
    let unloaded = &["configure a=1.1-unloaded", "started 1 -"];
    let want = |name: &str| {
        format!(
            "MCPToolNotFoundError: Tool '{name}' not found: the tools of server 'a' are not loaded (load_tools is \
            false)"
        )
    };
    check(unloaded, "a__x", &want("a__x"));
    check(unloaded, "a/x", &want("x"));
}

#[test]
fn filtered_tool_names_the_rule() {
    let filtered = &["configure a=1.1-nowrite", "started 1 read,write"];
    let rule = "Tool 'write' not found: server 'a' has it, but it is not shown: ";
    let mut run = MachineDriver::new();
    for step in filtered {
        run.step(step);
    }
    let failure =
        find_tool(&run.machine.next_routing_table(UNIX_EPOCH), "write", None).map(|_| ()).unwrap_err();
    assert!(failure.message.starts_with(rule), "{failure}");
}

#[test]
fn nothing_is_found_after_shutdown() {
    check(&["configure a=1.1", "started 1", "close"], "a__t", "MCPConnectionError: the host was shut down");
}

/// Looks up a referenced tool in a routing table. Returns its name and whether it has a route, or the error.
fn find_referenced(table: &RoutingTable<u64>, tool: &ToolRef) -> String {
    let call = ToolCall::of(CalledTool::Found(tool.clone()), RawJson::empty_object());
    match find_called_tool(table, &call) {
        Ok((tool, route)) => format!("{} {}", tool.name, route.is_some()),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn referenced_tool_is_the_same_or_missing() {
    let mut run = MachineDriver::new();
    TWO.iter().for_each(|step| drop(run.step(step)));
    let table = run.machine.next_routing_table(UNIX_EPOCH);
    let tool = ToolRef::of(&table.snapshot, table.snapshot.catalog.tool("b__write").unwrap()).unwrap();
    assert_eq!(find_referenced(&table, &tool), "b__write true");

    // In a later generation it is found by its name, at another position.
    run.step("disconnect 1");
    assert_eq!(find_referenced(&run.machine.next_routing_table(UNIX_EPOCH), &tool), "b__write true");
    run.step("disconnect 2");
    let lost = "MCPConnectionError: Tool 'b__write' is not available: server 'b': lost";
    assert_eq!(find_referenced(&run.machine.next_routing_table(UNIX_EPOCH), &tool), lost);

    // A call that was made for another schema is not sent.
    let page = r#"{"tools":[{"name":"write","inputSchema":{"type":"object","required":["to"]}}]}"#;
    let tools = read_tools(&RawJson::parse(page.into()).unwrap()).unwrap().into_shared();
    let lists = Arc::new(ServerLists::of_tools(tools));
    let entry = CatalogServer::new(tool.tool().server.clone(), server("b=1.1").spec.exposure.clone(), lists);
    let mut snapshot = HostSnapshot::clone(&table.snapshot);
    snapshot.catalog = Arc::new(Catalog::empty().successor(&[entry], &BTreeMap::new()));
    let snapshot = Arc::new(snapshot);
    let old = ToolRef::of(&snapshot, snapshot.catalog.tool("b__write").unwrap()).unwrap();
    let replaced = "MCPConnectionError: Tool 'b__write' is not available: its server is being replaced";
    assert_eq!(find_referenced(&table, &old), replaced);
}
