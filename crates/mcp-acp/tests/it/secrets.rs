//! Values of variables, headers, arguments and URLs are never repeated in an error or a warning.

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, InvalidEntryPolicy, Policy, SessionMethod, validate,
};

use crate::{all_capabilities, request};

const ENTRIES: &[&str] = &[
    r#"{"name":"a","command":"/a","args":["SECRET"],"env":[{"name":"K","value":"SECRET"}]}"#,
    r#"{"name":"a","command":"/a","args":["SECRET\u0000"],"env":[{"name":"K","value":"SECRET\u0000"}]}"#,
    r#"{"name":"a","command":"a","args":"SECRET","env":{"K":"SECRET"}}"#,
    r#"{"name":"a","command":"/a","args":[["SECRET"]],"env":[{"name":"K=SECRET","value":["SECRET"]}]}"#,
    r#"{"name":"a","command":"/a","args":[],"env":["K=SECRET","SECRET"]}"#,
    r#"{"name":"a","command":["SECRET"],"args":[],"env":[]}"#,
    r#"{"type":"http","name":"a","url":"https://u:SECRET@a.example/x?k=SECRET#SECRET","headers":[]}"#,
    r#"{"type":"http","name":"a","url":"ftp://u:SECRET@a.example/?SECRET","headers":[]}"#,
    r#"{"type":"http","name":"a","url":"https://u:SECRET@:99999/?SECRET","headers":[]}"#,
    r#"{"type":"http","name":"a","url":["SECRET"],"headers":[{"name":"A","value":"SECRET\r\nX: SECRET"}]}"#,
    r#"{"type":"http","name":"a","url":"https://a.example","headers":[{"name":"Host","value":"SECRET"}]}"#,
    r#"{"type":"http","name":"a","url":"https://a.example","headers":[{"name":"A B","value":"SECRET"}]}"#,
    r#"{"type":"http","name":"a","url":"https://a.example","headers":{"Authorization":"SECRET"}}"#,
    r#"{"type":"sse","name":"a","url":"https://a.example?SECRET","headers":[],"env":"SECRET","_meta":"SECRET"}"#,
    r#"{"type":"acp","name":"a","serverId":"1","token":"SECRET","_meta":{"k":"SECRET"}}"#,
    r#"{"type":"acp","name":"a","serverId":["SECRET"]}"#,
    r#"{"type":"_pigeon","name":"a","key":"SECRET"}"#,
    r#"{"type":"_pigeon","name":["SECRET"]}"#,
    r#"{"type":["SECRET"],"name":"a","command":"/a"}"#,
    r#""SECRET""#,
];

#[test]
fn no_secret_is_printed() {
    let capabilities = [Capabilities::STDIO, all_capabilities()];
    let strict = Policy::default();
    let mut drop_invalid = strict;
    drop_invalid.invalid_entries = InvalidEntryPolicy::Drop;
    let (mut accepted, mut refused) = (0, 0);
    for entry in ENTRIES {
        let request = request(SessionMethod::New, &format!("[{entry}]"));
        for &version in AcpVersion::ALL {
            for capabilities in &capabilities {
                for policy in [strict, drop_invalid] {
                    let mut agent = AgentProfile::new(version, capabilities);
                    agent.policy = policy;
                    let printed = match validate(&request, &agent) {
                        Ok(it) => {
                            accepted += 1;
                            format!("{it:?} {}", serde_json::to_string(&it.warnings).unwrap())
                        }
                        Err(it) => {
                            refused += 1;
                            format!("{it} {it:?} {}", serde_json::to_string(&it).unwrap())
                        }
                    };
                    assert!(!printed.contains("SECRET"), "{entry}\n{printed}");
                }
            }
        }
        assert!(!format!("{request:?}").contains("SECRET"));
    }
    assert!(accepted > 20 && refused > 20, "{accepted} {refused}");
}
