//! Dominds' servers: lowering and diagnostics.

use mcp_host_config::Profile;
use mcp_host_model::{
    ConfigValue, EnvInheritance, Exposure, NamePolicy, NameTransform, Secret, ServerSpec, Sharing,
    TransportKind, TransportSpec,
};

use crate::{diagnostic_lines, read_text};

/// A file with one server of these fields.
fn file_with_server(fields: &str) -> String {
    format!("version: 1\nservers:\n  a: {{{fields}}}\n")
}

#[track_caller]
fn read_single_server(text: &str) -> ServerSpec {
    let reading = read_text(Profile::Dominds, text);
    assert!(!reading.has_errors(), "{}", diagnostic_lines(&reading));
    reading.servers.into_iter().next().unwrap()
}

#[test]
fn dm_006_to_dm_011_program_and_environment_are_lowered() {
    let spec = read_single_server(include_str!("../../../../fixtures/dominds/valid/stdio.yaml"));
    assert_eq!(spec.id.as_str(), "browser");
    assert_eq!(spec.sharing, Sharing::PerOwner);
    let TransportSpec::Stdio(stdio) = spec.transport else { panic!("not stdio") };
    assert_eq!(stdio.command, "npx");
    assert_eq!(stdio.args, ["-y", "@acme/browser@latest"].map(ConfigValue::literal));
    assert_eq!(stdio.cwd.as_deref(), Some("./tools"));
    // DM-070
    assert_eq!(stdio.inherit, EnvInheritance::All);
    let host = |prefix| ConfigValue::HostEnv { name: "ACME_TOKEN".to_owned(), prefix: Secret::new(prefix) };
    let env = [
        // DM-010: no variables here.
        ("PLAIN".to_owned(), ConfigValue::literal("a ${literal} text")),
        ("TOKEN".to_owned(), host("")),
        ("BEARER".to_owned(), host("Bearer ")),
    ];
    assert_eq!(stdio.env, env);
    assert_eq!(spec.exposure.tools.filter.whitelist, ["page_*", "open"]);
    assert_eq!(spec.exposure.tools.filter.blacklist, ["*_unsafe"]);
    assert_eq!(spec.exposure.tools.naming, NamePolicy::Reject);
}

#[test]
fn dm_012_to_dm_015_url_and_headers_are_lowered() {
    let spec = read_single_server(include_str!("../../../../fixtures/dominds/valid/streamable_http.yaml"));
    assert_eq!(spec.sharing, Sharing::Shared);
    let TransportSpec::Http(http) = spec.transport else { panic!("not http") };
    assert_eq!(http.url, ConfigValue::literal("http://127.0.0.1:3000/mcp"));
    assert_eq!(http.session_id, Some(ConfigValue::literal("abc")));
    assert_eq!(http.headers[1], ("X-Client".to_owned(), ConfigValue::literal("dominds")));
}

#[test]
fn x_20_empty_session_id_is_ignored() {
    let text = file_with_server("transport: streamable_http, url: 'http://x.example', sessionId: ''");
    let TransportSpec::Http(http) = read_single_server(&text).transport else { panic!("not http") };
    assert_eq!(http.session_id, None);
}

#[test]
fn dm_042_to_dm_045_dmx_09_transforms_keep_their_order_and_do_not_stack() {
    let spec = read_single_server(include_str!("../../../../fixtures/dominds/valid/transforms.yaml"));
    let prefix =
        |remove: &str, add: &str| NameTransform::Prefix { remove: remove.to_owned(), add: add.to_owned() };
    let own = [prefix("", "one_"), prefix("two_", "three_"), NameTransform::Suffix("_four".to_owned())];
    // The tools have an empty list of their own, so there are no transforms.
    assert_eq!(spec.exposure.tools.transforms, []);
    assert_eq!(spec.exposure.prompts.transforms, [prefix("", "p_")]);
    assert_eq!(spec.exposure.prompts.filter.whitelist, ["p*"]);
    // The resources have no list of their own, so the server's transforms apply.
    assert_eq!(spec.exposure.resources.transforms, own);
    assert_eq!(spec.exposure.resources.filter.blacklist, ["*secret*"]);
    assert_eq!(
        spec.metadata["resources"].read::<serde_json::Value>().unwrap(),
        serde_json::json!({
            "mimeTypes": ["text/plain"],
            "maxBytes": 50000,
            "skills": { "enabled": true, "whitelist": ["skill://*"], "blacklist": [] }
        })
    );
}

#[test]
fn dmx_08_dmx_10_tool_names_are_rejected_and_other_names_are_slugged() {
    let spec = read_single_server(&file_with_server(
        "transport: stdio, command: x, prompts: {whitelist: ['*']}, resources: {maxBytes: 9}",
    ));
    let Exposure { tools, prompts, resources, .. } = &spec.exposure;
    let namings = [tools.naming, prompts.naming, resources.naming];
    assert_eq!(namings, [NamePolicy::Reject, NamePolicy::Slug, NamePolicy::Slug]);
    let kept = spec.metadata["resources"].read::<serde_json::Value>().unwrap();
    assert_eq!(kept["maxBytes"], 9);
}

#[test]
fn dm_016_blank_patterns_are_dropped_and_others_not_trimmed() {
    let spec = read_single_server(&file_with_server(
        "transport: stdio, command: x, tools: {whitelist: ['', ' ', 'a '], blacklist: []}",
    ));
    assert_eq!(spec.exposure.tools.filter.whitelist, ["a "]);
}

