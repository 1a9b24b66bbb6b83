//! The stdio transport with real processes: shell scripts that behave well and badly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_host_model::{Endpoint, EnvInheritance, Limits, RawJson, Secret, StdioEndpoint};
use mcp_host_transport::{
    CallError, CallOptions, ConnectError, Dial, DialOptions, DisconnectReason, Eras, ProcessExit,
    ReceiptDirectory, Session, SessionOptions, SessionState, StartError, dialer,
};
use mcp_testkit::process::wait_until_dead;
use mcp_testkit::servers::{SHELL_SERVER, shell_script, shell_server};
#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, FdFlag};

fn dial(endpoint: StdioEndpoint, limits: Limits) -> Arc<dyn Dial> {
    dialer(&Endpoint::Stdio(endpoint), &{
        let mut options = DialOptions::default();
        options.limits = limits;
        options
    })
    .unwrap()
}

pub(crate) async fn connect(endpoint: StdioEndpoint) -> Result<Session, ConnectError> {
    let mut limits = Limits::default();
    limits.startup = Duration::from_secs(20);
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    Session::connect(dial(endpoint, limits), options).await
}

pub(crate) async fn call(session: &Session, deadline: u64) -> Result<String, CallError> {
    let options = CallOptions::with_timeout(Duration::from_millis(deadline));
    session.call_tool("t", &RawJson::empty_object(), options).await.map(|reply| reply.value.text())
}

/// Waits until the process has ended whose id the server has written.
#[track_caller]
fn assert_dies(pid: &str) {
    wait_until_dead(&[pid.parse().unwrap()]);
}

