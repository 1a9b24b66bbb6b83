//! Threats of docs/security.md that need the whole program: arguments and shells, links in results, name collisions.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_testkit::program::{Run, binary};

fn script(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn run(folder: &Path, arguments: &[&str]) -> mcp_testkit::program::ProgramOutput {
    Run::new(folder, &folder.join("state"), arguments).finish()
}

#[test]
fn arguments_are_passed_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let command = script(folder, "server", "printf '%s\\n' \"$@\" > arguments; exit 1");
    let arguments = [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "> pwned",
        "$HOME ~ *",
        "--",
        "-rf",
        "a  b\t'c' \"d\" \\",
    ];
    let text = serde_json::json!({"mcpServers": {"a": {"command": command, "args": arguments}}}).to_string();
    std::fs::write(folder.join("mcp.json"), text).unwrap();
    assert_eq!(run(folder, &["tools", "mcp.json"]).code, Some(3));
    let arrived = std::fs::read_to_string(folder.join("arguments")).unwrap();
    assert_eq!(arrived.lines().collect::<Vec<_>>(), arguments);
    assert!(!folder.join("pwned").exists());
}

#[test]
fn a_link_in_a_result_is_never_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let followed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&followed);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let server = r#"
answer() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"n","version":"1","websiteUrl":"@","icons":[{"src":"@"}]},"instructions":"@"}' ;;
  *'"tools/list"'*) answer '{"tools":[{"name":"t","description":"see @","icons":[{"src":"@"}],"inputSchema":{"$schema":"@","type":"object","properties":{"a":{"$ref":"@"}}},"outputSchema":{"type":"object","properties":{"a":{"$ref":"@"}}}}]}' ;;
  *'"resources/list"'*) answer '{"resources":[{"uri":"@","name":"n"}]}' ;;
  *'"tools/call"'*) answer '{"content":[{"type":"text","text":"![x](@)"},{"type":"resource_link","uri":"@","name":"n","mimeType":"image/png"},{"type":"resource","resource":{"uri":"@","mimeType":"image/png","blob":"AAAA"}}],"structuredContent":{"a":"@"}}' ;;
  *'"method":"notifications/'*) ;;
  *) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"see @"}}' ;;
  esac
done"#;
    let command = script(folder, "server", &server.replace('@', &url));
    let text = serde_json::json!({"mcpServers": {"a": {"command": command}}}).to_string();
    std::fs::write(folder.join("mcp.json"), text).unwrap();
    let tools = run(folder, &["tools", "mcp.json", "--schema", "a__t"]);
    assert_eq!(tools.code, Some(0), "{tools:#?}");
    for more in [&[][..], &["--format", "json"], &["--save", "files"]] {
        let called = run(folder, &[&["call", "mcp.json", "a__t", "a=b"], more].concat());
        assert!(called.stdout.contains("n") && called.code.is_some(), "{called:#?}");
    }
    for arguments in [&["resources", "mcp.json"][..], &["doctor", "mcp.json"], &["tools", "mcp.json", "-v"]] {
        run(folder, arguments);
    }
    assert_eq!(followed.load(Ordering::SeqCst), 0);
    // A request would have been counted.
    drop(std::net::TcpStream::connect(url.trim_start_matches("http://").trim_end_matches("/x")).unwrap());
    mcp_testkit::wait::block_until(|| followed.load(Ordering::SeqCst) == 1);
}

#[test]
fn two_servers_cannot_have_one_name() {
    let place = tempfile::tempdir().unwrap();
    let demo = binary().display();
    let server = |name: &str| {
        format!(
            "  {name}:\n    truely-stateless: true\n    transport: stdio\n    command: {demo}\n    args: \
             [demo-server]\n    tools: {{ whitelist: [echo] }}\n"
        )
    };
    let text = format!("version: 1\nservers:\n{}{}", server("first"), server("second"));
    std::fs::write(place.path().join("mcp.yaml"), text).unwrap();
    let tools = run(place.path(), &["tools", "mcp.yaml", "--dialect", "dominds", "--format", "json"]).json();
    let shown: Vec<_> =
        tools["tools"].as_array().unwrap().iter().map(|it| (&it["name"], &it["server"])).collect();
    assert_eq!(shown.len(), 1, "{tools:#}");
    assert_eq!((shown[0].0.as_str(), shown[0].1.as_str()), (Some("echo"), Some("first")));
    let problems = tools["problems"].to_string();
    assert!(problems.contains("first") && problems.contains("second"), "{tools:#}");
}
