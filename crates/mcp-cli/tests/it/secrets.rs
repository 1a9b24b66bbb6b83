//! No command prints a secret of the environment, in any format, on any stream.

use crate::support::{DEMO, HttpDemo, Workspace};

const SECRET: &str = "s3cr3t-of-the-environment-0123456789";

#[test]
fn no_secret_is_ever_written() {
    let workspace = Workspace::empty();
    let web = HttpDemo::start(&workspace);
    // A working server, one that prints its secret and fails, one over HTTP, and one whose program is missing.
    workspace.script("chatty", "echo \"token is $TOKEN, and $1\" >&2; echo \"$TOKEN\"; exit 1");
    workspace.write(
        ".minds/mcp.yaml",
        &format!(
            "{DEMO}    env: {{ TOKEN: {{ env: PLANTED }} }}
  chatty:
    transport: stdio
    command: chatty
    env: {{ TOKEN: {{ env: PLANTED }} }}
  web:
    transport: streamable_http
    url: {}
    headers: {{ Authorization: {{ env: PLANTED }} }}
  gone:
    transport: streamable_http
    url: http://127.0.0.1:9/mcp
    headers: {{ Authorization: {{ env: PLANTED }} }}
",
            web.url
        ),
    );
    workspace.script("npx", "echo \"$@ $TOKEN $PLANTED\" >&2; exit 1");
    workspace.write(
        "agent.yaml",
        "name: a\ntools:\n  - name: one\n    type: mcp\n    description: d\n    server: s\n    command: npx\n    \
         args: ['--token=${PLANTED}']\n    env: { TOKEN: '${PLANTED}' }\n",
    );
    workspace.write(
        "mcp.json",
        &format!(
            r#"{{"mcpServers": {{
  "demo": {{"command": "mcp-host", "args": ["demo-server"], "env": {{"TOKEN": "${{PLANTED}}"}}}},
  "chatty": {{"command": "chatty", "args": ["--token=${{env:PLANTED}}"], "env": {{"TOKEN": "${{X:-{SECRET}}}"}}}},
  "gone": {{"url": "http://127.0.0.1:9/${{PLANTED}}?k=${{PLANTED}}", "headers": {{"Authorization": "Bearer {SECRET}"}}}},
  "wrong": {{"command": "npx -y {SECRET}", "args": [5, "{SECRET}"], "oauth": {{"clientSecret": "{SECRET}"}}}}
}}}}"#
        ),
    );
    workspace.write(
        "request.json",
        &format!(
            r#"[{{"name": "chatty", "command": "{}/bin/chatty", "args": ["{SECRET}"], "env": [{{"name": "TOKEN", "value": "{SECRET}"}}]}}]"#,
            workspace.path().display()
        ),
    );
    let mut heard = 0;
    for file in [".minds/mcp.yaml", "agent.yaml", "mcp.json", "request.json"] {
        for arguments in [
            &["check", file][..],
            &["tools", file],
            &["call", file, "echo", "{}"],
            &["call", file, "nothing"],
        ] {
            for extra in [&[][..], &["--format", "json"], &["--verbose"]] {
                let arguments = [arguments, extra].concat();
                let output = workspace.command(&arguments).env("PLANTED", SECRET).output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout).into_owned()
                    + &String::from_utf8_lossy(&output.stderr);
                assert!(!text.contains(SECRET), "{arguments:?}: {text}");
                heard += usize::from(text.contains("token is "));
            }
        }
    }
    // The output of the server `chatty` is printed; only the secret in it is hidden.
    assert!(heard > 0);
}
