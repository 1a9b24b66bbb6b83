//! `$NAME` in the files of Gemini CLI.

use std::path::Path;

use mcp_host_model::Endpoint;

use crate::mcp_json::endpoint;

#[test]
fn dia_06_gemini_has_variables_of_a_shell_in_values_only() {
    let text =
        r#"{"mcpServers": {"a": {"httpUrl": "https://x-$N.example/mcp", "headers": {"A": "Bearer $T"}}}}"#;
    let Ok(Endpoint::Http(it)) = endpoint("x.json", "/w", text, &[("N", "1"), ("T", "t")]) else { panic!() };
    assert_eq!((it.url.as_str(), it.headers[0].1.expose()), ("https://x-1.example/mcp", "Bearer t"));
    // RPT-091
    let Ok(Endpoint::Http(it)) = endpoint("x.json", "/w", text, &[("N", "1")]) else { panic!() };
    assert_eq!(it.headers[0].1.expose(), "Bearer $T");
    let fields = r#""command": "$sh", "args": ["pa$word", "$E"], "env": {"P": "pa$word"}, "cwd": "/$x""#;
    let env = &format!("{{\"mcpServers\": {{\"a\": {{{fields}}}}}}}");
    let Ok(Endpoint::Stdio(it)) = endpoint(".gemini/settings.json", "/w", env, &[("E", "")]) else {
        panic!()
    };
    let args: Vec<_> = it.args.iter().map(|it| it.expose()).collect();
    assert_eq!(
        (it.command.as_str(), &args[..], it.env[0].1.expose()),
        ("$sh", &["pa$word", ""][..], "pa$word")
    );
    assert_eq!(it.cwd.as_deref(), Some(Path::new("/$x")));
    let args = r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "echo $HOME ${NO}"]}}}"#;
    assert_eq!(
        endpoint(".gemini/settings.json", "/w", args, &[]).unwrap_err(),
        "1:55 /mcpServers/a/args/1 ConfigError: Environment variable 'NO' not found"
    );
    let args = &args.replace(" ${NO}", "");
    let Ok(Endpoint::Stdio(it)) = endpoint(".gemini/settings.json", "/w", args, &[]) else { panic!() };
    assert_eq!(it.args[1].expose(), "echo $HOME");
}
