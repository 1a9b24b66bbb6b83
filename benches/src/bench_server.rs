//! A minimal MCP server for benchmarks, so that the client's cost dominates.
//!
//! It parses with borrowed fields and writes responses into a buffer. The tools `echo`, `big`, `sleep` and `change` do
//! something; all others return `ok`.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_host_model::code;
use serde::Deserialize;
use serde_json::value::RawValue;

/// How to send a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseAction {
    /// The response is in the buffer.
    Now,
    /// The response is in the buffer, and is sent after this many milliseconds.
    After(u64),
    /// There is no response.
    Nothing,
}

/// The tools of the server.
#[derive(Debug)]
pub struct BenchServer {
    /// The pages of the list, without the envelope.
    pages: Vec<String>,
    /// How often the list has changed. From the first change on, its first page has a tool with this number.
    changes: AtomicUsize,
}

/// The definitions of the other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definitions {
    /// About 900 bytes each.
    Full,
    /// A name and an empty schema. The list has the tool `change`, too.
    Short,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The arguments of the three tools.
#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    kib: Option<usize>,
    ms: Option<u64>,
}

#[derive(Deserialize)]
struct Listing<'a> {
    cursor: Option<&'a str>,
}

/// The message after the response of the tool `change`. Only clients on a pipe understand two messages.
const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

const LINE: &str = "Thirty-two kinds of sheep graze on the hill, and none of them counts.\\n";

