//! Secrets and logins in a real keyring: gnome-keyring on a session bus of its own. What is planted there must be in no
//! file, output, list of processes, or environment of another server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp_testkit::process::{children, is_alive};
use mcp_testkit::program::{ProgramOutput, Run, installed_program};
use mcp_testkit::wait::{block_for, block_until};
use tempfile::TempDir;

use crate::login::{Place, browser, shown};

const STDIO_SECRET: &str = "planted-stdio-4f1c9a70b2";
const HTTP_SECRET: &str = "planted-http-93d07be1c6f5a842";
const CRASH_SECRET: &str = "planted-crash-c0a7715e33";
const INPUT_SECRET: &str = "planted-input-8be2d1f09c";
const PLANTED: [&str; 4] = [STDIO_SECRET, HTTP_SECRET, CRASH_SECRET, INPUT_SECRET];

/// A session bus with an unlocked keyring, in a home of its own. Ends when it is dropped.
struct KeyringSession {
    home: TempDir,
    session: Child,
    address: String,
}

impl KeyringSession {
    /// `None` if a program is missing, which fails in CI.
    fn start() -> Option<KeyringSession> {
        if !installed_program("dbus-run-session") || !installed_program("gnome-keyring-daemon") {
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        // The daemon returns when it is on the bus, so that the bus starts no second one. It ends with the session,
        // which ends with its input.
        let script = "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null; \
                      echo $DBUS_SESSION_BUS_ADDRESS; cat";
        let mut command = Command::new("dbus-run-session");
        command.args(["--", "sh", "-c", script]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut session = command.spawn().unwrap();
        let mut lines = BufReader::new(session.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find(|it| it.starts_with("unix:")).unwrap();
        let res = KeyringSession { home, session, address };
        // The keyring is on the bus, and then unlocked, a moment after its start.
        block_until(|| {
            res.try_set("PROBE", "x").starts_with("`PROBE` is stored in the keyring of the system")
        });
        assert_eq!(res.run(&["secret", "remove", "PROBE"]).code, Some(0));
        Some(res)
    }

    /// Runs the program with the keyring.
    fn with_keyring(&self, run: Run) -> Run {
        run.env("MCP_HOST_KEYRING", "on")
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
    }

    fn command(&self, arguments: &[&str]) -> Run {
        self.with_keyring(Run::new(self.home.path(), &self.home.path().join("state"), arguments))
    }

    fn run(&self, arguments: &[&str]) -> ProgramOutput {
        self.command(arguments).finish()
    }

    /// Stores a secret, and returns what the program prints.
    fn try_set(&self, name: &str, value: &str) -> String {
        let mut child = self.command(&["secret", "set", name]).piped_input().start();
        writeln!(child.stdin.take().unwrap(), "{value}").unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    fn set(&self, name: &str, value: &str) {
        let text = self.try_set(name, value);
        assert!(text.starts_with(&format!("`{name}` is stored in the keyring of the system")), "{text}");
    }

    fn names(&self) -> serde_json::Value {
        self.run(&["secret", "list", "--format", "json"]).json()["names"].clone()
    }
}

impl Drop for KeyringSession {
    fn drop(&mut self) {
        drop(self.session.stdin.take());
        let _ = self.session.wait();
    }
}

/// An HTTP server that requires the secret as its bearer token: a gateway in a folder of its own.
struct GuardedServer {
    _folder: TempDir,
    process: Child,
    url: String,
}

impl GuardedServer {
    fn start() -> GuardedServer {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"mcpServers": {"far": {"command": "mcp-host", "args": ["demo-server"]}}}"#;
        fs::write(folder.path().join("far.json"), text).unwrap();
        fs::write(folder.path().join("tokens"), format!("{HTTP_SECRET}\n")).unwrap();
        let arguments = ["serve", "far.json", "--http", "127.0.0.1:0", "--token-file", "tokens"];
        let mut process = Run::new(folder.path(), &folder.path().join("state"), &arguments).start();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| {
            let start = line.find("http://127.0.0.1:")?;
            let url = line[start..].split([' ', '"', '`', ',']).next()?;
            Some(url.trim_end_matches('/').to_owned())
        });
        std::thread::spawn(move || lines.count());
        GuardedServer { _folder: folder, process, url: url.unwrap() }
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The files below a folder that contain one of the texts.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, texts));
        } else if kind.is_file() {
            let content = fs::read(&path).unwrap();
            let contains = |it: &&&str| content.windows(it.len()).any(|window| window == it.as_bytes());
            found.extend(texts.iter().find(contains).map(|it| format!("{it} in {}", path.display())));
        }
    }
    found
}

