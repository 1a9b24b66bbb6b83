//! Renders the changes of an edit as a unified diff, with masked lines.

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::render::checked_file::{Colour, printable};
use crate::render::mask::MaskedText;

/// The number of context lines around a change.
const CONTEXT_LINES: usize = 3;

/// The changes between two texts as a unified diff; empty if there are none.
///
/// Lines are compared before masking, so a removed and an added line may look the same.
pub fn render_diff(name: &str, before: &str, after: &str, colour: Colour) -> String {
    // Split like the masked text, where a lone carriage return does not end a line.
    let (olds, news) = (split_lines(before), split_lines(after));
    let diff = TextDiff::from_slices(&olds, &news);
    let (old, new) = (MaskedText::new(name, before), MaskedText::new(name, after));
    let (old, new) = (old.lines(), new.lines());
    let mut res = String::new();
    for hunk in diff.grouped_ops(CONTEXT_LINES) {
        if res.is_empty() {
            let name = printable(name);
            res.push_str(&format!("--- {name}\n+++ {name}\n"));
        }
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let range = |start: usize, end: usize| {
            format!("{},{}", if end > start { start + 1 } else { start }, end - start)
        };
        let old_range = range(first.old_range().start, last.old_range().end);
        let new_range = range(first.new_range().start, last.new_range().end);
        res.push_str(&paint_line(colour, AnsiColor::Cyan, &format!("@@ -{old_range} +{new_range} @@")));
        for change in hunk.iter().flat_map(|it| diff.iter_changes(it)) {
            let line = |lines: &[&str], index: Option<usize>| {
                index.and_then(|it| lines.get(it).copied()).unwrap_or_default().replace('\t', "    ")
            };
            match change.tag() {
                ChangeTag::Equal => res.push_str(&format!(" {}\n", line(&new, change.new_index()))),
                ChangeTag::Delete => {
                    let line = format!("-{}", line(&old, change.old_index()));
                    res.push_str(&paint_line(colour, AnsiColor::Red, &line));
                }
                ChangeTag::Insert => {
                    let line = format!("+{}", line(&new, change.new_index()));
                    res.push_str(&paint_line(colour, AnsiColor::Green, &line));
                }
            }
        }
    }
    res
}

fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn paint_line(colour: Colour, with: AnsiColor, line: &str) -> String {
    let style: Style = with.on_default();
    match colour {
        Colour::Always => format!("{style}{line}{style:#}\n"),
        Colour::Never => format!("{line}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_secrets_are_shown() {
        let shown = |text: &str| {
            let diff = render_diff("a", "", text, Colour::Never);
            diff.lines().skip(3).map(|it| format!("{}\n", &it[1..])).collect::<String>()
        };
        for text in [
            "{\"a\": {\"disabled\": true, \"command\": \"npx\", \"args\": [\"-y\", \"x-mcp\"], \"trust\": null}}\n",
            "{\"$schema\": \"https://opencode.ai/config.json\",\n\
             \"mcp\": {\"a\": {\"type\": \"local\", \"enabled\": false, \
             \"command\": [\"npx\", \"-y\", \"x-mcp\"], \"environment\": {\"LOG_LEVEL\": \"debug\"}}}}\n",
            "{\"mcpServers\": {\"a\": {\"alwaysAllow\": [\"read_file\"], \"url\": \"https://a.example/mcp\"}}}\n",
            "{\"servers\": {\n  // \"a\": {\n  //   \"command\": \"npx\"\n  // }\n}}\n",
            "{\"mcp\": {\"excluded\": [\"a\"], \"allowed\": [\"b\"]}}\n",
            "{\"projects\": {\"/home/me/p\": {\"mcpServers\": {\"a\": {\"type\": \"stdio\", \"command\": \"npx\", \
            \"args\": [\"-y\", \"x-mcp\"]}}}}}\n",
            "{\"mcp\": {\"a\": {\"type\": \"remote\", \"url\": \"https://a.example/mcp\", \"headers\": {\"A\": \
             \"{env:TOKEN}\", \"B\": \"{file:~/.secrets/mcp-key}\", \"C\": \"{file:./key.txt}\"}}}}\n",
            "extensions:\n  a:\n    type: stdio\n    cmd: npx\n    args: [\"-y\", x-mcp]\n    envs:\n      \
            LOG_LEVEL: debug\n    env_keys: [KEY]\n",
        ] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(
            shown(
                "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\", \"hunter\"], \"environment\": \
                {\"KEY\": \"hunter\"}}}}\n"
            ),
            "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\", \"******\"], \"environment\": {\"KEY\": \
            \"******\"}}}}\n"
        );
        assert_eq!(
            shown(
                "{\"oauthAccount\": {\"id\": \"hunter\"}, \"projects\": {\"/p\": {\"lastId\": \"hunter\", \
                 \"history\": [{\"display\": \"hunter\"}], \"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \
                 [\"hunter\"], \"env\": {\"KEY\": \"hunter\"}}}}}}\n"
            ),
            "{\"oauthAccount\": {\"id\": \"******\"}, \"projects\": {\"/p\": {\"lastId\": \"******\", \"history\": \
             [{\"display\": \"******\"}], \"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"******\"], \
             \"env\": {\"KEY\": \"******\"}}}}}}\n"
        );
        assert_eq!(
            shown(
                "{\"mcp\": {\"a\": {\"url\": \"https://a.example\", \"headers\": {\"A\": \"hunter {env:A}\", \"B\": \
                 \"{file:hunter two}\", \"C\": \"{file:ghp_hunter}\", \"D\": \"{env:hunter}}\", \"E\": \
                 \"{hunter:x}\"}}}}\n"
            ),
            "{\"mcp\": {\"a\": {\"url\": \"https://a.example\", \"headers\": {\"A\": \"****** {env:A}\", \"B\": \
             \"************ ****\", \"C\": \"*****************\", \"D\": \"{env:hunter}*\", \"E\": \"**********\"}}}}\n"
        );
        assert_eq!(
            shown(
                "{\"servers\": {\n  // \"a\": {\"command\": \"x\", \"env\": {\"KEY\": \"hunter\"}},\n  // of me\n}}\n"
            ),
            "{\"servers\": {\n  // \"a\": {\"command\": \"x\", \"env\": {\"KEY\": \"******\"}},\n  // ** **\n}}\n"
        );
    }

    #[test]
    fn tables_of_toml_are_shown_with_their_names() {
        let shown = |text: &str| {
            let diff = render_diff("/h/.codex/config.toml", "", text, Colour::Never);
            diff.lines().skip(3).map(|it| format!("{}\n", &it[1..])).collect::<String>()
        };
        for text in [
            "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"x-mcp\"]\nenabled = false\n",
            "model = \"*\"\n\n[mcp_servers.\"a b\"]\ncommand = \"x\"\n\n[mcp_servers.c.env]\nLOG_LEVEL = \"debug\"\n",
            "[[x]]\ncommand = \"*\"\n\n[mcp_servers.c]\nurl = \"https://a.example/mcp\"\n",
        ] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(
            shown(
                "[mcp_servers.a] # hunter\ncommand = \"x\"\nenv = { KEY = \"hunter\" }\n\n\
                [mcp_servers.a.http_headers]\nX = \"\"\"\n[hunter]\n\"\"\"\n"
            ),
            "[mcp_servers.a] # ******\ncommand = \"x\"\nenv = { KEY = \"******\" }\n\n[mcp_servers.a.http_headers]\n\
            X = \"**\n********\n**\"\n"
        );
        for secret in [
            "[mcp_servers.a] # args = [\"--token=hunter\"]\ncommand = \"x\"\n",
            "[mcp_servers.a.env.\"KEY=hunter\"]\nx = 1\n",
        ] {
            assert!(!shown(secret).contains("hunter"), "{}", shown(secret));
        }
    }

    #[test]
    fn changes_are_shown_without_secrets() {
        let before = "version: 1\r\nservers:\r\n  a:\r\n    comand: x\r\n    env: {A: hunter2}\r\n";
        let after = before.replace("comand", "command").replace("hunter2", "hunter3");
        assert_eq!(
            render_diff("m.yaml", before, &after, Colour::Never),
            "--- m.yaml\n+++ m.yaml\n@@ -1,5 +1,5 @@\n version: 1\n servers:\n   a:\n-    comand: *\n\
             -    env: {A: *******}\n+    \
             command: x\n+    env: {A: *******}\n"
        );
        assert_eq!(render_diff("m.yaml", before, before, Colour::Never), "");
        let painted = render_diff("m.yaml", "a: 1", "a: 2\nb: 3", Colour::Always);
        assert!(painted.contains("\u{1b}[32m+") && painted.contains("\u{1b}[31m-"), "{painted:?}");
    }
}