impl BenchServer {
    /// A server with three tools and this many others, in pages of this size; `page` 0 means one page.
    pub fn new(tools: usize, page: usize, definitions: Definitions) -> BenchServer {
        let mut all = vec![
            described("echo", r#""text":{"type":"string"}"#, "text"),
            described("big", r#""kib":{"type":"integer"}"#, "kib"),
            described("sleep", r#""ms":{"type":"integer"}"#, "ms"),
        ];
        match definitions {
            Definitions::Full => all.extend((0..tools).map(tool)),
            Definitions::Short => {
                all.push(short_tool("change"));
                all.extend((0..tools).map(|at| short_tool(&format!("tool_{at}"))));
            }
        }
        let page = if page == 0 { all.len() } else { page };
        BenchServer { pages: all.chunks(page).map(|it| it.join(",")).collect(), changes: AtomicUsize::new(0) }
    }

    /// Writes the response to a message.
    pub fn answer(&self, message: &[u8], into: &mut String) -> ResponseAction {
        let Ok(Message { id: Some(id), method: Some(method), params }) = serde_json::from_slice(message)
        else {
            return ResponseAction::Nothing;
        };
        let params = params.map_or("{}", RawValue::get);
        let changes = self.changes.load(Ordering::Relaxed);
        // Writing to a string does not fail.
        let _ = write!(into, r#"{{"jsonrpc":"2.0","id":{}"#, id.get());
        let answer = match method {
            "tools/call" => self.call(params, into),
            "tools/list" => self.list(params, into),
            "initialize" => {
                let _ = write!(
                    into,
                    r#","result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"measured","version":"1"}}}}"#
                );
                ResponseAction::Now
            }
            "ping" => {
                into.push_str(r#","result":{}"#);
                ResponseAction::Now
            }
            _ => refuse(into, code::METHOD_NOT_FOUND, "there is no such method"),
        };
        into.push('}');
        if self.changes.load(Ordering::Relaxed) > changes {
            into.push('\n');
            into.push_str(LIST_CHANGED);
        }
        answer
    }

    fn list(&self, params: &str, into: &mut String) -> ResponseAction {
        let cursor = serde_json::from_str::<Listing<'_>>(params).ok().and_then(|it| it.cursor);
        let at: usize = cursor.and_then(|it| it.parse().ok()).unwrap_or(0);
        let page = self.pages.get(at).map_or("", String::as_str);
        let _ = write!(into, r#","result":{{"tools":[{page}"#);
        let changes = self.changes.load(Ordering::Relaxed);
        if at == 0 && changes > 0 {
            let _ = write!(into, r#",{{"name":"version_{changes}","inputSchema":{{"type":"object"}}}}"#);
        }
        into.push(']');
        if at + 1 < self.pages.len() {
            let _ = write!(into, r#","nextCursor":"{}""#, at + 1);
        }
        into.push('}');
        ResponseAction::Now
    }

    fn call(&self, params: &str, into: &mut String) -> ResponseAction {
        let Ok(Call { name, arguments }) = serde_json::from_str(params) else {
            return refuse(into, code::INVALID_PARAMS, "a call has a name");
        };
        let arguments = arguments.map_or("{}", RawValue::get);
        let Ok(Arguments { text, kib, ms }) = serde_json::from_str(arguments) else {
            return refuse(into, code::INVALID_PARAMS, "these arguments cannot be read");
        };
        into.push_str(r#","result":{"content":[{"type":"text","text":"#);
        let mut answer = ResponseAction::Now;
        match (name, text, kib, ms) {
            ("echo", Some(text), ..) => into.push_str(text.get()),
            ("big", _, Some(kib), _) => {
                into.push('"');
                let lines = kib * 1024 / LINE.len();
                into.reserve(kib * 1024);
                (0..=lines).for_each(|_| into.push_str(LINE));
                into.push('"');
            }
            ("change", ..) => {
                self.changes.fetch_add(1, Ordering::Relaxed);
                into.push_str(r#""changed""#);
            }
            ("sleep", _, _, Some(ms)) => {
                into.push_str(r#""done""#);
                answer = ResponseAction::After(ms);
            }
            _ => into.push_str(r#""ok""#),
        }
        into.push_str(r#"}],"isError":false}"#);
        answer
    }
}

fn refuse(into: &mut String, code: i64, message: &str) -> ResponseAction {
    let _ = write!(into, r#","error":{{"code":{code},"message":"{message}"}}"#);
    ResponseAction::Now
}

fn described(name: &str, properties: &str, required: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"It is measured with.","inputSchema":{{"type":"object","properties":{{{properties}}},"required":["{required}"]}}}}"#
    )
}

const VERBS: [&str; 8] = ["read", "write", "find", "count", "move", "merge", "rename", "watch"];
const NOUNS: [&str; 9] =
    ["ticket", "folder", "meeting", "contract", "sample", "route", "sensor", "parcel", "ledger"];

/// A tool definition of about 900 bytes, as large services have.
fn tool(at: usize) -> String {
    let (verb, noun) = (VERBS[at % VERBS.len()], NOUNS[at / 7 % NOUNS.len()]);
    let mut properties = String::new();
    for field in 0..3 + at % 4 {
        let comma = if field == 0 { "" } else { "," };
        let kind = match (at + field) % 3 {
            0 => r#""type":"string","minLength":1,"maxLength":200"#,
            1 => r#""type":"integer","minimum":0,"maximum":1000,"default":20"#,
            _ => r#""type":"array","items":{"type":"string","pattern":"^[a-z0-9_-]+$"},"maxItems":50"#,
        };
        let _ = write!(
            properties,
            r#"{comma}"field{field}":{{{kind},"description":"What the {noun} must hold in place {field} to be taken."}}"#
        );
    }
    format!(
        r#"{{"name":"{verb}_{noun}_{at}","description":"Will {verb} each {noun} that the caller may see, in the order in which they were made, at most as many as asked for, and says how many were left out.","inputSchema":{{"type":"object","properties":{{{properties}}},"required":["field0"],"additionalProperties":false}},"annotations":{{"readOnlyHint":{},"openWorldHint":true}}}}"#,
        at.is_multiple_of(2)
    )
}

fn short_tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[track_caller]
    fn check(method: &str, params: &str, want: &str) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        let mut text = String::new();
        let answer = BenchServer::new(5, 4, Definitions::Full).answer(message.as_bytes(), &mut text);
        let value: Value = serde_json::from_str(&text).unwrap();
        let said = value.pointer("/result/content/0/text").or(value.pointer("/result/nextCursor"));
        let said = said.and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
        assert_eq!(format!("{answer:?} {said}"), want);
    }

    #[test]
    fn a_changed_list_is_announced() {
        let server = BenchServer::new(2, 0, Definitions::Short);
        let ask = |message: &str| {
            let mut text = String::new();
            server.answer(message.as_bytes(), &mut text);
            text
        };
        let list = r#"{"id":1,"method":"tools/list"}"#;
        assert!(ask(list).contains("tool_1") && !ask(list).contains("version_"));
        let change = ask(r#"{"id":1,"method":"tools/call","params":{"name":"change"}}"#);
        assert!(change.ends_with(&format!("\n{LIST_CHANGED}")), "{change}");
        assert!(ask(list).contains("version_1"));
    }

    #[test]
    fn requests_get_responses() {
        check("tools/call", r#"{"name":"echo","arguments":{"text":"a\"b"}}"#, "Now a\"b");
        check("tools/call", r#"{"name":"sleep","arguments":{"ms":5}}"#, "After(5) done");
        check("tools/call", r#"{"name":"other"}"#, "Now ok");
        check("tools/list", "{}", "Now 1");
        check("tools/list", r#"{"cursor":"1"}"#, "Now ");
        check("nothing", "{}", "Now ");
        let mut text = String::new();
        assert_eq!(
            BenchServer::new(0, 0, Definitions::Short).answer(br#"{"method":"x"}"#, &mut text),
            ResponseAction::Nothing
        );
    }
}
