//! Results of servers that strict clients would refuse, and what a client gets instead.

use super::*;

/// Checks a result for clients of `version`. `want` is the result, followed by the corrected members, or the error.
#[track_caller]
fn check_for(version: ProtocolVersion, method: Method, result: &str, want: &str) {
    let json = RawJson::parse(result.to_owned().into()).unwrap();
    let got = match result_for_clients(method, "a:uri", &json, version) {
        Ok(ClientResult { result, corrected }) => {
            format!("{} {}", result.as_str(), corrected.join(" ")).trim_end().to_owned()
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(got, want, "{result}");
}

#[track_caller]
fn check(method: Method, result: &str, want: &str) {
    check_for(ProtocolVersion::V2025_11_25, method, result, want);
}

#[track_caller]
fn check_tool(result: &str, want: &str) {
    check(Method::CallTool, result, want);
}

/// Checks the only content block of a result.
#[track_caller]
fn check_block(block: &str, want: &str) {
    let (block_want, corrected) = want
        .split_once("} ")
        .map_or((want, ""), |(_, corrected)| (&want[..want.len() - corrected.len() - 1], corrected));
    let want = format!(r#"{{"content":[{block_want}]}} {corrected}"#);
    check_tool(&format!(r#"{{"content":[{block}]}}"#), want.trim_end());
}

// RPT-037
#[test]
fn members_of_a_tool_result_are_valid_for_strict_clients() {
    let good = r#"{ "content" : [{"type":"text","text":"a","x":null}],"isError":false,"x":null}"#;
    check_tool(good, good);
    check_tool("{}", r#"{"content":[]}"#);
    check_tool(r#"{"content":null,"isError":null,"_meta":null}"#, r#"{"content":[]}"#);
    check_tool(r#"{"content":[],"isError":"true"}"#, r#"{"content":[],"isError":true}"#);
    check_tool(r#"{"content":[],"isError":1,"_meta":[]}"#, r#"{"content":[]} isError _meta"#);
    check_tool(r#"{"content":"plain"}"#, r#"{"content":[{"type":"text","text":"plain"}]} content content"#);
    check_tool(
        r#"{"content":{"type":"text","text":"one"}}"#,
        r#"{"content":[{"type":"text","text":"one"}]} content"#,
    );
    check_tool(r#"{"content":[null],"structuredContent":null}"#, r#"{"content":[]}"#);
    // Structured content of another type than an object is one of 2026-07-28 only.
    let list = r#"{"content":[],"structuredContent":[1]}"#;
    check_for(ProtocolVersion::V2026_07_28, Method::CallTool, list, list);
    check_tool(list, r#"{"content":[{"type":"text","text":"[1]"}]} structuredContent"#);
    check(Method::GetTaskResult, "{}", r#"{"content":[]}"#);
    check(Method::ListTools, "{}", "{}");
}

// RPT-037
#[test]
fn content_blocks_are_valid_for_strict_clients() {
    let text = |json: &str| format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(json));
    check_block(r#""bare""#, r#"{"type":"text","text":"bare"} content[0]"#);
    check_block(r#"{"type":"text","text":7}"#, r#"{"type":"text","text":"7"} content[0].text"#);
    check_block(r#"{"type":"text","text":"a","_meta":null}"#, r#"{"type":"text","text":"a"}"#);
    check_block(
        r#"{"type":"text","text":"a","annotations":{"audience":null,"priority":7,"lastModified":"2026-01-02T03:04:05Z"}}"#,
        r#"{"type":"text","text":"a","annotations":{"lastModified":"2026-01-02T03:04:05Z"}}"#,
    );
    check_block(
        r#"{"type":"text","text":"a","annotations":[]}"#,
        r#"{"type":"text","text":"a"} content[0].annotations"#,
    );
    check_block(
        r#"{"type":"image","data":"aGk="}"#,
        r#"{"mimeType":"application/octet-stream","type":"image","data":"aGk="} content[0].mimeType"#,
    );
    let lines = r#"{"type":"image","data":"aG\nk=","mimeType":"a/b"}"#;
    check_block(lines, lines);
    let link = r#"{"type":"resource_link","uri":"a:b","name":"a"}"#;
    check_block(link, link);
    check_block(
        r#"{"type":"resource_link","uri":"a:b","size":null,"title":7}"#,
        r#"{"name":"a:b","type":"resource_link","uri":"a:b"} content[0].title content[0].name"#,
    );
    let resource = r#"{"type":"resource","resource":{"uri":"a:b","text":"x"}}"#;
    check_block(resource, resource);
    check_block(
        r#"{"type":"resource","resource":{"uri":"a:b","blob":"aGk=","text":null,"mimeType":null}}"#,
        r#"{"type":"resource","resource":{"uri":"a:b","blob":"aGk="}}"#,
    );
    // Nothing of a block is lost that has no valid form.
    for odd in [
        "7",
        "[]",
        r#"{"text":"no type"}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":null}"#,
        r#"{"type":"hologram","data":1}"#,
        r#"{"type":"image","mimeType":"image/png","data":"%%%"}"#,
        r#"{"type":"resource_link"}"#,
        r#"{"type":"resource","resource":{"uri":"x://y"}}"#,
        r#"{"type":"resource","resource":{"text":"x"}}"#,
    ] {
        check_block(odd, &format!("{} content[0]", text(odd)));
    }
    let audio = r#"{"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}"#;
    check_tool(audio, audio);
    let old = format!(r#"{{"content":[{}]}} content[0]"#, text(&audio[12..audio.len() - 2]));
    check_for(ProtocolVersion::V2024_11_05, Method::CallTool, audio, &old);
}

// RPT-037
#[test]
fn messages_of_a_prompt_are_valid_for_strict_clients() {
    let check = |result: &str, want: &str| check(Method::GetPrompt, result, want);
    let good = r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#;
    check(good, good);
    check(r#"{"description":null}"#, r#"{"messages":[]}"#);
    check(r#"{"messages":null,"_meta":null}"#, r#"{"messages":[]}"#);
    check(
        r#"{"messages":["a",{"role":"assistant","content":"b"}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"text","text":"b"}}]} messages[0] messages[1].content"#,
    );
    check(
        r#"{"messages":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"b"}}]} messages messages[0].content"#,
    );
    let invalid = |member: &str| format!("returned a result without a valid `{member}`");
    check(r#"{"messages":[{"role":"system","content":"a"}]}"#, &invalid("messages[0].role"));
    check(r#"{"messages":[{"content":"a"}]}"#, &invalid("messages[0].role"));
    check(r#"{"messages":["a",{"role":"user"}]}"#, &invalid("messages[1].content"));
}

// RPT-037
#[test]
fn contents_of_a_resource_are_valid_for_strict_clients() {
    let check = |result: &str, want: &str| check(Method::ReadResource, result, want);
    let good = r#"{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:b","blob":"aGk="}]}"#;
    check(good, good);
    check(r#"{"_meta":null}"#, r#"{"contents":[]}"#);
    check(
        r#"{"contents":"x"}"#,
        r#"{"contents":[{"uri":"a:uri","text":"x"}]} contents contents[0] contents[0].uri"#,
    );
    check(
        r#"{"contents":{"uri":null,"mimeType":null,"text":"x"}}"#,
        r#"{"contents":[{"uri":"a:uri","text":"x"}]} contents contents[0].uri"#,
    );
    check(
        r#"{"contents":[null,{"uri":"a:b","text":{"a":1}}]}"#,
        r#"{"contents":[{"uri":"a:b","text":"{\"a\":1}"}]} contents[1].text"#,
    );
    let invalid = "returned a result without a valid `contents[1].text`";
    check(r#"{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:b"}]}"#, invalid);
    check(r#"{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:b","blob":"%"}]}"#, invalid);
}

// RPT-037
#[test]
fn completions_are_valid_for_strict_clients() {
    let check = |result: &str, want: &str| check(Method::Complete, result, want);
    let good = r#"{"completion":{"values":["a"],"total":1,"hasMore":false}}"#;
    check(good, good);
    check("{}", r#"{"completion":{"values":[]}}"#);
    check(r#"{"completion":{"total":null,"hasMore":null}}"#, r#"{"completion":{"values":[]}}"#);
    check(r#"{"completion":["a",7]}"#, r#"{"completion":{"values":["a"]}} completion completion.values"#);
}

#[test]
fn timestamps_have_an_offset() {
    let keeps = |text: &str| {
        let json = RawJson::from_value(&text).unwrap();
        MemberForm::Timestamp.correct(&json).is_some()
    };
    for text in ["2026-01-02T03:04:05Z", "2026-01-02T03:04Z", "2026-01-02T03:04:05.678+01:00"] {
        assert!(keeps(text), "{text}");
    }
    for text in ["2026-01-02", "2026-01-02T03:04:05", "yesterday", "", "2026-01-02 03:04:05Z"] {
        assert!(!keeps(text), "{text}");
    }
}
