//! The results of each tool in both eras.

use mcp_host_demo::ServeOutcome;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Era, describe};

/// Calls one tool on a new server of each era; `expected` is the whole output.
#[track_caller]
fn check(tool: &str, arguments: Value, expected: &str) {
    for era in BOTH {
        check_in(era, json!({"name": tool, "arguments": arguments}), expected);
    }
}

#[track_caller]
fn check_in(era: Era, params: Value, expected: &str) {
    check_with_capabilities(json!({}), era, params, expected);
}

#[track_caller]
fn check_with_capabilities(offers: Value, era: Era, params: Value, expected: &str) {
    let text = run(async {
        let mut client = Client::with_capabilities(era, offers).await;
        let text = client.call(params).await;
        assert_eq!(client.close().await, ServeOutcome::Closed);
        text
    });
    assert_eq!(text, expected, "{era:?}");
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

#[test]
fn basic_tools_succeed_and_fail() {
    check("echo", json!({"text": "hello"}), "hello");
    check("echo", json!({"text": "zwei\nZeilen \u{1f600}"}), "zwei\nZeilen \u{1f600}");
    check("echo", json!({}), "failed: invalid arguments: missing field `text`");
    check(
        "echo",
        json!({"text": 1}),
        "failed: invalid arguments: invalid type: integer `1`, expected a string",
    );
    check("add", json!({"a": 1, "b": 2}), r#"3 {"sum":3}"#);
    check("add", json!({"a": i64::MAX, "b": 1}), "failed: the sum does not fit into 64 bits");
    check("fail", json!({"message": "as told"}), "failed: as told");
    check("grow", json!({"bytes": 0}), "");
    check("grow", json!({"bytes": 12}), "012345678901");
    check("grow", json!({"bytes": 33_554_433}), "failed: `bytes` is at most 33554432");
    check("nothing", json!({}), "-32602: there is no tool `nothing`");
    let mixed = "One block of each kind:; image \"image/png\"; audio \"audio/wav\"; resource \"demo://greeting\"; \
                 link \"demo://greeting\"";
    check("mixed", json!({}), mixed);
}

#[test]
fn only_demo_variables_and_own_headers_are_returned() {
    for name in ["PATH", "", "DEMO", "demo_x", "DEMO_=", "DEMO_\0"] {
        check("env", json!({"name": name}), "failed: only variables that begin with `DEMO_` can be read");
    }
    let unset = "failed: the variable is not set or not valid UTF-8";
    check("env", json!({"name": "DEMO_NOBODY_SETS_THIS"}), unset);
    check("header", json!({"name": "authorization"}), "failed: this call has no headers");
}

#[test]
fn sleep_reports_progress_with_a_token() {
    check("sleep", json!({"ms": 60_000}), "slept 60000 ms in 1 step");
    check("sleep", json!({"ms": 1, "steps": 0}), "failed: `ms` is at most 600000, `steps` 1 to 1000");
    for era in BOTH {
        let params = json!({"name": "sleep", "arguments": {"ms": 3000, "steps": 3},
            "_meta": {"progressToken": "here"}});
        check_in(era, params, "1.0 of 3.0, 2.0 of 3.0, 3.0 of 3.0, slept 3000 ms in 3 steps");
    }
}

#[test]
fn cancelled_sleep_has_no_response_and_end_of_input_stops_it() {
    for era in BOTH {
        run(async {
            let mut client = Client::open(era).await;
            let before = tokio::time::Instant::now();
            let sleeping = client
                .send_request("tools/call", json!({"name": "sleep", "arguments": {"ms": 600_000}}))
                .await;
            let params = json!({"requestId": sleeping, "reason": "enough"});
            client
                .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
                .await;
            assert_eq!(client.call(json!({"name": "echo", "arguments": {"text": "next"}})).await, "next");
            client.send_request("tools/call", json!({"name": "sleep", "arguments": {"ms": 600_000}})).await;
            assert_eq!(client.close().await, ServeOutcome::Closed);
            assert!(before.elapsed().as_secs() < 5, "{:?}", before.elapsed());
        });
    }
}

#[test]
fn legacy_client_sets_the_log_level() {
    let all = "debug, info, notice, warning, error, critical, alert, emergency, sent 8 of 8 log messages";
    check_in(Era::Legacy, json!({"name": "log"}), all);
    run(async {
        let mut client = Client::open(Era::Legacy).await;
        client.request("logging/setLevel", json!({"level": "alert"})).await;
        assert_eq!(client.call(json!({"name": "log"})).await, "alert, emergency, sent 2 of 8 log messages");
    });
}

#[test]
fn modern_request_names_its_log_level() {
    check_in(Era::Sessionless, json!({"name": "log"}), "sent 0 of 8 log messages");
    let params = json!({"name": "log", "_meta": {"io.modelcontextprotocol/logLevel": "critical"}});
    check_in(Era::Sessionless, params, "critical, alert, emergency, sent 3 of 8 log messages");
    run(async {
        let mut client = Client::open(Era::Sessionless).await;
        let answer = client.request("logging/setLevel", json!({"level": "alert"})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    });
}

#[test]
fn ask_needs_the_client_capability() {
    let user = json!({"name": "ask", "arguments": {"question": "why?"}});
    let model = json!({"name": "ask", "arguments": {"question": "why?", "of": "model"}});
    check_in(Era::Legacy, user.clone(), "failed: the client does not offer elicitation");
    check_in(Era::Legacy, model.clone(), "failed: the client does not offer sampling");
    check_in(Era::Sessionless, user, "-32021: Missing required client capability");
    check_in(Era::Sessionless, model, "-32021: Missing required client capability");
}

/// Responds to the request during a legacy call.
#[track_caller]
fn check_asked(of: &str, method: &str, reply: Value, expected: &str) {
    let text = run(async {
        let mut client =
            Client::with_capabilities(Era::Legacy, json!({"elicitation": {}, "sampling": {}})).await;
        client
            .send_request("tools/call", json!({"name": "ask", "arguments": {"question": "why?", "of": of}}))
            .await;
        let question = client.next().await.unwrap();
        assert_eq!(question["method"], method, "{question}");
        assert!(question["params"].to_string().contains("why?"), "{question}");
        client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": reply})).await;
        describe(&client.next().await.unwrap())
    });
    assert_eq!(text, expected);
}

#[test]
fn legacy_client_receives_a_request_during_the_call() {
    let accept = json!({"action": "accept", "content": {"answer": "because"}});
    check_asked("user", "elicitation/create", accept, "the user answers: because");
    check_asked("user", "elicitation/create", json!({"action": "decline"}), "the user declines");
    check_asked("user", "elicitation/create", json!({"action": "cancel"}), "the user does not answer");
    let message = json!({"role": "assistant", "content": {"type": "text", "text": "because"}, "model": "m"});
    check_asked("model", "sampling/createMessage", message, "the model m answers: because");
}

#[test]
fn modern_client_receives_the_question_as_the_result() {
    let offers = json!({"elicitation": {}, "sampling": {}});
    let check = |of: &str, more: Value, expected: &str| {
        let mut params = json!({"name": "ask", "arguments": {"question": "why?", "of": of}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        check_with_capabilities(offers.clone(), Era::Sessionless, params, expected);
    };
    check("user", json!({}), r#""elicitation/create" needed, state "asked""#);
    check("model", json!({}), r#""sampling/createMessage" needed, state "asked""#);
    let reply = json!({"action": "accept", "content": {"answer": "because"}});
    let retry = json!({"requestState": "asked", "inputResponses": {"answer": reply}});
    check("user", retry, "the user answers: because");
    let reply = json!({"role": "assistant", "content": {"type": "text", "text": "because"}, "model": "m"});
    let retry = json!({"requestState": "asked", "inputResponses": {"answer": reply}});
    check("model", retry, "the model m answers: because");
    let forged = json!({"requestState": "other", "inputResponses": {"answer": {"action": "decline"}}});
    check("user", forged, "-32602: `requestState` is not the one that was given");
    let empty = json!({"requestState": "asked", "inputResponses": {}});
    check("user", empty, "-32602: `inputResponses` lacks `answer`");
}

#[test]
fn exit_ends_the_server_without_a_response() {
    for era in BOTH {
        run(async {
            let mut client = Client::open(era).await;
            client.send_request("tools/call", json!({"name": "exit", "arguments": {"code": 7}})).await;
            assert_eq!(client.next().await, None);
            assert_eq!(client.close().await, ServeOutcome::Exited(7));
        });
    }
    check(
        "exit",
        json!({"code": 256}),
        "failed: invalid arguments: invalid value: integer `256`, expected u8",
    );
}
