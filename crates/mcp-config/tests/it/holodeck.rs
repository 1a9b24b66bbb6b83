//! HoloDeck's items: lowering and diagnostics.

use std::time::Duration;

use mcp_host_config::Profile;
use mcp_host_model::{
    ConfigValue, EnvInheritance, NameClass, NamePolicy, ServerSpec, Sharing, TemplatePart, TransportSpec,
};

use crate::{diagnostic_lines, read_text};

const FULL: &str = include_str!("../../../../fixtures/holodeck/valid/stdio_npx.yaml");

/// A file with one item, which has the required fields and these.
fn file_with_item(fields: &str) -> String {
    format!("tools:\n  - {{name: a, description: d, type: mcp, server: s, {fields}}}\n")
}

#[track_caller]
fn read_single_server(profile: Profile, text: &str) -> ServerSpec {
    let reading = read_text(profile, text);
    assert!(!reading.has_errors(), "{}", diagnostic_lines(&reading));
    reading.servers.into_iter().next().unwrap()
}

#[track_caller]
fn check(profile: Profile, fields: &str, want: &str) {
    assert_eq!(diagnostic_lines(&read_text(profile, &file_with_item(fields))), want, "{fields}");
}

#[test]
fn hd_002_to_hd_031_every_field_is_lowered() {
    let spec = read_single_server(Profile::HoloDeck, FULL);
    assert_eq!(spec.id.as_str(), "notes");
    assert_eq!(spec.description.as_deref(), Some("Reads and writes notes."));
    assert_eq!(spec.origin.pointer, "/tools/0");
    assert!(FULL[spec.origin.span.clone()].starts_with("name: notes"));
    assert_eq!(spec.limits.request, Duration::from_secs(90));
    assert_eq!((spec.discovery.tools, spec.discovery.prompts), (true, false));
    assert_eq!(spec.sharing, Sharing::Auto);
    assert_eq!(spec.exposure.tools.naming, NamePolicy::Qualify { class: NameClass::Strict });
    assert_eq!(spec.metadata["server"].to_text().as_deref(), Some("@acme/notes-server"));
    let TransportSpec::Stdio(stdio) = spec.transport else { panic!("not stdio") };
    assert_eq!(stdio.command, "npx");
    assert_eq!(stdio.args, ["-y", "@acme/notes-server", "./notes"].map(ConfigValue::literal));
    assert_eq!(
        stdio.env[0],
        (
            "NOTES_TOKEN".to_owned(),
            ConfigValue::Template(vec![TemplatePart::Variable("NOTES_TOKEN".to_owned())])
        )
    );
    assert_eq!(stdio.env[1], ("NOTES_MODE".to_owned(), ConfigValue::literal("strict")));
    assert_eq!(stdio.env_file, Some(ConfigValue::literal(".env")));
    assert_eq!(stdio.encoding, "utf-8");
    assert_eq!(stdio.inherit, EnvInheritance::Safe);
}

#[test]
fn defaults_are_those_of_the_contract() {
    let limits = |fields| read_single_server(Profile::HoloDeck, &file_with_item(fields)).limits;
    let seconds = Duration::from_secs;
    // HD-031
    assert_eq!(limits("command: npx").request, seconds(60));
    assert_eq!(limits("transport: sse, url: 'https://x.example'").connect, seconds(5));
    assert_eq!(limits("transport: http, url: 'https://x.example'").connect, seconds(30));
    assert_eq!(limits("transport: sse, url: 'https://x.example'").sse_read, seconds(300));
    let timeouts = "transport: sse, url: 'https://x.example', timeout: 2.5, sse_read_timeout: 9";
    assert_eq!(limits(timeouts).connect, Duration::from_millis(2500));
    assert_eq!(limits(timeouts).sse_read, seconds(9));
    assert_eq!(limits("command: npx, request_timeout: 45.0").request, seconds(45));
    let spec =
        read_single_server(Profile::HoloDeck, &file_with_item("transport: http, url: 'https://x.example'"));
    let TransportSpec::Http(http) = spec.transport else { panic!("not http") };
    assert!(http.terminate_on_close);
}