/// What `/proc` shows of a process.
fn process_text(pid: u32, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn planted_in(text: &str) -> Option<&'static str> {
    PLANTED.into_iter().find(|it| text.contains(it))
}

/// RPT-307
#[test]
fn planted_secrets_are_in_the_keyring_and_nowhere_else() {
    let Some(keyring) = KeyringSession::start() else { return };
    for (name, value) in [
        ("STDIO_KEY", STDIO_SECRET),
        ("HTTP_KEY", HTTP_SECRET),
        ("CRASH_KEY", CRASH_SECRET),
        ("MCP_INPUT_ANSWER", INPUT_SECRET),
    ] {
        keyring.set(name, value);
    }
    assert_eq!(
        keyring.names(),
        serde_json::json!(["CRASH_KEY", "HTTP_KEY", "MCP_INPUT_ANSWER", "STDIO_KEY"])
    );
    let far = GuardedServer::start();
    let text = format!(
        r#"{{"mcpServers": {{
            "near": {{"command": "mcp-host", "args": ["demo-server"],
                "env": {{"DEMO_KEY": "${{secret:STDIO_KEY}}", "DEMO_INPUT": "${{input:answer}}"}}}},
            "other": {{"command": "mcp-host", "args": ["demo-server"], "env": {{"DEMO_OTHER": "1"}}}},
            "far": {{"type": "http", "url": "{}", "headers": {{"Authorization": "Bearer ${{secret:HTTP_KEY}}"}}}},
            "crash": {{"command": "sh", "args": ["-c", "echo \"$KEY\" >&2; exit 3"],
                "env": {{"KEY": "${{secret:CRASH_KEY}}"}}}}}}}}"#,
        far.url
    );
    fs::write(keyring.home.path().join("servers.json"), text).unwrap();

    // They are used: only the result of a tool has one.
    let call = keyring.run(&["call", "servers.json", "env", "name=DEMO_KEY", "--server", "near"]);
    assert_eq!((call.code, call.stdout.trim()), (Some(0), STDIO_SECRET), "{call:#?}");
    let call = keyring.run(&["call", "servers.json", "env", "name=DEMO_INPUT", "--server", "near"]);
    assert_eq!((call.code, call.stdout.trim()), (Some(0), INPUT_SECRET), "{call:#?}");
    let call =
        keyring.run(&["call", "servers.json", "far__echo", "text=hello", "--server", "far", "--verbose"]);
    assert_eq!(
        (call.code, call.stdout.trim(), planted_in(&call.stderr)),
        (Some(0), "hello", None),
        "{call:#?}"
    );

    for arguments in [
        &["check", "servers.json"][..],
        &["tools", "servers.json", "--verbose"],
        &["tools", "servers.json", "--format", "json"],
        &["doctor", "servers.json"],
        &["doctor", "servers.json", "--format", "json"],
        &["explain", "servers.json", "--server", "near", "--tool", "echo", "--start"],
        &["lock", "servers.json"],
    ] {
        let run = keyring.run(arguments);
        assert!(!run.stdout.is_empty(), "{run:#?}");
        assert_eq!(planted_in(&format!("{run:?}")), None, "{arguments:?}");
    }
    fs::remove_file(keyring.home.path().join("mcp.lock")).unwrap();
    let tools = keyring.run(&["tools", "servers.json", "--format", "json"]).json();
    let ready = |name: &str| {
        tools["servers"].as_array().unwrap().iter().any(|it| it["name"] == name && it["error"].is_null())
    };
    assert!(ready("near") && ready("far") && !ready("crash"), "{tools:#}");

    // While the servers run, and are recorded.
    let arguments = ["shell", "servers.json", "--record", "session.jsonl", "--verbose"];
    let mut shell = keyring.command(&arguments).piped_input().start();
    let mut input = shell.stdin.take().unwrap();
    writeln!(input, "tools").unwrap();
    let host = shell.id();
    let servers = block_for(|| {
        let servers: Vec<u32> = children(host);
        let named = |name: &str| servers.iter().any(|it| process_text(*it, "environ").contains(name));
        (named("DEMO_KEY=") && named("DEMO_OTHER=")).then_some(servers)
    });
    for pid in fs::read_dir("/proc").unwrap().flatten().filter_map(|it| it.file_name().to_str()?.parse().ok())
    {
        assert_eq!(planted_in(&process_text(pid, "cmdline")), None, "arguments of {pid}");
    }
    assert_eq!(planted_in(&process_text(host, "environ")), None, "the host");
    let environment = |name: &str| {
        let mut texts = servers.iter().map(|it| process_text(*it, "environ"));
        texts.find(|it| it.contains(name)).unwrap()
    };
    assert!(environment("DEMO_KEY=").contains(STDIO_SECRET), "its own server has it");
    assert!(
        !environment("DEMO_KEY=").contains(HTTP_SECRET) && !environment("DEMO_KEY=").contains(CRASH_SECRET)
    );
    assert_eq!(planted_in(&environment("DEMO_OTHER=")), None, "another server");
    drop(input);
    let output = shell.wait_with_output().unwrap();
    block_until(|| servers.iter().all(|it| !is_alive(*it)));
    for text in [&output.stdout, &output.stderr] {
        assert_eq!(planted_in(&String::from_utf8_lossy(text)), None);
    }
    assert!(keyring.home.path().join("session.jsonl").exists());

    let found = files_with(keyring.home.path(), &PLANTED);
    assert!(found.is_empty(), "{found:#?}");
    let keyrings = fs::read_dir(keyring.home.path().join(".local/share/keyrings")).unwrap().count();
    assert!(keyrings > 0, "the keyring is below the searched folder");

    for name in ["CRASH_KEY", "HTTP_KEY", "MCP_INPUT_ANSWER", "STDIO_KEY"] {
        assert_eq!(keyring.run(&["secret", "remove", name]).code, Some(0));
    }
    assert_eq!(keyring.names(), serde_json::json!([]));
    let missing = keyring.run(&["tools", "servers.json"]);
    assert!(missing.stderr.contains("`mcp-host secret set STDIO_KEY`"), "{missing:#?}");
}