#[test]
fn dmx_17_servers_stay_in_the_order_of_the_file() {
    let text = include_str!("../../../../fixtures/dominds/valid/numbers_as_ids_in_order.yaml");
    let reading = read_text(Profile::Dominds, text);
    let ids: Vec<_> = reading.servers.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["zebra", "10", "9", "apple"]);
}

#[test]
fn dmx_01_disabled_server_is_listed_and_not_checked() {
    let reading =
        read_text(Profile::Dominds, include_str!("../../../../fixtures/dominds/valid/switched_off.yaml"));
    assert_eq!(diagnostic_lines(&reading), "");
    let entries: Vec<_> =
        reading.entries.iter().map(|it| (it.name.as_str(), it.accepted, it.disabled, it.transport)).collect();
    assert_eq!(entries, [("off", true, true, None), ("on", true, false, Some(TransportKind::Stdio))]);
    let ids: Vec<_> = reading.servers.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["on"]);
}

#[track_caller]
fn check_refused(text: &str, want: bool) {
    let reading = read_text(Profile::Dominds, text);
    assert!(reading.has_errors());
    assert_eq!(reading.refused, want, "{text:?}: {}", diagnostic_lines(&reading));
}

#[test]
fn dm_121_errors_of_the_file_reject_the_workspace() {
    check_refused("", true);
    check_refused("version: 2\n", true);
    check_refused("servers: {}\n", true);
    check_refused("version: 1\nservers: []\n", true);
    check_refused("version: 1\nservers:\n\ta: 1\n", true);
    check_refused("version: 1\nservers: {}\n---\nx: 1\n", true);
    check_refused("version: 1\nservers:\n  a: {transport: stdio, command: x}\n  a: {}\n", true);
    // DM-019: a duplicate key anywhere, even in a disabled server, which is not checked.
    check_refused("version: 1\nservers:\n  a: {transport: stdio, command: x, command: y}\n", true);
    check_refused("version: 1\nservers:\n  a: {enabled: false, command: x, command: y}\n", true);
    check_refused("version: 1\nservers:\n  a: {transport: stdio, command: *x}\n", true);
}

#[test]
fn dm_122_errors_of_a_server_reject_only_that_server() {
    check_refused(&file_with_server("transport: sse"), false);
    check_refused(&file_with_server("transport: stdio"), false);
    check_refused(
        &file_with_server("transport: stdio, command: x, transform: [{prefix: a, suffix: b}]"),
        false,
    );
    check_refused("version: 1\nservers:\n  a: x\n", false);
    check_refused("version: 1\nservers:\n  \"\": {transport: stdio, command: x}\n", false);
}

#[test]
fn dm_018_x_15_unknown_keys_are_warnings_at_every_level() {
    let text = "\
version: 1
verison: 1
servers:
  a:
    transport: stdio
    command: x
    truly-stateless: true
    tools: {whitelst: []}
    env: {A: {env: B, prefx: c}}
    transform: [{prefix: {remove: a, add: b, ad: c}}]
";
    let reading = read_text(Profile::Dominds, text);
    assert!(!reading.has_errors());
    insta::assert_snapshot!(diagnostic_lines(&reading), @"
    warning 2:1 /verison ValidationError: unknown key 'verison'
    warning 7:5 /servers/a/truly-stateless ValidationError: unknown key 'truly-stateless'
    warning 8:13 /servers/a/tools/whitelst ValidationError: unknown key 'whitelst'
    warning 9:23 /servers/a/env/A/prefx ValidationError: unknown key 'prefx'
    warning 10:46 /servers/a/transform/0/prefix/ad ValidationError: unknown key 'ad'
    ");
    let help: Vec<_> = reading.diagnostics.iter().filter_map(|it| it.help.as_deref()).collect();
    assert_eq!(
        help,
        [
            "remove it, or check its spelling",
            "did you mean `truely-stateless`?",
            "did you mean `whitelist`?",
            "did you mean `prefix`?",
            "remove it, or check its spelling",
        ]
    );
}

#[test]
fn every_mistake_of_a_server_is_found_at_once() {
    let text = "\
version: 1
servers:
  a:
    transport: stdio
    args: [1]
    env: {A: 1}
    truely-stateless: 1
    tools: {whitelist: x}
    transform: [{prefix: a, suffix: b}]
    resources: {maxBytes: 0}
";
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::Dominds, text)), @"
    error 3:3 /servers/a/command MCPConfigError: Invalid mcp.yaml: servers.a.command must be a non-empty string
    error 5:12 /servers/a/args/0 ValidationError: Invalid mcp.yaml: servers.a.args[0] must be a string
    error 6:14 /servers/a/env/A ValidationError: Invalid mcp.yaml: servers.a.env.A must be a string or { env: 'NAME' }
    error 7:23 /servers/a/truely-stateless ValidationError: Invalid mcp.yaml: servers.a.truely-stateless must be a \
    boolean
    error 8:24 /servers/a/tools/whitelist ValidationError: Invalid mcp.yaml: servers.a.tools.whitelist must be string[]
    error 9:17 /servers/a/transform/0 MCPConfigError: Invalid mcp.yaml: servers.a.transform[0] has both 'prefix' and \
    'suffix'
    error 10:27 /servers/a/resources/maxBytes ValidationError: Invalid mcp.yaml: servers.a.resources.maxBytes must \
    be a positive integer
    ");
}
