//! Tests of the shown and hidden parts of command lines.

use super::*;

/// Compares the shown arguments of a command line; hidden bytes are `*`.
#[track_caller]
fn check(line: &str, want: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let args: Vec<Option<&str>> = words[1..].iter().map(|it| Some(*it)).collect();
    let shown = visible_arguments(Some(words[0]), &args);
    let masked = |(arg, ranges): (&&str, &Vec<Range<usize>>)| -> String {
        let visible = |at: usize| ranges.iter().any(|it| it.contains(&at));
        arg.char_indices().map(|(at, it)| if visible(at) { it } else { '*' }).collect()
    };
    let res: Vec<String> = words[1..].iter().zip(&shown).map(masked).collect();
    assert_eq!(res.join(" "), want, "{line}");
}

#[track_caller]
fn check_shown(line: &str) {
    check(line, line.split_once(' ').unwrap().1);
}

#[test]
fn safe_values_are_shown() {
    check_shown("npx -y @modelcontextprotocol/server-everything");
    check_shown("npx -y @modelcontextprotocol/server-everything@2026.7.4 --port 8080 --transport http");
    check_shown("/usr/bin/npx firecrawl-mcp@latest");
    check_shown("npx.cmd -y @playwright/mcp --headless --browser chrome");
    check_shown("uvx mcp-server-git==1.0.2 --repository /home/me/src/project");
    check_shown("uvx --from mcp-server-git --python 3.11 mcp-server-git");
    check_shown("npx -y @modelcontextprotocol/server-filesystem /home/me/files ~/notes ./here C:\\tools");
    check_shown("docker run -i --rm -e LOG_LEVEL mcp/time:latest");
    check_shown("docker run -i --rm ghcr.io/github/github-mcp-server stdio");
    check_shown("docker run -v /home/me:/data -i mcp/filesystem /data");
    check_shown("python -m mcp_server_fetch");
    check_shown("node build/index.js --log-level debug --stdio");
    check_shown("cmd /c npx -y @scope/name");
    check_shown("uv run --directory /srv/app server.py");
    check_shown("npx mcp-remote https://mcp.example.com:8080/v1/sse --transport=http-only");
    // RPT-212
    check_shown("uvx mcp-server-time --local-timezone Mars/Olympus --language en");
    check_shown("npx pkg --host 127.0.0.1 --port=9000 --config ./config.json");
}

#[test]
fn possible_secrets_are_hidden() {
    check("npx -y pkg --token hunter", "-y pkg --token ******");
    check("npx -y pkg --token=hunter", "-y pkg --token=******");
    check("npx -y pkg --api-key /srv/files", "-y pkg --api-key **********");
    check("npx -y pkg --apiKey -abc", "-y pkg --apiKey ****");
    check("npx -y pkg hunter", "-y pkg ******");
    check("npx -y sk-live-abcdef", "-y **************");
    check("npx -y pkg --unknown hunter /srv", "-y pkg --unknown ****** /srv");
    check("npx --unknown hunter secret", "--unknown ****** ******");
    check("npx pkg -p 12345", "pkg -p *****");
    check("npx pkg -phunter --pin 1234", "pkg ******** --pin ****");
    check("npx pkg --port AbCdEfGhIj0123", "pkg --port **************");
    check("npx pkg --host user:password", "pkg --host *************");
    check("npx pkg --host me@password", "pkg --host ***********");
    check("npx pkg --env API_KEY=hunter", "pkg --env API_KEY=******");
    check("docker run -e API_KEY=hunter mcp/time", "run -e API_KEY=****** mcp/time");
    check("docker run -e LOG_LEVEL=debug mcp/time", "run -e LOG_LEVEL=debug mcp/time");
    check("docker run -e AKIAIOSFODNN7EXAMPLE mcp/time", "run -e ******************** mcp/time");
    check("docker run hunter", "run ******");
    check("server TOKEN=hunter hunter", "TOKEN=****** ******");
    check("psql postgres://me:hunter@db/app", "***************************");
    check("npx mcp-remote https://u:p@x.example/", "mcp-remote **********************");
    check("npx mcp-remote https://x.example/a?key=hunter", "mcp-remote https://x.example/a***********");
    check(
        "npx mcp-remote https://x.example/aB3dE5fG7hJ9kL1m/sse",
        "mcp-remote https://x.example/*****************sse",
    );
    check(
        "npx mcp-remote https://x.example --header Authorization:hunter",
        "mcp-remote https://x.example --header ********************",
    );
    check(
        "npx mcp-remote https://ab12cd34ef56ab12cd34.x.example/sse",
        "mcp-remote ******************************************",
    );
    check("npx pkg --dsn https://x.example/a", "pkg --dsn *******************");
    check("npx pkg eyJhbGciOiJIUzI1NiJ9.e30.abc", "pkg ****************************");
    check("bash -c TOKEN=hunter", "-c ************");
    check("npx pkg 550e8400-e29b-41d4-a716-446655440000", "pkg ************************************");
    check("npx pkg /ab12cd34ef56/x", "pkg ***************");
    check("npx pkg qwrtzpsdfghjklxcvb", "pkg ******************");
    check("npx qwrtzpsdfghjklxcvb", "******************");
    check("npx pkg docker hunter", "pkg docker ******");
    check("x npx", "npx");
}

/// RPT-212
#[test]
fn paths_with_blanks_and_plain_comments_are_shown() {
    for path in ["/home/me/My Files", "C:\\Program Files\\nodejs", "~/Library/Application Support/x"] {
        assert!(is_path(path), "{path}");
    }
    for path in ["/usr/bin/x hunter2", "/usr/bin/x --token Hunter", "/srv/aB3dE5 fG7hJ9"] {
        assert!(!is_path(path), "{path}");
    }
    for text in ["the server of the team", "started by the agent, see below.", "only for tests (slow)"] {
        assert!(is_plain_sentence(text), "{text}");
    }
    for text in [
        "hunter",
        "a hunter",
        "the old token was hunter",
        "my password is hunter",
        "use key hunter for it",
        "see sk-live-abcdef for it",
        "it is x7f3b2c9 and so",
        "ask KEY=hunter of the team",
        "it was qwrtzpsdfghjklxcvb once",
    ] {
        assert!(!is_plain_sentence(text), "{text}");
    }
}

#[test]
fn unreadable_argument_hides_the_following_ones() {
    let shown = visible_arguments(Some("npx"), &[Some("-y"), None, Some("hunter")]);
    assert_eq!(shown, [vec![prefix(2)], vec![], vec![]]);
    assert_eq!(visible_arguments(None, &[Some("hunter"), Some("-y")]), [vec![], vec![prefix(2)]]);
}

#[test]
fn variables_are_shown_by_their_names() {
    for (name, value) in
        [("LOG_LEVEL", "debug"), ("PORT", "8080"), ("NODE_ENV", "production"), ("DATA_DIR", "/srv/data")]
    {
        assert!(is_safe_value(name, value), "{name}");
    }
    for (name, value) in [
        ("TOKEN", "debug"),
        ("API_KEY_PATH", "/srv/key"),
        ("KEY", "8080"),
        ("SSH_AUTH_LEVEL", "debug"),
        ("LEVEL", "a b"),
        ("LEVEL", "x7f3b2c9"),
        ("NAME", "me"),
        ("HOST", "me:hunter@x"),
        ("URL", "https://x.example"),
    ] {
        assert!(!is_safe_value(name, value), "{name}");
    }
}