#[tokio::test]
async fn hd_100_hd_101_hd_102_process_is_called() {
    let session = connect(shell_server(r#"text "$id" "hello""#)).await.unwrap();
    assert_eq!(session.server().name, "sh");
    assert_eq!(session.version().as_str(), "2025-06-18");
    assert_eq!(session.list_tools().await.unwrap().items.len(), 1);
    assert!(session.list_prompts().await.unwrap().items.is_empty(), "a server without prompts is not asked");
    assert_eq!(call(&session, 10_000).await.unwrap(), "hello");
    let state = session.state();
    assert_eq!(*state.borrow(), SessionState::Connected);
    let ended = session.close(Duration::from_secs(2)).await;
    assert_eq!(
        (&ended.reason, ended.evidence.exit),
        (&DisconnectReason::Stopped, Some(ProcessExit::Status(0)))
    );
    assert_eq!(*state.borrow(), SessionState::Disconnected);
    assert!(matches!(call(&session, 1000).await, Err(CallError::NotSent(_))));
}

// RPT-252
#[cfg(target_os = "linux")]
#[tokio::test]
async fn inherited_descriptors_do_not_reach_the_server() {
    let inherited = std::fs::File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(&inherited, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    // The shell opens the folder itself while it lists it.
    let session =
        connect(shell_server(r#"text "$id" "$(readlink /proc/$$/fd/* | grep -c /dev/null)""#)).await;
    let session = session.unwrap();
    assert_eq!(call(&session, 10_000).await.unwrap(), "0");
    session.close(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn hd_103_sk_22_environment_is_as_configured() {
    let show = r#"text "$id" "$GIVEN,${CARGO_MANIFEST_DIR-unset},${PATH:+path}""#;
    for (inherit, want) in [
        (EnvInheritance::None, "yes,unset,"),
        (EnvInheritance::Safe, "yes,unset,path"),
        (EnvInheritance::All, &*format!("yes,{},path", env!("CARGO_MANIFEST_DIR"))),
    ] {
        let mut endpoint = shell_server(show);
        endpoint.command = "/bin/sh".to_owned();
        endpoint.inherit = inherit;
        endpoint.env.push(("GIVEN".to_owned(), Secret::new("no")));
        endpoint.env.push(("GIVEN".to_owned(), Secret::new("yes")));
        let session = connect(endpoint).await.unwrap();
        let got = call(&session, 10_000).await.unwrap();
        // Some shells set a default PATH if there is none.
        assert_eq!(got.trim_end_matches("path"), want.trim_end_matches("path"), "{inherit:?}");
        assert!(inherit == EnvInheritance::None || got.ends_with("path"));
    }
}

#[tokio::test]
async fn hd_116_missing_program_or_folder_is_reported() {
    let error = connect(StdioEndpoint::new("no-such-program-anywhere")).await.err().unwrap();
    let ConnectError::Disconnected(ended) = &error else { panic!("{error}") };
    assert_eq!(ended.reason, DisconnectReason::NotStarted(StartError::CommandNotFound));
    assert!(error.help().unwrap().contains("PATH"));

    let mut endpoint = shell_script("exit 0");
    endpoint.cwd = Some("/no/such/directory".into());
    let error = connect(endpoint).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the server could not be started: its working directory /no/such/directory does not exist"
    );
}

#[tokio::test]
async fn hd_135_sk_12_early_exit_is_reported_with_evidence() {
    let mut endpoint = shell_script("echo starting up; echo \"bad key $KEY\" >&2; exit 3");
    endpoint.env.push(("KEY".to_owned(), Secret::new("sk-very-secret")));
    let error = connect(endpoint).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the server could not be started: its process ended with exit status 3; its standard error ended with: \
         bad key ***; 11 bytes of its standard output were not MCP (they begin with \"starting up\")"
    );
}

#[tokio::test]
async fn hd_135_silent_server_fails_at_the_startup_timeout() {
    let mut limits = Limits::default();
    limits.startup = Duration::from_millis(300);
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    let endpoint = shell_script("echo listening on 3000 >&2; sleep 1000");
    let error = Session::connect(dial(endpoint, limits), options).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the server did not finish its handshake within 0.3 s; its standard error ended with: listening on 3000"
    );
}

#[tokio::test]
async fn server_that_exits_on_the_probe_is_restarted_without_it() {
    let dies = SHELL_SERVER.replace("case \"$line\" in", "case \"$line\" in *server/discover*) exit 9 ;;");
    let mut endpoint = shell_script(&dies);
    endpoint.env.push(("TOOL".to_owned(), Secret::new("text $id $$")));
    let session = connect(endpoint).await.unwrap();
    assert_ne!(call(&session, 10_000).await.unwrap(), "");
}

#[tokio::test]
async fn hd_117_crash_ends_the_call_with_evidence() {
    let session = connect(shell_server("echo out of memory >&2; kill -9 $$")).await.unwrap();
    let error = call(&session, 10_000).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server is no longer available: its process ended with signal 9 (SIGKILL); its standard error ended with: \
         out of memory"
    );
    assert!(matches!(&*session.state().borrow(), SessionState::Error(text) if text.contains("SIGKILL")));
}

#[tokio::test(flavor = "multi_thread")]
async fn grandchild_that_holds_the_pipe_does_not_delay_the_call() {
    let session = connect(shell_server("sleep 1000 & echo $! >&2; exit 4")).await.unwrap();
    let error = call(&session, 10_000).await.unwrap_err();
    let CallError::Closed(ended) = error else { panic!("{error}") };
    assert_eq!(ended.evidence.exit, Some(ProcessExit::Status(4)));
    assert_dies(&ended.evidence.stderr[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_that_ignores_signals_is_killed_after_the_grace_period() {
    let deaf = format!("trap '' TERM; sleep 1000 & echo $$ $! >&2; {SHELL_SERVER} while :; do sleep 1; done");
    let session = connect(shell_script(&deaf)).await.unwrap();
    let begun = Instant::now();
    let ended = session.close(Duration::from_secs(1)).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(ended.evidence.exit.unwrap().to_string(), "signal 9 (SIGKILL)");
    for pid in ended.evidence.stderr[0].split(' ') {
        assert_dies(pid);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_session_or_connect_leaves_no_process() {
    let session = connect(shell_server(r#"sleep 1000 & text "$id" "$$ $!""#)).await.unwrap();
    let pids = call(&session, 10_000).await.unwrap();
    drop(session);
    for pid in pids.split(' ') {
        assert_dies(pid);
    }

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let endpoint =
        shell_script(&format!("sleep 1000 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", file.display()));
    let making = tokio::spawn(connect(endpoint));
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    making.abort();
    for pid in std::fs::read_to_string(file).unwrap().split_whitespace() {
        assert_dies(pid);
    }
}

#[test]
fn dropped_runtime_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pids = runtime.block_on(async {
        let session = connect(shell_server(r#"sleep 1000 & text "$id" "$$ $!""#)).await.unwrap();
        let pids = call(&session, 10_000).await.unwrap();
        std::mem::forget(session);
        pids
    });
    drop(runtime);
    for pid in pids.split(' ') {
        assert_dies(pid);
    }
}

#[tokio::test]
async fn dm_073_noise_is_skipped_and_oversized_response_ends_its_call() {
    let tool = r#"echo 'npm notice'; echo '{"level":30}'; echo 'caf\351'; text "$id" ok"#;
    let session = connect(shell_server(tool)).await.unwrap();
    assert_eq!(call(&session, 10_000).await.unwrap(), "ok");
    assert!(session.counters().noise_bytes >= 20);

    let mut limits = Limits::default();
    limits.message_bytes = 10_000;
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    let tool =
        r#"printf '{"id":%s,"result":{"content":[' "$id"; head -c 30000 /dev/zero | tr '\0' ' '; echo ']}}'"#;
    let session = Session::connect(dial(shell_server(tool), limits), options).await.unwrap();
    let error = call(&session, 10_000).await.unwrap_err();
    assert!(matches!(error, CallError::ResponseTooLarge(10_000)), "{error}");
    assert!(session.list_tools().await.is_ok(), "the connection lives on");

    // The key order of the TypeScript SDK: the id is at the end.
    let mut limits = Limits::default();
    limits.message_bytes = 10_000;
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    let tool = r#"printf '{"result":{"content":['; head -c 30000 /dev/zero | tr '\0' ' '; echo "]},\"jsonrpc\":\"2.0\",\"id\":$id}""#;
    let session = Session::connect(dial(shell_server(tool), limits), options).await.unwrap();
    let error = call(&session, 10_000).await.unwrap_err();
    assert!(matches!(error, CallError::ResponseTooLarge(10_000)), "{error}");
}

#[tokio::test]
async fn server_that_closes_its_input_is_disconnected() {
    let session = connect(shell_server("exec <&-; sleep 1000")).await.unwrap();
    let _ = call(&session, 100).await;
    // The next message cannot be written, because no process reads.
    let error = loop {
        match call(&session, 300).await {
            Err(CallError::TimedOut(_)) => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(error.to_string().contains("it closed its standard input and keeps running"), "{error}");
}

#[tokio::test]
async fn runtime_without_io_does_not_affect_servers_of_others() {
    let session = connect(shell_server(r#"text "$id" hello"#)).await.unwrap();
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let error = runtime.block_on(connect(shell_script("exit 0"))).err().unwrap();
        assert!(error.to_string().contains("this runtime cannot start processes"), "{error}");
    })
    .join()
    .unwrap();
    assert_eq!(call(&session, 10_000).await.unwrap(), "hello");
    assert!(connect(shell_server("")).await.is_ok());
}

#[tokio::test]
async fn hd_sc5_argument_repeated_by_a_server_is_redacted() {
    let mut endpoint = shell_script("echo \"bad key $0\" >&2; exit 3");
    endpoint.args.push(Secret::new("sk-very-secret"));
    let error = connect(endpoint).await.err().unwrap();
    assert!(error.to_string().ends_with("its standard error ended with: bad key ***"), "{error}");
}

#[tokio::test]
async fn call_to_a_server_that_does_not_read_times_out() {
    let session = connect(shell_server("sleep 1000")).await.unwrap();
    let arguments = RawJson::from_value(&serde_json::json!({ "x": "y".repeat(1 << 20) })).unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(200));
    assert!(matches!(session.call_tool("t", &arguments, options.clone()).await, Err(CallError::TimedOut(_))));
    assert!(matches!(session.call_tool("t", &arguments, options).await, Err(CallError::TimedOut(_))));
    let begun = Instant::now();
    session.close(Duration::from_millis(200)).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn line_breaks_in_arguments_do_not_split_the_message() {
    let session = connect(shell_server(r#"text "$id" ok"#)).await.unwrap();
    let arguments = RawJson::parse("{\r\n \"a\":\n 1\n}".into()).unwrap();
    let answer = session.call_tool("t", &arguments, CallOptions::default()).await.unwrap();
    assert_eq!(answer.value.text(), "ok");
}

#[tokio::test]
async fn hd_106_configured_encoding_is_used_in_both_directions() {
    let mut endpoint = shell_server(r#"case "$line" in *u00e9*) text "$id" "$(printf 'caf\351')" ;; esac"#);
    endpoint.encoding = "latin1".to_owned();
    let session = connect(endpoint).await.unwrap();
    let arguments = RawJson::parse("{\"x\":\"caf\u{e9}\"}".into()).unwrap();
    let answer = session.call_tool("t", &arguments, CallOptions::default()).await.unwrap();
    assert_eq!(answer.value.text(), "caf\u{e9}");
    let mut utf16 = shell_script("");
    utf16.encoding = "utf-16".to_owned();
    assert!(matches!(
        dialer(&Endpoint::Stdio(utf16), &DialOptions::default()),
        Err(ConnectError::Invalid(_))
    ));
}

#[tokio::test]
async fn hd_131_concurrent_calls_get_their_own_responses() {
    let session = Arc::new(connect(shell_server(r#"text "$id" "${line##*\"n\":}""#)).await.unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let session = Arc::clone(&session);
        tasks.spawn(async move {
            let arguments = RawJson::from_value(&serde_json::json!({ "n": n })).unwrap();
            let answer = session.call_tool("t", &arguments, CallOptions::default()).await.unwrap();
            assert_eq!(answer.value.text(), format!("{n}}}}}}}"));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn receipt_exists_while_its_process_runs() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = ReceiptDirectory::new(folder.path());
    let mut options = DialOptions::default();
    options.receipts = Some(receipts.clone());
    assert_eq!(options.process.id(), None);
    let dial = dialer(&Endpoint::Stdio(shell_server("")), &options).unwrap();
    let mut session_options = SessionOptions::default();
    session_options.eras = Eras::Legacy;
    let session = Session::connect(dial, session_options).await.unwrap();
    let count = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(count(), 1);
    assert_eq!(receipts.reap().unwrap(), [], "its owner lives");
    let ended = session.close(Duration::from_secs(2)).await;
    assert!(options.process.id().is_some());
    assert_eq!(options.process.id(), ended.evidence.pid);
    assert_eq!(count(), 0);
}

#[tokio::test]
async fn hd_106_response_in_another_encoding_ends_its_call() {
    let session = connect(shell_server(r#"text "$id" "$(printf 'caf\351')""#)).await.unwrap();
    let error = call(&session, 10_000).await.unwrap_err();
    assert!(matches!(error, CallError::NotUtf8 { .. }), "{error}");
    assert!(session.list_tools().await.is_ok(), "the connection lives on");
}

#[tokio::test]
async fn hd_135_utf_16_output_is_noise_until_the_timeout() {
    let mut limits = Limits::default();
    limits.startup = Duration::from_millis(500);
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    options.eras = Eras::Legacy;
    let says = r#"read -r line; printf '{\0"\0i\0d\0"\0:\0001\0}\0\n\0'; sleep 1000"#;
    let error = Session::connect(dial(shell_script(says), limits), options).await.err().unwrap();
    let ConnectError::TimedOut { disconnect: ended, .. } = &error else { panic!("{error}") };
    assert!(ended.evidence.noise_bytes >= 14, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hd_117_close_leaves_no_grandchild() {
    let session = connect(shell_server(r#"sleep 1000 & text "$id" "$!""#)).await.unwrap();
    let pid = call(&session, 10_000).await.unwrap();
    let ended = session.close(Duration::from_secs(2)).await;
    assert_eq!(ended.evidence.exit, Some(ProcessExit::Status(0)), "the leader ends by itself");
    assert_dies(&pid);
}

/// A server that floods its output with a line, each written as a whole.
fn flooding(line: &str, tool: &str) -> StdioEndpoint {
    let endpoint = shell_script(&format!("(while echo '{line}'; do :; done) &\n{SHELL_SERVER}"));
    let mut res = endpoint;
    res.env = vec![("TOOL".to_owned(), Secret::new(tool))];
    res
}

#[tokio::test]
async fn flooding_server_does_not_delay_deadlines_and_close() {
    for line in [r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "the sky is falling"] {
        let tool = r#"case "$line" in *hang*) ;; *) text "$id" "hello" ;; esac"#;
        let session = connect(flooding(line, tool)).await.unwrap();
        for _ in 0..5 {
            assert_eq!(call(&session, 60_000).await.unwrap(), "hello");
        }
        let hang = RawJson::from_value(&serde_json::json!({ "x": "hang" })).unwrap();
        let options = CallOptions::with_timeout(Duration::from_millis(100));
        let error = session.call_tool("t", &hang, options).await.err().unwrap();
        assert!(matches!(error, CallError::TimedOut(_)), "{error}");
        assert_eq!(call(&session, 60_000).await.unwrap(), "hello");
        let begun = Instant::now();
        let ended = session.close(Duration::from_secs(60)).await;
        assert_eq!(ended.reason, DisconnectReason::Stopped);
        assert_eq!(ended.evidence.exit, Some(ProcessExit::Status(0)), "it was not cut off");
        assert!(begun.elapsed() < Duration::from_secs(50));
    }
}

#[tokio::test]
async fn exit_of_a_flooding_server_is_noticed() {
    let line = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let session = connect(flooding(line, "kill -9 $$")).await.unwrap();
    let error = call(&session, 60_000).await.unwrap_err();
    assert!(error.to_string().contains("SIGKILL"), "{error}");
}

/// A server that floods standard error with numbered lines.
fn flooding_stderr(tool: &str) -> StdioEndpoint {
    let flood = "(i=0; while echo \"line $i of many\" >&2; do i=$((i+1)); done) &";
    let endpoint = shell_script(&format!("{flood}\n{SHELL_SERVER}"));
    let mut res = endpoint;
    res.env = vec![("TOOL".to_owned(), Secret::new(tool))];
    res
}

#[tokio::test]
async fn flood_of_standard_error_does_not_delay_calls_and_close() {
    let session = connect(flooding_stderr(r#"text "$id" "hello""#)).await.unwrap();
    for _ in 0..5 {
        assert_eq!(call(&session, 60_000).await.unwrap(), "hello");
    }
    let begun = Instant::now();
    let ended = session.close(Duration::from_secs(60)).await;
    assert_eq!(
        (&ended.reason, ended.evidence.exit),
        (&DisconnectReason::Stopped, Some(ProcessExit::Status(0)))
    );
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[tokio::test]
async fn last_lines_of_flooded_standard_error_are_kept() {
    // When the server writes its last lines, the flood fills the pipe, and enough was read to cause a pause of the
    // reader.
    let tool = r#"i=0; while [ $i -lt 20000 ]; do echo "line $i of many" >&2; i=$((i+1)); done; kill -9 $$"#;
    let session = connect(shell_server(tool)).await.unwrap();
    let Err(CallError::Closed(ended)) = call(&session, 60_000).await else { panic!("it died") };
    assert_eq!(ended.evidence.exit.unwrap().to_string(), "signal 9 (SIGKILL)");
    let want: Vec<String> = (19_980..20_000).map(|it| format!("line {it} of many")).collect();
    assert_eq!(ended.evidence.stderr, want);
}