#[test]
fn hd_066_to_hd_068_deprecated_item_runs_its_package() {
    let text = "tools:\n  - name: m\n    type: mcp\n    server: '@acme/memory@1.2'\n    args: [x]\n";
    let reading = read_text(Profile::HoloDeck, text);
    insta::assert_snapshot!(diagnostic_lines(&reading), @"
    warning 2:5 /tools/0/description ValidationError: 'description' is missing
    warning 2:5 /tools/0 MCPConfigError: an item without 'transport' and 'command' is deprecated
    ");
    let TransportSpec::Stdio(stdio) = &reading.servers[0].transport else { panic!("not stdio") };
    assert_eq!(stdio.command, "npx");
    assert_eq!(stdio.args, ["-y", "@acme/memory@1.2", "x"].map(ConfigValue::literal));
}

#[test]
fn x_29_only_scoped_packages_without_transport_are_deprecated_items() {
    const MISSING: &str = "MCPConfigError: 'command' is required for stdio transport";
    for (server, transport) in [
        ("memory", ""),
        ("@acme", ""),
        ("@acme/", ""),
        ("@/memory", ""),
        ("@acme/me mory", ""),
        ("@acme/memory@", ""),
        ("./local", ""),
        ("@acme/memory", "transport: stdio, "),
    ] {
        let text =
            format!("tools:\n  - {{{transport}name: a, description: d, type: mcp, server: '{server}'}}\n");
        assert!(diagnostic_lines(&read_text(Profile::HoloDeck, &text)).ends_with(MISSING), "{server}");
    }
}

#[test]
fn hd_011_hd_037_fields_of_another_transport_are_warnings() {
    check(
        Profile::HoloDeck,
        "command: npx, headers: {A: b}, timeout: 1",
        "warning 2:67 /tools/0/headers MCPConfigError: 'headers' has no effect with stdio transport\n\
         warning 2:84 /tools/0/timeout MCPConfigError: 'timeout' has no effect with stdio transport",
    );
    // HD-024
    check(
        Profile::HoloDeck,
        "transport: websocket, url: 'wss://x.example', sse_read_timeout: 1",
        "warning 2:99 /tools/0/sse_read_timeout MCPConfigError: 'sse_read_timeout' has no effect with websocket \
        transport",
    );
    check(
        Profile::HoloDeck,
        "transport: sse, url: 'https://x.example', terminate_on_close: true",
        "warning 2:95 /tools/0/terminate_on_close MCPConfigError: 'terminate_on_close' has no effect with sse \
        transport",
    );
    // HoloDeck 0.7 accepts all of it.
    let accepts = |fields: &str| {
        let text = format!("tools:\n  - {{name: a, description: d, type: mcp, {fields}}}\n");
        assert_eq!(diagnostic_lines(&read_text(Profile::HoloDeck07, &text)), "", "{fields}");
    };
    accepts("command: npx, url: 'https://x.example', headers: {A: b}");
    accepts("transport: http, url: 'https://x.example', command: node");
    accepts(
        "command: node, registry_name: io.acme/x, is_retrieval: true, defer_loading: false, env_file: .env",
    );
}

#[test]
fn hd_007_hd_018_keys_unknown_to_0_7_are_errors() {
    let text = "tools:\n  - {name: a, description: d, type: mcp, command: npx, server: s, envFile: .env}\n";
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::HoloDeck07, text)), @"
    error 2:56 /tools/0/server ValidationError: unknown key 'server'
    error 2:67 /tools/0/envFile ValidationError: unknown key 'envFile'
    ");
}

#[test]
fn hd_004_names_are_unique_across_all_kinds_of_tools() {
    let text = "tools:\n  - {name: a, type: function}\n  - {name: b, type: prompt}\n  - {name: a, type: vectorstore}\n";
    let reading = read_text(Profile::HoloDeck, text);
    insta::assert_snapshot!(diagnostic_lines(&reading), @"error 4:12 /tools/2/name ValidationError: two tools \
        of this agent are named 'a'");
    let first = &reading.diagnostics[0].labels[0];
    assert_eq!(&text[first.span.clone()], "a");
    assert!(reading.refused);
}

#[test]
fn hd_006_misspelled_mcp_type_is_reported() {
    for (tag, want) in
        [("MCP", true), ("mpc", true), ("mcp ", true), ("rpc", false), ("function", false), ("rag", false)]
    {
        let text = format!("tools:\n  - {{name: a, type: '{tag}'}}\n");
        assert_eq!(read_text(Profile::HoloDeck, &text).has_errors(), want, "{tag}");
    }
}

#[test]
fn hd_054_variables_are_found_in_values_and_not_in_comments_or_keys() {
    let text =
        file_with_item("command: npx, args: ['${A}'], env: {'${K}': v}, encoding: '${E}', envFile: '${F}'");
    let reading = read_text(Profile::HoloDeck, &format!("# ${{COMMENT}}\n{text}"));
    assert_eq!(diagnostic_lines(&reading), "");
    let TransportSpec::Stdio(stdio) = &reading.servers[0].transport else { panic!("not stdio") };
    assert_eq!(stdio.args, [ConfigValue::Template(vec![TemplatePart::Variable("A".to_owned())])]);
    assert_eq!(stdio.env, [("${K}".to_owned(), ConfigValue::literal("v"))]);
    assert_eq!(stdio.encoding, "${E}");
}

