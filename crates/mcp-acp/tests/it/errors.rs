//! The error objects of invalid requests, as they are sent.

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, SessionMethod, SessionRequest, SessionRequestError, validate,
};
use serde_json::Value;

use crate::{error_json, raw, request, validate_with_all};

/// The error of an agent that has declared only stdio.
fn refuse_by_stdio_agent(servers: &str) -> Value {
    let result = validate(
        &request(SessionMethod::New, servers),
        &AgentProfile::new(AcpVersion::V1, &Capabilities::STDIO),
    );
    error_json(&result.unwrap_err())
}

#[test]
fn acp_027_acp_028_undeclared_http_is_refused() {
    insta::assert_json_snapshot!(refuse_by_stdio_agent(
        r#"[{"type":"http","name":"api-server","url":"https://api.example/mcp","headers":[]}]"#
    ));
}

#[test]
fn acp_029_undeclared_sse_is_refused() {
    insta::assert_json_snapshot!(refuse_by_stdio_agent(
        r#"[{"type":"sse","name":"event-stream","url":"https://events.example/sse","headers":[]}]"#
    ));
}

#[test]
fn acp_048_first_missing_capability_determines_the_error() {
    insta::assert_json_snapshot!(refuse_by_stdio_agent(
        r#"[{"name":"files","command":"files","args":[],"env":[{"name":"A=B","value":"x"}]},
            {"type":"sse","name":"events","url":"ftp://events.example","headers":[]},
            {"type":"http","name":"board","url":"https://board.example","headers":[]}]"#
    ));
}

