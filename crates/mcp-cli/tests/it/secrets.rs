//! Secrets of the environment stay there: no command writes one, in no format, on no stream, however it ends.

use crate::support::{DEMO, HttpDemo, Place};

const SECRET: &str = "s3cr3t-of-the-environment-0123456789";

#[test]
fn no_secret_is_ever_written() {
    let place = Place::empty();
    let web = HttpDemo::start(&place);
    // One that works, one that prints what it was given and fails, one behind HTTP, one that is not there.
    place.script("chatty", "echo \"token is $TOKEN, and $1\" >&2; echo \"$TOKEN\"; exit 1");
    place.write(
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
    place.script("npx", "echo \"$@ $TOKEN $PLANTED\" >&2; exit 1");
    place.write(
        "agent.yaml",
        "name: a\ntools:\n  - name: one\n    type: mcp\n    description: d\n    server: s\n    command: npx\n    \
         args: ['--token=${PLANTED}']\n    env: { TOKEN: '${PLANTED}' }\n",
    );
    place.write(
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
    place.write(
        "request.json",
        &format!(
            r#"[{{"name": "chatty", "command": "{}/bin/chatty", "args": ["{SECRET}"], "env": [{{"name": "TOKEN", "value": "{SECRET}"}}]}}]"#,
            place.path().display()
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
                let output = place.command(&arguments).env("PLANTED", SECRET).output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout).into_owned()
                    + &String::from_utf8_lossy(&output.stderr);
                assert!(!text.contains(SECRET), "{arguments:?}: {text}");
                heard += usize::from(text.contains("token is "));
            }
        }
    }
    // The chatty server's words do come through: it is the secret that is taken out of them.
    assert!(heard > 0);
}