#[test]
fn variable_in_a_fixed_field_is_its_only_diagnostic() {
    let text = "tools:\n  - {name: '${N}', description: d, type: mcp, server: s, command: '${C}', transport: '${T}'}\n";
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::HoloDeck, text)), @"
    error 2:12 /tools/0/name MCPConfigError: 'name' must not contain a variable
    error 2:67 /tools/0/command MCPConfigError: 'command' must not contain a variable
    error 2:86 /tools/0/transport MCPConfigError: 'transport' must not contain a variable
    ");
}

#[test]
fn x_17_one_error_refuses_the_file_and_everything_is_listed() {
    let text = format!("{}  - {{name: b, type: mcp}}\n", file_with_item("command: npx"));
    let reading = read_text(Profile::HoloDeck, &text);
    assert!(reading.refused);
    assert!(reading.entries.iter().all(|it| !it.accepted));
    // The valid server can still be inspected.
    assert_eq!(reading.servers.len(), 1);
}

#[test]
fn suspicious_units_are_warnings() {
    let reading = read_text(Profile::HoloDeck, &file_with_item("command: npx, request_timeout: 30000"));
    assert!(!reading.refused && !reading.has_errors());
    assert_eq!(reading.servers[0].limits.request, Duration::from_secs(30_000));
    insta::assert_snapshot!(diagnostic_lines(&reading), @"warning 2:84 /tools/0/request_timeout MCPConfigError: \
        'request_timeout' is in seconds; 30000 of them are 8 hours");
}

#[test]
fn hd_070_to_hd_076_documented_examples_load() {
    for fields in [
        "command: npx, args: ['-y', '@acme/files'], config: {allowed: ['${workspaceFolder}/data']}",
        "command: npx, args: ['-y', '@acme/hub'], env: {HUB_TOKEN: '${HUB_TOKEN}'}, config: {repositories: [a/b]}",
        "command: uvx, args: [acme-fetch], env: {CUSTOM: '${CUSTOM}'}",
        "command: docker, args: [run, --rm, -i, 'acme:latest'], env: {KEY: '${KEY}'}",
        "transport: sse, url: 'https://api.acme.example/mcp/sse', headers: {Authorization: 'Bearer ${KEY}'}, \
         timeout: 10, sse_read_timeout: 300, request_timeout: 120",
        "transport: websocket, url: 'wss://mcp.acme.example/ws'",
        "transport: http, url: 'https://mcp.acme.example/stream', terminate_on_close: true",
    ] {
        check(Profile::HoloDeck, fields, "");
    }
}

#[test]
fn hd_025_to_hd_031_only_0_7_converts_strings_to_numbers_and_booleans() {
    const FIELDS: &str = "command: npx, load_tools: \"off\", load_prompts: 0, request_timeout: '90', timeout: \"2.5\", \
                          terminate_on_close: no";
    let text = format!("tools:\n  - {{name: a, description: d, type: mcp, {FIELDS}}}\n");
    let spec = read_single_server(Profile::HoloDeck07, &text);
    assert_eq!((spec.discovery.tools, spec.discovery.prompts), (false, false));
    assert_eq!(
        (spec.limits.request, spec.limits.connect),
        (Duration::from_secs(90), Duration::from_millis(2500))
    );
    let contract = read_text(Profile::HoloDeck, &file_with_item(FIELDS));
    let errors: Vec<_> =
        contract.diagnostics.iter().filter(|it| it.severity == mcp_host_model::Severity::Error).collect();
    let pointers: Vec<_> = errors.iter().map(|it| it.pointer.trim_start_matches("/tools/0/")).collect();
    assert_eq!(pointers, ["load_tools", "load_prompts", "request_timeout", "timeout", "terminate_on_close"]);
    // Texts that spell no value are rejected by both profiles.
    let text = text.replace("'90'", "'soon'").replace("\"off\"", "maybe");
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::HoloDeck07, &text)), @"
    error 2:68 /tools/0/load_tools ValidationError: 'load_tools' must be true or false, not text
    error 2:109 /tools/0/request_timeout ValidationError: 'request_timeout' must be a whole number, not text
    ");
}

#[test]
fn only_0_7_limits_types_and_number_of_tools() {
    let text = "tools:\n  - {name: a, type: rpc}\n";
    assert_eq!(diagnostic_lines(&read_text(Profile::HoloDeck, text)), "");
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::HoloDeck07, text)),
        @"error 2:21 /tools/0/type MCPConfigError: there is no tool type 'rpc'");
    let tools = |count: usize| -> String {
        let tools = (0..count).map(|it| format!("  - {{name: t{it}, type: function}}\n"));
        format!("tools:\n{}", tools.collect::<String>())
    };
    assert_eq!(diagnostic_lines(&read_text(Profile::HoloDeck07, &tools(50))), "");
    assert_eq!(diagnostic_lines(&read_text(Profile::HoloDeck, &tools(51))), "");
    insta::assert_snapshot!(diagnostic_lines(&read_text(Profile::HoloDeck07, &tools(51))),
        @"error 52:6 /tools/50 ConfigError: an agent may have no more than 50 tools");
}