#[test]
fn acpx_01_message_names_the_first_error_and_counts_the_others() {
    #[track_caller]
    fn check(servers: &str, expected: &str) {
        assert_eq!(refuse_by_stdio_agent(servers)["message"], expected, "{servers}");
    }
    let one = |entry: &str| format!("[{entry}]");
    check(
        &one(r#"{"name":"files","command":"npx","args":[],"env":[]}"#),
        "Invalid mcpServers: MCP server 'files' command must be an absolute path",
    );
    check(
        &one(r#"{"name":"files","command":"/a","args":[],"env":[{"name":"A=B","value":"x"}]}"#),
        "Invalid mcpServers: MCP server 'files': the name of an environment variable must not be empty or contain \
        `=` or NUL",
    );
    check(
        &one(r#"{"name":"files","command":"/a"}"#),
        "Invalid mcpServers: MCP server 'files': 'args' is required (and 1 more error)",
    );
    check("[7]", "Invalid mcpServers[0]: a server must be an object, not a number");
    check(
        &one(r#"{"name":"files","command":7,"args":[],"env":[]}"#),
        "Invalid mcpServers: MCP server 'files': 'command' must be text, not a number",
    );
    insta::assert_json_snapshot!(refuse_by_stdio_agent(
        r#"[{"name":"","command":"","args":"x","env":[{"name":"","value":1}]},
            {"type":"websocket","name":"w","command":"/w"}, 7]"#
    ));
}

#[test]
fn acpx_11_errors_name_the_capabilities_of_version_2() {
    let servers = r#"[{"name":"files","command":"/files"},
        {"type":"sse","name":"events","url":"https://events.example"},
        {"type":"_crow","name":"crow"}]"#;
    insta::assert_json_snapshot!(error_json(
        &validate_with_all(AcpVersion::V2, &request(SessionMethod::New, servers)).unwrap_err()
    ));
}

#[test]
fn acpx_16_unknown_method_is_refused() {
    insta::assert_json_snapshot!(error_json(
        &validate_with_all(AcpVersion::V2, &request(SessionMethod::Load, "[]")).unwrap_err()
    ));
}

#[test]
fn acpx_16_undeclared_method_is_refused() {
    let method = SessionMethod::Load;
    let capability = method.capability(AcpVersion::V1).unwrap();
    insta::assert_json_snapshot!(error_json(&SessionRequestError::MethodNotDeclared { method, capability }), @r#"
    {
      "code": -32601,
      "message": "session/load not supported: agent did not declare loadSession",
      "data": {
        "method": "session/load",
        "requiredCapability": "loadSession",
        "declared": false
      }
    }
    "#);
    assert_eq!(SessionMethod::New.capability(AcpVersion::V1), None);
}

#[track_caller]
fn check(params: &str, expected: &str) {
    let request = SessionRequest::new(SessionMethod::New, raw(params));
    let result = match validate_with_all(AcpVersion::V1, &request) {
        Ok(it) => format!("{} {:?}", it.cwd, it.additional_directories),
        Err(refusal) => {
            let errors = error_json(&refusal)["data"]["errors"].take();
            let pointers = errors.as_array().unwrap().iter().map(|it| it["pointer"].as_str().unwrap());
            format!("{refusal}: {}", pointers.collect::<Vec<_>>().join(" "))
        }
    };
    assert_eq!(result, expected, "{params}");
}

#[test]
fn acpx_10_session_folders_must_be_absolute() {
    check(r#"{"cwd":"/desk","mcpServers":[]}"#, "/desk []");
    check(r#"{"cwd":"C:\\desk","mcpServers":[]}"#, r"C:\desk []");
    check(r#"{"mcpServers":[]}"#, "'cwd' is required: /params/cwd");
    check(r#"{"cwd":7,"mcpServers":[]}"#, "'cwd' must be an absolute path: /params/cwd");
    check(r#"{"cwd":"desk","mcpServers":[]}"#, "'cwd' must be an absolute path: /params/cwd");
    check(r#"{"cwd":"/a\u0000","mcpServers":[]}"#, "'cwd' must not contain NUL: /params/cwd");
    check(r#"{"cwd":"/a","additionalDirectories":["/b"],"mcpServers":[]}"#, r#"/a ["/b"]"#);
    check(
        r#"{"cwd":"/a","additionalDirectories":["/b","c",7],"mcpServers":[]}"#,
        "Invalid params: 'additionalDirectories' must contain absolute paths (and 1 more error): \
        /params/additionalDirectories/1 /params/additionalDirectories/2",
    );
    check(
        r#"{"cwd":"/a","additionalDirectories":"/b","mcpServers":[]}"#,
        "'additionalDirectories' must be a list: /params/additionalDirectories",
    );
    check(
        r#"{"cwd":"a","mcpServers":[{"name":"a"}]}"#,
        "Invalid params: 'cwd' must be an absolute path (and 3 more errors): /params/cwd /params/mcpServers/0/args \
        /params/mcpServers/0/env /params/mcpServers/0/command",
    );
    check(r#"{"cwd":"/a"}"#, "'mcpServers' is required: /params/mcpServers");
    check(
        r#"{"cwd":"/a","mcpServers":{}}"#,
        "'mcpServers' must be a list, not a mapping: /params/mcpServers",
    );
    check("[]", "'params' must be an object, not a list: /params");
    check("null", "'params' must be an object, not nothing: /params");
}

#[test]
fn acpx_10_later_requests_name_their_session() {
    let check = |method, id: &str, expected: &str| {
        let params = raw(&format!(r#"{{"cwd":"/a",{id}"mcpServers":[]}}"#));
        let result = match validate_with_all(AcpVersion::V1, &SessionRequest::new(method, params)) {
            Ok(_) => "accepted".to_owned(),
            Err(refusal) => {
                format!(
                    "{}: {}",
                    error_json(&refusal)["data"]["errors"][0]["pointer"].as_str().unwrap(),
                    refusal
                )
            }
        };
        assert_eq!(result, expected, "{method:?} {id}");
    };
    check(SessionMethod::New, "", "accepted");
    check(SessionMethod::New, r#""sessionId":7,"#, "accepted");
    for method in [SessionMethod::Load, SessionMethod::Resume, SessionMethod::Fork] {
        check(method, r#""sessionId":"s","#, "accepted");
        check(method, "", "/params/sessionId: 'sessionId' is required");
        check(method, r#""sessionId":" ","#, "/params/sessionId: 'sessionId' must not be blank");
        check(method, r#""sessionId":null,"#, "/params/sessionId: 'sessionId' must be text, not nothing");
    }
}

/// Members that are not read may be any JSON; one that is read and is invalid is reported as invalid.
#[test]
fn unreadable_value_is_not_reported_as_missing() {
    check(r#"{"cwd":"/a","mcpServers":[],"_meta":{"n":1e400}}"#, "/a []");
    check(r#"{"cwd":"/a","mcpServers":[],"n":[-1e400,{"deep":1e999}]}"#, "/a []");
    check(r#"{"cwd":1e400,"mcpServers":[]}"#, "'cwd' must be an absolute path: /params/cwd");
    let server = r#"{"name":"a","command":"/a","args":[],"env":[],"_meta":{"n":1e400}}"#;
    check(&format!(r#"{{"cwd":"/a","mcpServers":[{server}]}}"#), "/a []");
    // An unpaired surrogate is refused in any member, because it could not be passed on.
    let unpaired_surrogate = "invalid JSON: invalid escape sequence: ";
    check(r#"{"cwd":"/a\ud800","mcpServers":[]}"#, unpaired_surrogate);
    check(r#"{"cwd":"/a","mcpServers":[],"\ud800":1}"#, unpaired_surrogate);
    check(r#"{"cwd":"/a","mcpServers":[],"_meta":"\ud800"}"#, unpaired_surrogate);
}

#[test]
fn acpx_10_additional_folders_are_bounded() {
    let with_folders = |count: usize| {
        let folders: Vec<_> = (0..count).map(|it| format!("\"/{it}\"")).collect();
        format!(r#"{{"cwd":"/a","additionalDirectories":[{}],"mcpServers":[]}}"#, folders.join(","))
    };
    let accepted =
        validate_with_all(AcpVersion::V1, &SessionRequest::new(SessionMethod::New, raw(&with_folders(128))))
            .unwrap();
    assert_eq!(accepted.additional_directories.len(), 128);
    check(
        &with_folders(129),
        "'additionalDirectories' has 129 folders; a session may have at most 128: /params/additionalDirectories",
    );
    let long = format!("/{}", "x".repeat(4096));
    check(
        &format!(r#"{{"cwd":"/a","additionalDirectories":["/b","{long}"],"mcpServers":[]}}"#),
        "the path of 'additionalDirectories' has 4097 bytes; a path may have at most 4096: \
        /params/additionalDirectories/1",
    );
    check(
        &format!(r#"{{"cwd":"{long}","mcpServers":[]}}"#),
        "the path of 'cwd' has 4097 bytes; a path may have at most 4096: /params/cwd",
    );
}

/// The list of errors is cut, and the response says how many errors it omits.
#[test]
fn response_size_is_bounded() {
    let servers = vec!["{}"; 500].join(",");
    let error = error_json(
        &validate_with_all(AcpVersion::V1, &request(SessionMethod::New, &format!("[{servers}]")))
            .unwrap_err(),
    );
    let (errors, omitted) = (&error["data"]["errors"], &error["data"]["omittedErrors"]);
    let total = errors.as_array().unwrap().len() as u64 + omitted.as_u64().unwrap();
    assert_eq!(errors.as_array().unwrap().len(), 200);
    let first = "Invalid mcpServers[0]: MCP server: 'args' is required";
    assert_eq!(error["message"], format!("{first} (and {} more errors)", total - 1));
    let many = vec!["{}"; 1001].join(",");
    assert!(validate_with_all(AcpVersion::V1, &request(SessionMethod::New, &format!("[{many}]"))).is_err());
    let long = format!(r#"[{{"name":"{}"}}]"#, "x".repeat(2 << 20));
    assert!(validate_with_all(AcpVersion::V1, &request(SessionMethod::New, &long)).is_err());
}
