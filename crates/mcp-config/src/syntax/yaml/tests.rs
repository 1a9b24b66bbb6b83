//! Tests of YAML: values, spans and diagnostics.

use super::*;

/// Each scalar and key of the tree as `text@start..end`, in order.
fn spans(node: &Node, out: &mut Vec<String>) {
    let at = |span: &Range<usize>| format!("{}..{}", span.start, span.end);
    match &node.content {
        Content::Sequence(items) => {
            out.push(format!("[{}]", at(&node.span)));
            items.iter().for_each(|it| spans(it, out));
        }
        Content::Mapping(members) => {
            out.push(format!("{{{}}}", at(&node.span)));
            for member in members {
                out.push(format!("{}:{}", member.key.text, at(&member.key.span)));
                spans(&member.value, out);
            }
        }
        Content::Shared(target) if target.span == node.span => spans(target, out),
        Content::Shared(_) => out.push(format!("*{}", at(&node.span))),
        scalar => out.push(format!("{scalar:?}@{}", at(&node.span))),
    }
}

#[track_caller]
fn check(text: &str, want: &str) {
    let parsed = parse(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let mut all = Vec::new();
    spans(&parsed.root.unwrap(), &mut all);
    assert_eq!(all.join(" "), want, "{text:?}");
}

#[track_caller]
fn check_diagnostics(text: &str, want: &[(Code, Range<usize>, &str)]) {
    let diagnostics = parse(text).diagnostics;
    let got: Vec<_> = diagnostics.iter().map(|it| (it.code, it.span.clone(), it.pointer.as_str())).collect();
    assert_eq!(got, want, "{text:?}");
}

#[test]
fn every_value_has_its_span() {
    check("a: b\nc: 'd e'\n", "{0..13} a:0..1 Text(\"b\")@3..4 c:5..6 Text(\"d e\")@8..13");
    check("a: [1, {b: true}]", "{0..17} a:0..1 [3..17] Integer(1)@4..5 {7..16} b:8..9 Bool(true)@11..15");
    check("- a\n- b\n\n# end\n", "[0..7] Text(\"a\")@2..3 Text(\"b\")@6..7");
    check("é: ü\n", "{0..6} é:0..2 Text(\"ü\")@4..6");
    check("a:\nb: ~", "{0..7} a:0..1 Null@1..1 b:3..4 Null@6..7");
    check("x: &a {k: v}\ny: *a", "{0..18} x:0..1 {6..12} k:7..8 Text(\"v\")@10..11 y:13..14 *16..18");
    check("", "Null@0..0");
}

#[test]
fn byte_order_mark_and_crlf_are_accepted() {
    check("\u{feff}a: b\r\nc: d\r\n", "{3..13} a:3..4 Text(\"b\")@6..7 c:9..10 Text(\"d\")@12..13");
}

#[test]
fn tags_of_the_core_schema_are_understood() {
    check(
        "[!!str 5, !!int 5, ! 7, !!float 1]",
        "[0..34] Text(\"5\")@7..8 Integer(5)@16..17 Text(\"7\")@21..22 Integer(1)@32..33",
    );
    check_diagnostics("a: !!int x", &[(Code::Syntax, 9..10, "/a")]);
    check_diagnostics(
        "a: [!x y, !!python/object:os.system {}]",
        &[(Code::UnknownTag, 4..6, "/a/0"), (Code::UnknownTag, 10..35, "/a/1")],
    );
}

#[test]
fn dm_019_every_duplicate_is_found_in_one_pass_and_the_first_stays() {
    let text = "a: 1\na: 2\nb: {c: 1, c: 2, c: 3}\n1: x\n\"1\": y\n";
    check_diagnostics(
        text,
        &[
            (Code::DuplicateKey, 5..6, "/a"),
            (Code::DuplicateKey, 20..21, "/b/c"),
            (Code::DuplicateKey, 26..27, "/b/c"),
            (Code::DuplicateKey, 37..40, "/1"),
        ],
    );
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics[2].labels[0].span, 14..15);
    assert!(matches!(parsed.root.unwrap().get("a").unwrap().value.content, Content::Integer(1)));
    assert_eq!(parsed.dropped, [8..9, 23..24, 29..30, 42..43]);
}

#[test]
fn invalid_keys_are_reported_and_the_rest_is_read() {
    check_diagnostics(
        "? [a]\n: b\n? {c: d}\n: e\nf: g\n",
        &[(Code::BadKey, 2..5, ""), (Code::BadKey, 12..18, "")],
    );
}

#[test]
fn alias_inside_its_anchor_is_an_error() {
    check_diagnostics("a: *x\nb: &y [*y]\n", &[(Code::Syntax, 3..5, "/a"), (Code::Syntax, 13..15, "/b/0")]);
}

#[test]
fn dm_020_a_merge_key_is_a_key() {
    check("<<: {a: 1}", "{0..10} <<:0..2 {4..10} a:5..6 Integer(1)@8..9");
}

#[test]
fn second_document_is_an_error() {
    check_diagnostics("a: 1\n---\nb: 2\n", &[(Code::ManyDocuments, 5..8, "")]);
    check("---\na: 1\n...\n", "{4..8} a:4..5 Integer(1)@7..8");
}

