//! Properties of any text: no panic, valid spans, deterministic results.

use std::ops::Range;

use mcp_host_config::{
    Applicability, CheckOutcome, CheckedFile, Colour, Diagnostic, Document, Label, NewServer, NewTransport,
    Profile, Reading, ResolveContext, SarifTool, Switch, add_server, detect, fix_all, read, remove_server,
    render, render_diff, render_github, render_sarif, resolve, set_enabled, text_to_json, write_servers,
};
use mcp_host_model::ServerId;
use proptest::prelude::*;

/// Checks that rendering accepts any span: past the end, reversed, inside a character.
fn check_any_span_is_drawn(text: &str, diagnostic: &Diagnostic) {
    for (start, end) in
        [(0, usize::MAX), (usize::MAX, 0), (1, 2), (text.len(), text.len()), (text.len() / 2, 0)]
    {
        let mut odd = diagnostic.clone();
        odd.span = Range { start, end };
        odd.labels = vec![Label::new(Range { start: end, end: start }, "here".to_owned())];
        assert!(render("x.yaml", text, &[odd], Colour::Never).contains(diagnostic.code.as_str()));
    }
}

/// Checks spans, order and output of reading a text by each profile.
fn check_reading(text: &str) {
    detect("x.yaml", text);
    text_to_json(text);
    for &profile in Profile::ALL {
        let document = Document::new("x.yaml", text, profile);
        let reading = read(&document);
        for diagnostic in &reading.diagnostics {
            for span in diagnostic.labels.iter().map(|it| &it.span).chain([&diagnostic.span]) {
                assert!(text.get(span.clone()).is_some(), "{span:?} does not fit: {diagnostic:?}");
            }
            assert!(diagnostic.line >= 1 && diagnostic.column >= 1);
            let lines = text.split('\n').count();
            assert!(diagnostic.line <= lines, "line {} of {lines}", diagnostic.line);
        }
        let order: Vec<_> = reading.diagnostics.iter().map(|it| it.span.start).collect();
        assert!(order.is_sorted());
        if let Some(first) = reading.diagnostics.first() {
            check_any_span_is_drawn(text, first);
        }
        let drawn = render("x.yaml", text, &reading.diagnostics, Colour::Never);
        let is_printable = drawn.chars().all(|it| it == '\n' || !it.is_control());
        assert!(is_printable, "a control character is drawn: {drawn:?}");
        let context = ResolveContext::new(&|_| None, std::path::Path::new("."), &|_| Err("no".to_owned()));
        for server in &reading.servers {
            assert!(text.get(server.origin.span.clone()).is_some());
            for error in resolve(server, &context).err().into_iter().flatten() {
                assert!(text.get(reading.diagnose(&error).span).is_some());
            }
        }
        assert_eq!(read(&document).diagnostics, reading.diagnostics);
    }
}

/// Checks that fixes and edits of a text are refused or change nothing else.
fn check_edits(text: &str) {
    for &profile in Profile::ALL {
        let document = Document::new("x.yaml", text, profile);
        check_edits_of_profile(&document, &read(&document));
    }
}

fn check_edits_of_profile(document: &Document<'_>, reading: &Reading) {
    let Document { name, text, .. } = *document;
    for fix in reading.diagnostics.iter().filter_map(|it| it.fix.as_ref()) {
        let mut end = 0;
        for edit in fix.edits() {
            assert!(edit.span.start >= end && text.get(edit.span.clone()).is_some(), "{edit:?}");
            end = edit.span.end;
        }
    }
    for least in [Applicability::Certain, Applicability::Suggested] {
        let fixed = fix_all(document, least);
        let again = read(&document.with_text(&fixed.text));
        assert!(fixed.fixed.is_empty() == (fixed.text == text));
        assert!(fixed.fixed.is_empty() || again.diagnostics != reading.diagnostics);
        let shown = render_diff(name, text, &fixed.text, Colour::Never);
        assert!(shown.chars().all(|it| it == '\n' || !it.is_control()), "{shown:?}");
    }
    let outcome = CheckOutcome::Read { text, diagnostics: &reading.diagnostics };
    let checked = [CheckedFile::new(name, outcome)];
    assert_eq!(render_github(&checked).lines().count(), reading.diagnostics.len());
    render_sarif(&SarifTool::new("x", "1.0.0"), &checked);
    for target in Profile::ALL {
        write_servers(&reading.servers, *target, &|_| None);
    }
    let entry_count = |text: &str| read(&document.with_text(text)).entries.len();
    for entry in &reading.entries {
        if let Ok(text) = remove_server(document, &entry.name) {
            assert_eq!(entry_count(&text) + 1, reading.entries.len(), "{text:?}");
        }
        if let Ok(text) = set_enabled(document, &entry.name, Switch::Off) {
            assert_eq!(entry_count(&text), reading.entries.len(), "{text:?}");
        }
    }
    let new = NewServer::new(
        ServerId::parse("new_one").unwrap(),
        NewTransport::Stdio { command: "npx".to_owned(), args: vec!["-y".to_owned()], env: Vec::new() },
    );
    if let Ok(added) = add_server(document, &new.into_spec(document.profile)) {
        assert_eq!(entry_count(&added.text), reading.entries.len() + 1, "{added:?}");
        assert_eq!(
            remove_server(&document.with_text(&added.text), "new_one").map(|it| entry_count(&it)),
            Ok(reading.entries.len())
        );
    }
}