/// RPT-308
#[tokio::test(flavor = "multi_thread")]
async fn login_is_kept_in_the_keyring_and_moved_there_from_a_file() {
    let Some(keyring) = tokio::task::spawn_blocking(KeyringSession::start).await.unwrap() else { return };
    let place = Place::new().await;
    let run = async |arguments: &[&str]| {
        let command = keyring.with_keyring(place.command(arguments));
        tokio::task::spawn_blocking(move || command.finish()).await.unwrap()
    };
    let child = keyring.with_keyring(place.command(&["login", "guarded", "--no-browser"])).start();
    let (page, child) = tokio::task::spawn_blocking(move || shown(child)).await.unwrap();
    browser().get(&page).send().await.unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("stored in the keyring of the system"), "{text}");
    assert!(place.logins().is_empty(), "no file has the login");
    assert_eq!(run(&["tools"]).await.code, Some(0));
    let tokens = place.authority.state().secrets.clone();
    assert!(!tokens.is_empty());
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let found = files_with(keyring.home.path(), &tokens);
    assert!(found.is_empty(), "{found:#?}");
    let logout = run(&["logout", "guarded", "--format", "json"]).await;
    assert_eq!(logout.json()["forgotten"].as_u64(), Some(1), "{logout:#?}");
    assert_eq!(run(&["tools"]).await.code, Some(3));

    // A login in a file is used, and is moved by its next save.
    place.log_in(&["login", "guarded", "--no-browser"]).await;
    assert_eq!(place.logins().len(), 1);
    assert_eq!((run(&["tools"]).await.code, place.logins().len()), (Some(0), 1));
    place.authority.expire_tokens();
    assert_eq!((run(&["tools"]).await.code, place.logins().len()), (Some(0), 0));
    assert_eq!(run(&["tools"]).await.code, Some(0));
    assert_eq!(place.run(&["tools"]).await.code, Some(3), "without the keyring there is no login");
}
