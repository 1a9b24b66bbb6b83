//! The key `sandbox`: our form in each dialect, and the form of VS Code.

use std::path::Path;

use mcp_host_config::{Profile, ResolveContext, resolve, write_servers};
use mcp_host_model::{Endpoint, TransportSpec};

use crate::{diagnostic_lines, read_text};

fn mcp_json(members: &str) -> String {
    format!(r#"{{"mcpServers": {{"a": {{"command": "x"{members}}}}}}}"#)
}

/// The stated sandbox of the only server as text, and the diagnostics.
fn read_sandbox(profile: Profile, text: &str) -> (Option<String>, String) {
    let reading = read_text(profile, text);
    let sandbox = reading.servers.first().and_then(|server| match &server.transport {
        TransportSpec::Stdio(spec) => spec.sandbox.as_ref().map(ToString::to_string),
        TransportSpec::Sse(_) | TransportSpec::WebSocket(_) | TransportSpec::Http(_) => None,
    });
    (sandbox, diagnostic_lines(&reading))
}

/// RPT-314
#[test]
fn rpt_314_sandbox_is_read_in_each_dialect() {
    let json = r#"{"preset": "project", "read": ["/a"], "write": ["./out"], "denyRead": ["/a/x"], "denyWrite": ["out/x"],
        "ports": [53, 443], "env": ["TOKEN"]}"#;
    let want = "project, may read /a, may write ./out, may not read /a/x, may not write out/x, inherits TOKEN, \
                may connect to port 53 443";
    for (profile, text) in [
        (Profile::McpJson, mcp_json(&format!(", \"sandbox\": {json}"))),
        (
            Profile::Dominds,
            format!("version: 1\nservers:\n  a: {{transport: stdio, command: x, sandbox: {json}}}\n"),
        ),
        (
            Profile::HoloDeck,
            format!(
                "tools:\n  - {{name: a, description: d, type: mcp, server: s, command: npx, sandbox: {json}}}\n"
            ),
        ),
    ] {
        let (found, lines) = read_sandbox(profile, &text);
        assert_eq!((found.as_deref(), &*lines), (Some(want), ""), "{profile:?}");
    }
    for (value, want) in [
        (r#""project""#, Some("project, has no network")),
        (r#""network""#, Some("network")),
        (r#""off""#, Some("off")),
        (r#"{"write": ["/w"]}"#, Some("project, may write /w, has no network")),
        (r#"{"preset": "network", "write": ["/w"]}"#, Some("network, may write /w")),
        ("null", None),
    ] {
        let (found, lines) = read_sandbox(Profile::McpJson, &mcp_json(&format!(", \"sandbox\": {value}")));
        assert_eq!((found.as_deref(), &*lines), (want, ""), "{value}");
    }
}

/// RPT-314
#[test]
fn rpt_314_mistakes_in_a_sandbox_are_errors() {
    for (value, want) in [
        (r#""strict""#, "project"),
        (r#"{"preset": "none"}"#, "project"),
        (r#"{"reed": ["/a"]}"#, "reed"),
        (r#"{"read": "/a"}"#, "list"),
        (r#"{"read": [""]}"#, "must not be empty"),
        (r#"{"ports": [0]}"#, "from 1 to 65535"),
        (r#"{"ports": [65536]}"#, "from 1 to 65535"),
        (r#"{"ports": ["https"]}"#, "number"),
        (r#"{"env": ["A=1"]}"#, "environment variable"),
        ("true", "mapping"),
    ] {
        let (_, lines) = read_sandbox(Profile::McpJson, &mcp_json(&format!(", \"sandbox\": {value}")));
        assert!(lines.contains(want), "{value}: {lines}");
    }
    let url = r#"{"mcpServers": {"a": {"url": "https://a.example/mcp", "sandbox": "project"}}}"#;
    let (_, lines) = read_sandbox(Profile::McpJson, url);
    assert!(lines.contains("'sandbox' has no effect with http transport"), "{lines}");
}

/// RPT-315
#[test]
fn rpt_315_form_of_vs_code_is_obeyed_as_far_as_possible() {
    for (members, want, warning) in [
        (r#", "sandboxEnabled": true"#, "project, has no network", ""),
        (r#", "sandboxEnabled": false"#, "off", ""),
        (
            r#", "sandboxEnabled": true, "sandbox": {"filesystem": {"allowWrite": ["${workspaceFolder}"],
                "denyRead": ["${userHome}/.ssh"], "denyWrite": ["/x"]}}"#,
            "project, may write ${workspaceFolder}, may not read ${userHome}/.ssh, may not write /x, has no network",
            "",
        ),
        (
            r#", "sandboxEnabled": true, "sandbox": {"network": {"allowedDomains": ["api.example.com"]}}"#,
            "project, may connect to port 53 80 443",
            "'allowedDomains' opens the ports",
        ),
        (
            r#", "sandboxEnabled": true, "sandbox": {"network": {"allowedDomains": ["*"],
                "deniedDomains": ["a.example"]}}"#,
            "network",
            "'deniedDomains' is not obeyed",
        ),
        (
            r#", "sandbox": {"filesystem": {"allowWrite": ["/x"]}}"#,
            "off",
            "'sandbox' has no effect without `sandboxEnabled`",
        ),
    ] {
        let (found, lines) = read_sandbox(Profile::McpJson, &mcp_json(members));
        assert_eq!(found.as_deref(), Some(want), "{members}");
        assert!(lines.contains(warning) && lines.is_empty() == warning.is_empty(), "{members}: {lines}");
    }
}

#[test]
fn paths_of_a_sandbox_start_at_the_workspace_or_at_home() {
    let members = r#", "sandbox": {"read": ["~", "~/data", "sub", "/abs", "${workspaceFolder}/x", "${A}/y", "~other"]}"#;
    let reading = read_text(Profile::McpJson, &mcp_json(members));
    let variable = |name: &str| match name {
        "HOME" => Some("/home/u".to_owned()),
        "A" => Some("/va".to_owned()),
        _ => None,
    };
    let context = ResolveContext::new(&variable, Path::new("/w"), &|_| Err("none".to_owned()));
    let Endpoint::Stdio(endpoint) = resolve(&reading.servers[0], &context).unwrap().endpoint else {
        panic!()
    };
    let read = endpoint.sandbox.unwrap().read;
    assert_eq!(read, ["/home/u", "/home/u/data", "/w/sub", "/abs", "/w/x", "/va/y", "/w/~other"]);
    let off = read_text(Profile::McpJson, &mcp_json(", \"sandbox\": \"off\""));
    let Endpoint::Stdio(endpoint) = resolve(&off.servers[0], &context).unwrap().endpoint else { panic!() };
    assert_eq!(endpoint.sandbox, None);
}

#[test]
fn sandbox_is_written_where_the_dialect_has_the_key() {
    for value in [r#""project""#, r#"{"preset": "project", "write": ["/w"], "ports": [443]}"#] {
        // HoloDeck allows only some commands.
        let text = mcp_json(&format!(", \"sandbox\": {value}")).replace("\"x\"", "\"npx\"");
        let reading = read_text(Profile::McpJson, &text);
        for (profile, is_kept) in [
            (Profile::McpJson, true),
            (Profile::Dominds, true),
            (Profile::HoloDeck, false),
            (Profile::AcpV1, false),
        ] {
            let written = write_servers(&reading.servers, profile, &|name| Some(format!("/bin/{name}")));
            let is_reported = written.unsupported.iter().any(|it| it.field == "sandbox");
            assert_eq!(is_reported, !is_kept, "{profile:?}: {:?}", written.unsupported);
            if is_kept {
                let again = read_sandbox(profile, &written.text);
                assert_eq!(again.0, read_sandbox(Profile::McpJson, &text).0, "{}", written.text);
            }
        }
    }
}
