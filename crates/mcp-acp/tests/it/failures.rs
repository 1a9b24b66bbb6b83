//! The errors of servers that do not start, as they are sent (ACPX-03, ACPX-04).

use std::time::Duration;

use mcp_host_acp::{AcpTransport, ServerStartError, ServerStartErrorKind};
use mcp_host_model::{RpcError, Secret};

fn error_text(transport: AcpTransport, kind: ServerStartErrorKind) -> String {
    let secret = Secret::new("hunter2-and-more");
    let error = RpcError::from(&ServerStartError::new("files", transport, kind, &[&secret]));
    serde_json::to_string(&error).unwrap().replace(",\"", ",\n\"")
}

#[test]
fn acpx_03_acpx_04_failures_have_evidence() {
    let command = || "/opt/files".to_owned();
    let http = |kind| error_text(AcpTransport::Http, kind);
    let stdio = |kind| error_text(AcpTransport::Stdio, kind);
    let all = [
        stdio(ServerStartErrorKind::ExecutableNotFound { command: command() }),
        stdio(ServerStartErrorKind::SpawnFailed {
            command: command(),
            error: "permission denied".to_owned(),
        }),
        stdio(ServerStartErrorKind::Exited {
            command: command(),
            exit_code: Some(3),
            stderr: "no login with \u{1b}hunter2-\u{7}and-more\n".to_owned(),
        }),
        stdio(ServerStartErrorKind::Exited { command: command(), exit_code: None, stderr: String::new() }),
        http(ServerStartErrorKind::ConnectionFailed { error: "refused".to_owned() }),
        http(ServerStartErrorKind::AuthenticationFailed { error: "401".to_owned() }),
        http(ServerStartErrorKind::TimedOut { limit: Duration::from_secs(30), stderr: String::new() }),
        http(ServerStartErrorKind::NoCommonVersion {
            expected: "2025-11-25".to_owned(),
            actual: "1999-01-01".to_owned(),
        }),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn acpx_04_end_of_standard_error_is_kept() {
    let stderr = format!("{}the reason", "é".repeat(9000));
    let kind = ServerStartErrorKind::Exited { command: "/a".to_owned(), exit_code: Some(1), stderr };
    let failure = ServerStartError::new("a", AcpTransport::Stdio, kind, &[]);
    let ServerStartErrorKind::Exited { stderr, .. } = failure.kind() else { panic!() };
    assert!(stderr.ends_with("éthe reason") && stderr.len() <= 4096 && stderr.len() > 4090);
}