/// Words of configurations, so that generated texts resemble them.
fn fragments() -> impl Strategy<Value = String> {
    let words = [
        "tools:",
        "servers:",
        "version: 1",
        "- name: a",
        "type: mcp",
        "server: s",
        "command: npx",
        "command: bash",
        "transport: http",
        "transport: stdio",
        "transport: streamable_http",
        "url: https://a.example",
        "args: [x]",
        "env:",
        "env: {A: '${B}'}",
        "headers: {A: b}",
        "config: {a: [1, {b: c}]}",
        "  ",
        "    ",
        "\n",
        "\n  ",
        "\n    ",
        "\n      ",
        "- ",
        "a:",
        "&x ",
        "*x",
        "<<: *x",
        "'",
        "\"",
        "{",
        "}",
        "[",
        "]",
        "|\n",
        ">-\n",
        "#",
        "---\n",
        "...\n",
        "!!str ",
        "!x ",
        "\t",
        "\r\n",
        "\u{feff}",
        "\u{1b}[31m",
        "é",
        "日本",
        "\u{202e}",
        "? ",
        ": ",
        ",",
        "request_timeout: 30000",
        "timeout: .inf",
        "transform: [{prefix: a, suffix: b}]",
        "${A}",
        "0x",
        "enabled: false",
        "envFile: x",
        "1e999",
        "99999999999999999999",
        "{\"mcpServers\": {",
        "\"a\": {",
        "\"command\": \"npx\",",
        "\"command\": [\"x\", ",
        "\"url\": \"https://a.example\",",
        "\"type\": \"http\",",
        "\"env\": {\"A\": \"${B:-c}\"},",
        "\"env\": [{\"name\": \"A\", \"value\": \"b\"}],",
        "\"headers\": {\"A\": \"${input:x}\"},",
        "\"name\": \"a\",",
        "\"args\": [",
        "\"timeout\": 1500,",
        "{\"method\": \"session/new\", \"params\": {\"cwd\": \"/\", \"mcpServers\": [",
        "\"inputs\": [{\"id\": \"x\"}],",
        "\"servers\": {",
        "// c\n",
        "/* c */",
        "$A",
        "\\u00e9",
        "\u{85}",
        "\u{2028}",
        "\0",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_any_text_does_not_panic(text in any::<String>()) {
        check_reading(&text);
    }

    #[test]
    fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_reading(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn reading_generated_configurations_does_not_panic(words in prop::collection::vec(fragments(), 0..40)) {
        check_reading(&words.concat());
    }

    #[test]
    fn reading_truncated_json_does_not_panic(start in 0usize..900, length in 0usize..60) {
        for text in [
            include_str!("../../../../fixtures/mcp-json/valid/vscode.json"),
            include_str!("../../../../fixtures/acp-v1/valid/session_new.json"),
        ] {
            let start = start.min(text.len());
            let end = (start + length).min(text.len());
            check_reading(&format!("{}{}", &text[..start], &text[end..]));
        }
    }

    #[test]
    fn reading_truncated_yaml_does_not_panic(start in 0usize..900, length in 0usize..60) {
        let text = include_str!("../../../../fixtures/holodeck/valid/stdio_npx.yaml");
        let start = start.min(text.len());
        let end = (start + length).min(text.len());
        check_reading(&format!("{}{}", &text[..start], &text[end..]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn editing_generated_configurations_changes_nothing_else(words in prop::collection::vec(fragments(), 0..40)) {
        check_edits(&words.concat());
    }

    #[test]
    fn editing_scrambled_files_changes_nothing_else(
        file in prop::sample::select(vec![
            include_str!("../../../../fixtures/holodeck/valid/stdio_npx.yaml"),
            include_str!("../../../../fixtures/holodeck/valid/anchors_and_aliases.yaml"),
            include_str!("../../../../fixtures/dominds/valid/transforms.yaml"),
            include_str!("../../../../fixtures/dominds/valid/anchors.yaml"),
        ]),
        start in 0usize..900,
        length in 0usize..60,
        to in 0usize..900,
    ) {
        let (start, to) = (start.min(file.len()), to.min(file.len()));
        let end = (start + length).min(file.len());
        let piece = &file[start..end];
        let rest = format!("{}{}", &file[..start], &file[end..]);
        let to = to.min(rest.len());
        check_edits(&format!("{}{piece}{}", &rest[..to], &rest[to..]));
    }
}
