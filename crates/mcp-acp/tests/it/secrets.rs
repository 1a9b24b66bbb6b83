//! No value of a variable, header, argument or URL is ever repeated, whatever is wrong with it.

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, InvalidEntryPolicy, Policy, SessionMethod, validate,
};

use crate::{all, request};

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
    let capabilities = [Capabilities::STDIO, all()];
    let strict = Policy::default();
    let mut degrade = strict;
    degrade.invalid_entries = InvalidEntryPolicy::Drop;
    let mut answered = [0, 0];
    for entry in ENTRIES {
        let set_up = request(SessionMethod::New, &format!("[{entry}]"));
        for (version, capabilities, policy) in AcpVersion::ALL
            .iter()
            .flat_map(|&version| {
                let policies = [strict, degrade].into_iter();
                policies.flat_map(move |it| [0, 1].map(|which| (version, which, it)))
            })
            .map(|(version, which, policy)| (version, &capabilities[which], policy))
        {
            let mut agent = AgentProfile::new(version, capabilities);
            agent.policy = policy;
            let shown = match validate(&set_up, &agent) {
                Ok(it) => {
                    answered[0] += 1;
                    format!("{it:?} {}", serde_json::to_string(&it.warnings).unwrap())
                }
                Err(it) => {
                    answered[1] += 1;
                    format!("{it} {it:?} {}", serde_json::to_string(&it).unwrap())
                }
            };
            assert!(!shown.contains("SECRET"), "{entry}\n{shown}");
        }
        assert!(!format!("{set_up:?}").contains("SECRET"));
    }
    assert!(answered.iter().all(|it| *it > 20), "{answered:?}");
}
