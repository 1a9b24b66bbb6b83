//! What a tool answered, for people: text as it is, a line about everything that is no text.
//!
//! All of it is a stranger's, so none of it reaches a terminal unstripped.

use mcp_model::{CallResult, Content, RawJson};

use crate::output::{json, plain};

/// The blocks in order, then the structured result where no block has shown it already.
pub(crate) fn text(result: &CallResult) -> String {
    let mut res: String = result.content.iter().map(block).collect();
    if let Some(structured) = &result.metadata.structured_content
        && !result.content.iter().any(|it| says(it, structured))
    {
        res.push_str(&whole_lines(&json::indented(structured.as_str())));
    }
    res
}

/// One block: its text, or a line about it.
pub(super) fn block(content: &Content) -> String {
    match content {
        Content::Text(text) => whole_lines(text),
        Content::Image { data, mime_type } => note("image", &[mime_type, &size(decoded(data))]),
        Content::Audio { data, mime_type } => note("audio", &[mime_type, &size(decoded(data))]),
        Content::Binary { data, mime_type, uri, text } => {
            let about = [mime_type, uri].into_iter().filter_map(|it| it.as_deref());
            if data.is_empty() && text.is_none() {
                note("link", &about.collect::<Vec<_>>())
            } else {
                let size = size(decoded(data));
                let note = note("resource", &about.chain([size.as_str()]).collect::<Vec<_>>());
                note + &text.as_deref().map(whole_lines).unwrap_or_default()
            }
        }
        Content::Unknown(raw) => note("a block of an unknown kind", &[&size(raw.as_bytes().len())]),
    }
}

/// The text without what commands a terminal, ended by a line end.
pub(super) fn whole_lines(text: &str) -> String {
    let mut res = plain::block(text);
    if !res.is_empty() && !res.ends_with('\n') {
        res.push('\n');
    }
    res
}

/// `[image: image/png, 76 bytes]`.
fn note(kind: &str, about: &[&str]) -> String {
    let about: Vec<String> = about.iter().map(|it| plain::line(it)).filter(|it| !it.is_empty()).collect();
    format!("[{kind}: {}]\n", about.join(", "))
}

/// How many bytes a text of base64 stands for.
fn decoded(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits * 3 / 4
}

fn size(bytes: usize) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    if bytes == 1 {
        return "1 byte".to_owned();
    }
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut shown = bytes as f64 / 1024.0;
    let mut unit = 0;
    while shown >= 1024.0 && unit + 1 < UNITS.len() {
        shown /= 1024.0;
        unit += 1;
    }
    format!("{shown:.1} {}", UNITS[unit])
}

/// Does the block say the same as the structured result? Many servers send it both ways.
fn says(content: &Content, structured: &RawJson) -> bool {
    let Content::Text(text) = content else { return false };
    let same = |a: serde_json::Value, b: serde_json::Value| a == b;
    match (serde_json::from_str(text), structured.read()) {
        (Ok(a), Ok(b)) => same(a, b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_model::{CallMetadata, ToolResult};

    use super::*;

    #[track_caller]
    fn check(wire: &str, want: &str) {
        let ToolResult { content, structured, is_error: _ } = serde_json::from_str(wire).unwrap();
        let result = CallResult {
            success: true,
            content,
            error: None,
            metadata: CallMetadata {
                server: None,
                tool: "t".into(),
                duration: Duration::ZERO,
                request_id: None,
                structured_content: structured,
                warnings: Vec::new(),
            },
        };
        assert_eq!(text(&result), want);
    }

    #[test]
    fn text_is_printed_as_it_is_but_commands_no_terminal() {
        check(r#"{"content":[{"type":"text","text":"a\n\tb"},{"type":"text","text":"c\n"}]}"#, "a\n\tb\nc\n");
        check(r#"{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m\u0007"}]}"#, "red\n");
        check(r#"{"content":[{"type":"text","text":""}]}"#, "");
        check("{}", "");
    }

    #[test]
    fn what_is_no_text_is_a_line() {
        check(
            r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}"#,
            "[image: image/png, 3 bytes]\n[audio: audio/wav, 1 byte]\n",
        );
        check(
            r#"{"content":[{"type":"resource","resource":{"uri":"a://b","mimeType":"text/plain","text":"hi"}}]}"#,
            "[resource: text/plain, a://b, 2 bytes]\nhi\n",
        );
        check(
            r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"x"}]}"#,
            "[link: file:///x]\n",
        );
        check(r#"{"content":[{"type":"hologram"}]}"#, "[a block of an unknown kind: 19 bytes]\n");
    }

    #[test]
    fn a_structured_result_is_shown_once() {
        check(
            r#"{"content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}"#,
            "5\n{\n  \"sum\": 5\n}\n",
        );
        check(
            r#"{"content":[{"type":"text","text":"{ \"sum\": 5 }"}],"structuredContent":{"sum":5}}"#,
            "{ \"sum\": 5 }\n",
        );
    }

    #[test]
    fn sizes_are_round() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(5 << 20), "5.0 MiB");
        assert_eq!(size(5 << 40), "5120.0 GiB");
    }
}
