//! Frames in the key orders of real servers, and a property: the scanner agrees with serde_json on any object.

use super::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn describe(frame: &str) -> String {
    let text = |range: Range<usize>| &frame[range];
    match scan(frame.as_bytes()) {
        ScannedFrame::Response { id, id_text: _, is_error, payload_start } => {
            let kind = if is_error { "error" } else { "result" };
            format!("{kind} {id:?} {}", &frame[payload_start..payload_start + 1])
        }
        ScannedFrame::EmptyResponse(id) => format!("empty {id}"),
        ScannedFrame::Request { id, method, params: _ } => format!("request {} {method}", text(id)),
        ScannedFrame::Notification { method, params } => {
            format!("notification {method} {}", params.map_or("-", |it| &frame[it..it + 1]))
        }
        ScannedFrame::Batch(items) => {
            format!("batch {}", items.into_iter().map(text).collect::<Vec<_>>().join(" "))
        }
        ScannedFrame::Noise => "noise".to_owned(),
    }
}

#[track_caller]
fn check(frame: &str, want: &str) {
    assert_eq!(describe(frame), want, "{frame}");
}

#[test]
fn responses_are_found_in_the_key_orders_of_typescript_python_and_go() {
    check(r#"{"result":{"id":9,"content":[]},"jsonrpc":"2.0","id":4}"#, "result Number(4) {");
    check(r#"{"jsonrpc":"2.0","id":4,"result":{"tools":[{"id":7}]}}"#, "result Number(4) {");
    check(r#"{"jsonrpc":"2.0","result":[],"id":4}"#, "result Number(4) [");
    check(r#" { "id" : 4 , "error" : {"code":-1} } "#, "error Number(4) {");
    check(r#"{"jsonrpc":"2.0","error":{"code":1,"data":{"id":3}},"id":null}"#, "error Absent {");
}

#[test]
fn fast_path_agrees_with_the_full_scan() {
    const BEGINNING: &str = r#"{"jsonrpc":"2.0","id":"#;
    for (rest, is_common) in [
        (r#"4,"result":{"a":1}}"#, true),
        (r#"4,"result": [1]}"#, true),
        (r#"4,"result":"#, true),
        (r#"007,"result":{}}"#, true),
        (r#"4,"result":{},"method":"ping"}"#, true),
        (r#"4,"result":{},"error":{}}"#, true),
        (r#",,"result":{}}"#, false),
        (r#",4,"result":{}}"#, false),
        (r#"4 ,"result":{}}"#, false),
        (r#"-4,"result":{}}"#, false),
        (r#""4","result":{}}"#, false),
        (r#"null,"result":{}}"#, false),
        (r#"99999999999999999999,"result":{}}"#, false),
        (r#"4,"error":{}}"#, false),
        (r#"4,"method":"ping"}"#, false),
    ] {
        let frame = format!("{BEGINNING}{rest}");
        let full_scan = scan_object(&mut FrameCursor { frame: frame.as_bytes(), position: 0 });
        let fast_scan = scan_common_response(frame.as_bytes());
        assert_eq!(fast_scan.is_some(), is_common, "{frame}");
        assert_eq!(fast_scan.unwrap_or(full_scan.clone()), full_scan, "{frame}");
    }
}

#[test]
fn kind_is_decided_before_the_id() {
    check(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#, "request 4 ping");
    check(r#"{"method":"ping","id":4,"jsonrpc":"2.0"}"#, "request 4 ping");
    check(r#"{"method":"ping","result":{},"id":4}"#, "request 4 ping");
    check(r#"{"method":"n","params":{"id":4}}"#, "notification n {");
    check(r#"{"method":"n"}"#, "notification n -");
    check(r#"{"id":null,"method":"n"}"#, "notification n -");
}

#[test]
fn ids_are_whole_numbers_in_any_form() {
    // RPT-030
    check(r#"{"id":"4","result":{}}"#, "result Number(4) {");
    check(r#"{"id":4.0,"result":{}}"#, "result Number(4) {");
    check(r#"{"jsonrpc":"2.0","id":131072.0,"result":{}}"#, "result Number(131072) {");
    check(r#"{"id":"4.00","result":{}}"#, "result Number(4) {");
    check(r#"{"id":4e0,"result":{}}"#, "result Number(4) {");
    check(r#"{"id":1.31072E5,"result":{}}"#, "result Number(131072) {");
    check(r#"{"id":4.5,"result":{}}"#, "result Foreign {");
    check(r#"{"id":1e300,"result":{}}"#, "result Foreign {");
    check(r#"{"id":"x4","result":{}}"#, "result Foreign {");
    check(r#"{"id":"NaN","result":{}}"#, "result Foreign {");
    check(r#"{"id":true,"result":{}}"#, "result Foreign {");
    check(r#"{"id":-4,"result":{}}"#, "result Foreign {");
    check(r#"{"id":99999999999999999999,"result":{}}"#, "result Foreign {");
    check(r#"{"id":"","result":{}}"#, "result Foreign {");
    check(r#"{"result":{}}"#, "result Absent {");
    check(r#"{"id":4,"error":null,"result":{}}"#, "result Number(4) {");
}

#[test]
fn brackets_in_strings_and_values_are_skipped() {
    check(r#"{"a":"\"id\":1,}]","result":"\\","id":2}"#, "result Number(2) \"");
    check(r#"{"result":{"x":["}",{"y":"]"}]},"id":2}"#, "result Number(2) {");
    check(r#"{"result":true,"id":2}"#, "result Number(2) t");
    check(r#"[{"id":1,"result":{}},{"method":"n"}]"#, r#"batch {"id":1,"result":{}} {"method":"n"}"#);
}

// RPT-031
#[test]
fn error_beside_a_null_result_counts() {
    check(r#"{"jsonrpc":"2.0","id":4,"result":null,"error":{"code":1}}"#, "error Number(4) {");
    check(r#"{"jsonrpc":"2.0","result":null,"id":4,"error":{"code":1}}"#, "error Number(4) {");
    check(r#"{"error":{"code":1},"result":null,"id":4}"#, "error Number(4) {");
    check(r#"{"jsonrpc":"2.0","id":4,"result":null}"#, "result Number(4) n");
    check(r#"{"jsonrpc":"2.0","id":4,"result":null,"error":null}"#, "result Number(4) n");
    check(r#"{"result":null}"#, "result Absent n");
}

// RPT-031
#[test]
fn error_after_a_result_is_found() {
    #[track_caller]
    fn check(rest: &str, want: Option<&str>) {
        let frame = format!("{{}}{rest}");
        assert_eq!(find_error_after(frame.as_bytes(), 2).map(|start| &frame[start..]), want, "{rest}");
    }
    check("}", None);
    check(r#","id":4}"#, None);
    check(r#","error":null}"#, None);
    check(r#" , "a":{"error":1}, "error" : {"code":1}}"#, Some(r#"{"code":1}}"#));
    check(r#","error""#, None);
    check("", None);
}

// RPT-031
#[test]
fn response_without_a_payload_is_empty() {
    check(r#"{"jsonrpc":"2.0","id":4}"#, "empty 4");
    check(r#"{"jsonrpc":"2.0","id":4,"error":null}"#, "empty 4");
    check(r#"{"id":"4","jsonrpc":"2.0"}"#, "empty 4");
    check(r#"{"jsonrpc":"2.0","id":null}"#, "noise");
    check(r#"{"jsonrpc":"2.0","id":"x"}"#, "noise");
}

// RPT-033
#[test]
fn byte_order_mark_is_skipped() {
    check("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}", "result Number(4) {");
    check("\u{feff} {\"method\":\"n\"}", "notification n -");
    check("\u{feff}[{\"method\":\"n\"}]", "batch {\"method\":\"n\"}");
}

// RPT-036
#[test]
fn messages_after_a_notification_are_found() {
    let response = r#"{"id":4,"result":{}}"#;
    check(&format!(r#"{{"method":"n"}}{response}"#), &format!(r#"batch {{"method":"n"}} {response}"#));
    check(&format!("{{\"method\":\"n\"}}\n{response} "), &format!("batch {{\"method\":\"n\"}} {response}"));
    check(r#"{"method":"n"} text"#, "notification n -");
    check(r#"{"method":"n"}{"#, "notification n -");
}

#[test]
fn invalid_message_is_noise() {
    for text in [
        "",
        "hello",
        "{",
        "{}",
        "{]}",
        r#"{"id":1}"#,
        r#"{"result"}"#,
        r#"{"result":"#,
        "7",
        r#"{"id":1,"result" {}}"#,
        "[",
        r#"{"a":}"#,
    ] {
        check(text, "noise");
    }
}

/// The value of a whole number in any form.
fn whole_number(number: &serde_json::Number) -> Option<u64> {
    let fraction = || number.as_f64().filter(|it| *it >= 0.0 && it.fract() == 0.0).map(|it| it as u64);
    number.as_u64().or_else(fraction)
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|it| Value::from(f64::from(it) / 4.0)),
        r#"[a-z"\\{}\[\],: é]{0,8}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("result".to_owned()),
        Just("error".to_owned()),
        Just("params".to_owned()),
        Just("jsonrpc".to_owned()),
        "[a-z\"]{0,4}",
    ]
}

proptest! {
    #[test]
    fn serde_json_agrees(pairs in prop::collection::vec((any_key(), any_value()), 0..6), pretty in any::<bool>()) {
        let mut seen = std::collections::HashSet::new();
        let pairs: Vec<_> = pairs.into_iter().filter(|(key, _)| seen.insert(key.clone())).collect();
        // Written by hand to keep the generated key order.
        let space = if pretty { "\n  " } else { "" };
        let body: Vec<String> =
            pairs.iter().map(|(key, value)| format!("{space}{}:{space}{value}", json!(key))).collect();
        let frame = format!("{{{}}}", body.join(","));
        let get = |key: &str| pairs.iter().find(|it| it.0 == key).map(|it| &it.1);
        let at = |key: &str| pairs.iter().position(|it| it.0 == key);
        match scan(frame.as_bytes()) {
            ScannedFrame::Response { id, id_text: _, is_error, payload_start } => {
                let key = if is_error { "error" } else { "result" };
                let mut stream = serde_json::Deserializer::from_str(&frame[payload_start..]).into_iter::<Value>();
                prop_assert_eq!(Some(&stream.next().unwrap().unwrap()), get(key));
                let want = match get("id") {
                    None | Some(Value::Null) => ResponseId::Absent,
                    Some(Value::Number(it)) => whole_number(it).map_or(ResponseId::Foreign, ResponseId::Number),
                    Some(Value::String(it)) if !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()) => {
                        it.parse().map_or(ResponseId::Foreign, ResponseId::Number)
                    }
                    Some(_) => ResponseId::Foreign,
                };
                prop_assert_eq!(id, want);
                if key == "result" && get("result") == Some(&Value::Null) {
                    return Ok(());
                }
                // An object with a method is no response, unless id and payload come before the method.
                let is_after = |it| Some(it) > at(key) && Some(it) > at("id") && at("id").is_some();
                prop_assert!(at("method").is_none_or(is_after));
            }
            ScannedFrame::Request { .. } => {
                prop_assert!(get("method").is_some() && get("id").is_some_and(|it| !it.is_null()));
            }
            ScannedFrame::Notification { .. } => {
                prop_assert!(get("method").is_some() && get("id").is_none_or(Value::is_null));
            }
            ScannedFrame::EmptyResponse(_) => {
                prop_assert!(get("jsonrpc").is_some() && get("method").is_none() && get("result").is_none());
            }
            ScannedFrame::Noise => {
                let no_error = get("error").is_none_or(Value::is_null);
                let no_payload = get("result").is_none() && no_error;
                prop_assert!(get("method").map_or(no_payload, |it| !it.is_string()));
            }
            ScannedFrame::Batch(_) => prop_assert!(false),
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(prop_oneof![Just(b'{'), Just(b'"'), Just(b':'),
        Just(b'['), Just(b'\\'), Just(b'}'), any::<u8>()], 0..40)) {
        scan(&bytes);
    }
}