/// The line, the message and the marked text of each diagnostic.
#[track_caller]
fn check_mistakes(text: &str, want: &[(usize, &str, &str)]) {
    let diagnostics = parse(text).diagnostics;
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let got: Vec<_> = diagnostics
        .iter()
        .map(|it| {
            (line(it.span.start), it.message.trim_start_matches("invalid YAML: "), &text[it.span.clone()])
        })
        .collect();
    assert_eq!(got, want, "{text}");
}

#[test]
fn syntax_errors_are_described_where_they_are_made() {
    const TAB: &str = "a tab where only spaces are allowed";
    const COLON: &str = "a space is missing after `:`";
    check_mistakes("a:\n\tb: 1\n\tc: 2\nd: e\n", &[(2, TAB, "\t"), (3, TAB, "\t")]);
    check_mistakes("a:\n  b: 1\n\tc: 2\n", &[(3, TAB, "\t")]);
    check_mistakes("a:\n  b:1\n  c: 2\n", &[(2, COLON, ":")]);
    check_mistakes("- name:a\n  type: mcp\n", &[(1, COLON, ":")]);
    check_mistakes(
        "a:\n  - x\n  b: 1\n",
        &[(3, "this line is not a list item, but the lines above it are a list", "b")],
    );
    check_mistakes("a:\n   b: 1\n  c: 1\n", &[(3, "this line does not belong to the mapping above it", "c")]);
    check_mistakes("a: 'b\nc: d\n", &[(1, "a quote is not closed", "'")]);
    check_mistakes("a: [b\nc: d\n", &[(1, "the `[` is not closed", "[")]);
    check_mistakes("a: {b: [c}\n", &[(1, "`}` does not close `[`", "[")]);
    check_mistakes("a: \"b\" c\n", &[(1, "text after a closing quote", "c")]);
    check_mistakes("a: \"\\d\"\n", &[(1, "invalid escape sequence", "\"")]);
    check_mistakes("a: [*]\n", &[(1, "`*` and `&` begin an alias or an anchor", "*")]);
    check_mistakes("a: - b\n", &[(1, "a list cannot begin here", "-")]);
    check_mistakes(
        "a:\n<<<<<<< HEAD\n  b: 1\n=======\n  b: 2\n>>>>>>> x\n",
        &[(2, "an unresolved merge conflict", "<<<<<<< HEAD")],
    );
    check_mistakes("a: “b”\n", &[(1, "the typographic quotes are part of the value", "“b”")]);
    check_mistakes("a: “b c” and more\n", &[]);
}

#[test]
fn unusual_blank_in_the_indentation_is_an_error() {
    const BLANK: &str = "unusual whitespace (U+00A0) where only a space is allowed";
    check_mistakes("a:\n\u{a0}\u{a0}b: 1\n\u{a0}\u{a0}c: 1\n", &[(2, BLANK, "\u{a0}"), (3, BLANK, "\u{a0}")]);
    check_mistakes("a:\n  b: 1\n\u{a0} - c\n", &[(3, BLANK, "\u{a0}")]);
    assert!(parse("a:\n\u{a0}b: 1\n").root.is_none());
    check_mistakes("a:\n  b:\u{a0}1\n  c: 1\n", &[(2, BLANK, "\u{a0}")]);
    check_mistakes("- a:\u{3000}1\n  c: 1\n", &[(1, &BLANK.replace("00A0", "3000"), "\u{3000}")]);
}

#[test]
fn unusual_blank_before_a_value_is_a_warning() {
    const PART: &str = "the unusual whitespace (U+00A0) is part of the value";
    check_mistakes("a: \u{a0}b\nc: [\u{a0}d]\n", &[(1, PART, "\u{a0}"), (2, PART, "\u{a0}")]);
    check_mistakes("a: '\u{a0}b'\nc: d\u{a0}e\n", &[]);
}

#[test]
fn every_tab_of_the_indentation_is_reported_up_to_a_bound() {
    const TAB: &str = "a tab where only spaces are allowed";
    let text = |count: usize| format!("a:\n{}", "\tb: 1\n\t  - c\n".repeat(count / 2));
    for (count, reported) in [(2, 2), (8, 8), (400, 10)] {
        let want: Vec<_> = (2..reported + 2).map(|line| (line, TAB, "\t")).collect();
        check_mistakes(&text(count), &want);
    }
    check_mistakes("a: |\n  b\n  \tc\nd:\n\te: 1\n\tf: 1\n", &[(5, TAB, "\t"), (6, TAB, "\t")]);
}

#[test]
fn several_syntax_errors_are_reported_in_one_run() {
    check_mistakes(
        "a: b: c\nd:\n  e: @f\n  g: h\ni: `j\nk: 'l\n",
        &[
            (1, "unexpected `:`", ":"),
            (3, "a value cannot start with this character", "@"),
            (5, "a value cannot start with this character", "`"),
            (6, "a quote is not closed", "'"),
        ],
    );
    check_mistakes(
        "a:\n\tb: 1\nc: d: e\n",
        &[(2, "a tab where only spaces are allowed", "\t"), (3, "unexpected `:`", ":")],
    );
}
