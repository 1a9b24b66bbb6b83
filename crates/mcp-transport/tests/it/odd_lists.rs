//! Lists of servers that do not keep the protocol: what came is kept.

use mcp_host_transport::Eras;
use serde_json::Value;

use crate::in_memory::{Reply, answer, discovered, initialized, refuse};
use crate::session::{connect, names, pages};

/// Lists the tools of a server that sends these pages, as members of the result, in order. `HANG` is a page that is
/// never sent, and `FAIL` an error. `want` has the names, and the defect of the list.
#[track_caller]
fn check_pages(pages: &'static [&'static str], want: &str) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let peer = move |message: &Value| match message["method"].as_str() {
            Some("initialize") => answer(message, initialized("2025-11-25")),
            Some("tools/list") => {
                let page =
                    pages[count.fetch_add(1, std::sync::atomic::Ordering::Relaxed).min(pages.len() - 1)];
                match page {
                    "HANG" => vec![],
                    "FAIL" => refuse(message, -32602, Value::Null),
                    page => answer(message, serde_json::from_str(&format!("{{{page}}}")).unwrap()),
                }
            }
            _ => vec![],
        };
        let session = connect(Eras::Legacy, peer).await.0.unwrap();
        let listing = session.list_tools().await;
        let defect = listing.as_ref().ok().and_then(|list| list.defect.as_ref());
        let defect = defect.map(|defect| format!("; {defect}")).unwrap_or_default();
        assert_eq!(names(&listing) + &defect, want, "{pages:?}");
    });
}

// RPT-020, RPT-021, RPT-022, RPT-023
#[test]
fn what_came_of_an_odd_list_is_kept() {
    const A: &str = r#""tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"x""#;
    const B: &str = r#""tools":[{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"x""#;
    const NUMBER: &str = r#""tools":[{"name":"n","inputSchema":{"type":"object"}}],"nextCursor":7"#;
    const LAST: &str = r#""tools":[{"name":"z","inputSchema":{"type":"object"}}],"nextCursor":"""#;
    const OBJECT: &str = r#""tools":[{"name":"o","inputSchema":{"type":"object"}}],"nextCursor":{}"#;
    const NULL: &str = r#""tools":null"#;
    let twice = "the server returned the same cursor twice";
    check_pages(&[A], &format!("a; {twice}"));
    check_pages(&[A, B], &format!("a b; {twice}"));
    check_pages(&[NUMBER, A, NUMBER], &format!("n a; {twice}"));
    check_pages(&[LAST], "z");
    check_pages(&[NUMBER, LAST], "n z");
    check_pages(&[A, OBJECT], "a o; `nextCursor` is neither a string nor a number");
    check_pages(&[NULL], "; `tools` is null where a list is expected");
    check_pages(&[A, NULL], "a; `tools` is null where a list is expected");
    check_pages(
        &[A, "FAIL"],
        "a; page 2 could not be read: the server responded with an error: no (code -32602)",
    );
    check_pages(
        &[A, r#""tools":7"#],
        "a; page 2 could not be read: the server's response is invalid: expected `[`",
    );
    check_pages(&["FAIL"], "the server responded with an error: no (code -32602)");
    let listing = "a; page 2 could not be read: ";
    check_pages(&[A, "HANG"], &format!("{listing}no response within 60 s"));
}

#[tokio::test(start_paused = true)]
async fn rpt_021_empty_cursor_is_a_cursor_in_the_modern_era() {
    let lists = pages(&[(None, &["a"], Some("")), (Some(""), &["b"], None)]);
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("server/discover") => answer(message, discovered(&["2026-07-28"])),
        _ => lists(message),
    };
    let session = connect(Eras::Both, peer).await.0.unwrap();
    assert_eq!(names(&session.list_tools().await), "a b");
}

// RPT-024
#[tokio::test(start_paused = true)]
async fn list_that_exceeds_a_limit_has_its_beginning() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let peer = move |message: &Value| match message["method"].as_str() {
        Some("initialize") => answer(message, initialized("2025-11-25")),
        Some("tools/list") => {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let tool = serde_json::json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}});
            answer(message, serde_json::json!({"tools": [tool, {}], "nextCursor": number.to_string()}))
        }
        _ => vec![],
    };
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    let list = session.list_tools().await.unwrap();
    assert_eq!((list.items.len(), list.rejected.len()), (50, 50));
    assert_eq!(list.defect.unwrap().to_string(), "tools/list has more than 50 pages");
    let mut limits = mcp_host_model::Limits::default();
    limits.list_items = 5;
    session.set_limits(limits.clone());
    let list = session.list_tools().await.unwrap();
    assert_eq!((list.items.len(), list.rejected.len()), (3, 2));
    assert_eq!(list.defect.unwrap().to_string(), "tools/list has more than 5 items");
    limits.list_items = 1_000;
    limits.message_bytes = 400;
    session.set_limits(limits.clone());
    let list = session.list_tools().await.unwrap();
    assert!((1..5).contains(&list.items.len()), "{list:?}");
    assert_eq!(list.defect.unwrap().to_string(), "tools/list has more than 400 bytes");
}

// RPT-038
#[tokio::test(start_paused = true)]
async fn error_beside_a_list_is_told() {
    let check = async |members: &'static str, want: &str| {
        let peer = move |message: &Value| match message["method"].as_str() {
            Some("initialize") => answer(message, initialized("2025-11-25")),
            Some("tools/list") => {
                vec![Reply::Text(format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, message["id"]))]
            }
            _ => vec![],
        };
        let session = connect(Eras::Legacy, peer).await.0.unwrap();
        let outcome = session.list_tools().await;
        let defect = outcome.as_ref().ok().and_then(|list| list.defect.as_ref());
        let defect = defect.map(|defect| format!("; {defect}")).unwrap_or_default();
        assert_eq!(names(&outcome) + &defect, want, "{members}");
    };
    let list = r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#;
    let error = r#""error":{"code":7,"message":"half"}"#;
    check(list.to_owned().leak(), "a").await;
    check(format!("{list},{error}").leak(), "a; the response has both a list and an error: half (code 7)")
        .await;
    check(format!(r#"{list},"error":null"#).leak(), "a").await;
    check(format!("{error},{list}").leak(), "the server responded with an error: half (code 7)").await;
}

// RPT-034
#[tokio::test(start_paused = true)]
async fn unpaired_surrogates_in_a_list_are_replaced() {
    let list = r#"{"tools":[{"name":"a\ud800","description":"b\udfff","inputSchema":{"type":"object","description":"\ud83d\ude00\ud83d"}}]}"#;
    let peer = move |message: &Value| {
        let result = match message["method"].as_str() {
            Some("initialize") => {
                let instructions = r#""instructions":"read\ud800 this","#;
                initialized("2025-11-25").to_string().replacen('{', &format!("{{{instructions}"), 1)
            }
            Some("tools/list") => list.to_owned(),
            _ => return vec![],
        };
        vec![Reply::Text(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]))]
    };
    let session = connect(Eras::Legacy, peer).await.0.unwrap();
    assert_eq!(session.server().instructions.as_deref(), Some("read\u{fffd} this"));
    let list = session.list_tools().await.unwrap();
    let tool = &list.items[0];
    assert_eq!((&*tool.name, &*tool.description_text()), ("a\u{fffd}", "b\u{fffd}"));
    assert!(tool.raw.as_str().contains(r#""description":"\ud83d\ude00\ufffd""#), "{:?}", tool.raw);
}
