//! Tests of JSON texts.

use super::*;
use crate::syntax::to_json;

#[track_caller]
fn check_tree(text: &str, syntax: Syntax, want: &str) {
    let parsed = parse(text, syntax);
    assert!(parsed.diagnostics.is_empty(), "{text:?}: {:?}", parsed.diagnostics);
    assert_eq!(parsed.root.as_ref().and_then(to_json).as_deref(), Some(want), "{text:?}");
}

/// Checks the first diagnostic and the text that it points at.
#[track_caller]
fn check_first_diagnostic(text: &str, syntax: Syntax, want: &str, at: &str) {
    let parsed = parse(text, syntax);
    let diagnostic = parsed.diagnostics.first().unwrap_or_else(|| panic!("{text:?} has no mistake"));
    assert_eq!(
        (diagnostic.message.as_str(), text.get(diagnostic.span.clone())),
        (want, Some(at)),
        "{text:?}"
    );
}

#[test]
fn dia_02_comments_and_last_commas_are_for_editors_only() {
    let text = "// a\n{\"a\": [1, /* b */ 2,], // c\n}\n";
    check_tree(text, Syntax::JsonWithComments, r#"{"a":[1,2]}"#);
    check_first_diagnostic(text, Syntax::Json, "invalid JSON: comments are not allowed here", "// a");
    check_first_diagnostic(
        "[1,]",
        Syntax::Json,
        "invalid JSON: a comma before a closing bracket is not allowed",
        ",",
    );
}

#[test]
fn byte_order_mark_and_empty_file_are_accepted() {
    check_tree("\u{feff}[true]", Syntax::Json, "[true]");
    let root = parse("\u{feff}[true]", Syntax::Json).root.unwrap();
    assert_eq!(root.span, 3..9);
    for text in ["", " \n", "\u{feff}", "// nothing\n"] {
        check_tree(text, Syntax::JsonWithComments, "null");
    }
}

#[test]
fn numbers_keep_their_digits() {
    check_tree(
        "[0, -7, 1.50, 1e3, 123456789012345678901]",
        Syntax::Json,
        "[0,-7,1.5,1000.0,123456789012345678901]",
    );
}

#[test]
fn x_16_duplicate_key_is_reported_with_both_positions() {
    let text = r#"{"a": {"b": 1, "b": 2}}"#;
    let parsed = parse(text, Syntax::Json);
    let [diagnostic] = &parsed.diagnostics[..] else { panic!("{:?}", parsed.diagnostics) };
    assert_eq!((diagnostic.code, diagnostic.pointer.as_str()), (Code::DuplicateKey, "/a/b"));
    assert_eq!((diagnostic.span.clone(), diagnostic.labels[0].span.clone()), (15..18, 7..10));
    assert_eq!(parsed.dropped, vec![Range { start: 20, end: 21 }]);
    check_first_diagnostic(r#"{"\u0061": 1, "a": 2}"#, Syntax::Json, "the key 'a' appears twice", "\"a\"");
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    let check = |text, why, at| {
        for syntax in [Syntax::Json, Syntax::JsonWithComments] {
            check_first_diagnostic(text, syntax, &format!("invalid JSON: {why}"), at);
        }
    };
    check("{'a': 1}", "single quotes are not allowed", "'");
    check("{a: 1}", "a key is not in quotes", "a");
    check("{\"a\": b}", "unexpected word", "b");
    check("{\"a\" 1}", "a `:` is missing after a key", "1");
    check("{\"a\": 1 \"b\": 2}", "a comma is missing", "");
    check("[1 2]", "a comma is missing", "");
    check("{} {}", "unexpected text after the value", "{");
    check(
        "\"mcpServers\": {}",
        "this is a fragment: a key and its value without the surrounding braces",
        ":",
    );
    check("\"a\nb\"", "a string contains a line break or another control character", "\"");
    check("[0x10]", "a number is not written as JSON writes numbers", "0");
    check("\"C:\\tools\\x\"", "invalid escape sequence", "\\x");
    check_first_diagnostic(
        "[1,\u{a0}2]",
        Syntax::Json,
        "invalid JSON: unusual whitespace (U+00A0) where only a space is allowed",
        "\u{a0}",
    );
}

#[test]
fn habits_of_other_languages_are_named() {
    let check = |text, why, at| {
        check_first_diagnostic(text, Syntax::JsonWithComments, &format!("invalid JSON: {why}"), at);
    };
    check("{“a”: 1}", "typographic quotes are not quotes", "“");
    check("{\"a\": “b”}", "typographic quotes are not quotes", "“");
    check("{\"a\": b”}", "typographic quotes are not quotes", "”");
    check("{\"a\"： 1}", "`：` is not the sign `:`", "：");
    check("{\"a\": 1，\"b\": 2}", "`，` is not the sign `,`", "，");
    check("# x\n{}", "`#` does not begin a comment in JSON", "#");
    check("{\"a\": 1, # x\n}", "`#` does not begin a comment in JSON", "#");
    check("{\"a\" = 1}", "`=` instead of `:`", "=");
    check("{\"a\": 1; \"b\": 2}", "`;` instead of `,`", ";");
    check("{\"a\": `b`}", "backquotes are not quotes", "`");
    check("```json\n{}\n```", "the fence of a Markdown code block is not JSON", "`");
    check("{\"a\": 1, ...}", "`...` is a placeholder for what was left out", ".");
    check("{\"a\": True}", "this word belongs to another language", "True");
    check("[None]", "this word belongs to another language", "None");
    check("{\n<<<<<<< HEAD\n\"a\": 1\n}", "an unresolved merge conflict", "<");
    check("{\"a\": \"b \"c\" d\"}", "a quote in the middle of a text ends it", "c");
}

/// Checks the text from the first diagnostic on, and that from its label on.
#[track_caller]
fn check_bracket(text: &str, message: &str, at: &str, label: &str) {
    let parsed = parse(text, Syntax::JsonWithComments);
    let [diagnostic] = &parsed.diagnostics[..] else { panic!("{:?}", parsed.diagnostics) };
    assert_eq!(diagnostic.message, format!("invalid JSON: {message}"), "{text}");
    assert!(text[diagnostic.span.start..].starts_with(at), "{text}: {:?}", diagnostic.span);
    let labels: Vec<_> = diagnostic.labels.iter().map(|it| &text[it.span.start..]).collect();
    assert!(labels.len() == 1 && labels[0].starts_with(label), "{text}: {labels:?}");
}

#[test]
fn missing_bracket_is_reported_where_it_opened() {
    check_bracket("{\"a\": [1, 2", "the `[` is not closed (2 closing brackets are missing)", "[1", "");
    check_bracket(
        "{\n  \"a\": {\n    \"b\": {\n      \"c\": 1\n    ,\n    \"d\": 2\n  }\n}\n",
        "the `{` is not closed",
        "{\n      \"c\"",
        "",
    );
    check_bracket(
        "{\n  \"a\": {\n    \"b\": {},\n  \"d\": 2\n}\n",
        "the `{` is not closed",
        "{\n    \"b\"",
        "",
    );
    check_bracket("{\"a\": [1, 2}", "`}` does not close `[`", "}", "[1");
    check_bracket("{\"a\": {\"b\": 1]}", "`]` does not close `{`", "]}", "{\"b");
    check_bracket("{\"a\": {}}}", "there is a closing bracket too many", "}", "}}");
}

#[test]
fn quote_that_is_not_closed_on_its_line_is_the_only_diagnostic() {
    let parsed = parse("{\n  \"a\": \"b,\n  \"c\": \"d\"\n}", Syntax::JsonWithComments);
    let [diagnostic] = &parsed.diagnostics[..] else { panic!("{:?}", parsed.diagnostics) };
    assert_eq!(diagnostic.message, "invalid JSON: a quote is not closed on its line");
    assert_eq!(diagnostic.span, 9..10);
}

#[test]
fn malicious_text_is_refused() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check_tree(&deep(64), Syntax::Json, &deep(64));
    for depth in [65, 600, 200_000] {
        let parsed = parse(&deep(depth), Syntax::Json);
        assert_eq!(parsed.diagnostics[0].message, "the file is nested deeper than 64 levels", "{depth}");
    }
    let many = format!("[{}0]", "0,".repeat(100_000));
    assert_eq!(parse(&many, Syntax::Json).diagnostics[0].message, "the file has more than 100000 values");
}

#[test]
fn text_with_json_comments_is_not_parsed_as_yaml() {
    let root = |text: &str| crate::syntax::parse_any(text).root.as_ref().and_then(to_json);
    assert_eq!(root("{a: b}").as_deref(), Some(r#"{"a":"b"}"#));
    assert_eq!(root("{url: https://a.example}").as_deref(), Some(r#"{"url":"https://a.example"}"#));
    assert_eq!(root("{\"a\": 1, // \"b\": 2\n}").as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(root("{\"a\": 1 // \"b\": 2\n \"c\": 3}"), None);
    assert_eq!(root("a: {b: 1} # \"c\"").as_deref(), Some(r#"{"a":{"b":1}}"#));
}

/// Five servers, each over several lines.
fn servers() -> Vec<String> {
    let server = |name: char| {
        format!(
            "    \"{name}\": {{\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"${{A}}\"],\n      \"env\": \
             {{\"A\": \"https://b.example\", \"B\": \"\"}},\n      \"timeout\": 30,\n      \"disabled\": false\n    }}"
        )
    };
    "abcde".chars().map(server).collect()
}

/// A mistake: a part of a server, and its replacement.
const MISTAKES: &[(&str, &str)] = &[
    // Commas and colons.
    ("\"npx\",", "\"npx\""),
    ("\"npx\",", "\"npx\";"),
    ("\"npx\",", "\"npx\",,"),
    ("\"npx\",", "\"npx\"，"),
    ("\"-y\", ", "\"-y\" "),
    ("[\"-y\"", "[, \"-y\""),
    (": \"npx\"", " \"npx\""),
    (": \"npx\"", " = \"npx\""),
    (": \"npx\"", "： \"npx\""),
    (": {\"A\"", " {\"A\""),
    // Quotes.
    ("\"npx\"", "\"npx"),
    ("\"npx\"", "“npx”"),
    ("\"npx\"", "'npx'"),
    ("\"npx\"", "`npx`"),
    ("\"${A}\"", "\"${A}"),
    ("\"${A}\"]", "\"${A}]"),
    ("\"npx\"", "\"n\npx\""),
    ("\"npx\"", "\"npx\n\""),
    ("\"npx\"", "\"n\tpx\""),
    ("\"npx\"", "\"C:\\Users\\my\""),
    ("\"timeout\"", "timeout"),
    ("\"timeout\"", "'timeout'"),
    ("\"timeout\"", "“timeout”"),
    ("\"timeout\"", "\"timeout"),
    // Values.
    ("\"npx\"", "npx"),
    ("false", "False"),
    ("30", "0x1e"),
    ("30", ".5"),
    ("30", "+30"),
    ("30", "thirty"),
    (" 30", ""),
    // Comments.
    ("30,", "30, # of mine"),
];

fn text_with(mistakes: &[(usize, usize)]) -> String {
    let mut servers = servers();
    for (server, mistake) in mistakes {
        let (from, to) = MISTAKES[*mistake];
        assert!(servers[*server].contains(from), "{from}");
        servers[*server] = servers[*server].replacen(from, to, 1);
    }
    format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", servers.join(",\n"))
}

fn errors_of(text: &str) -> Vec<(String, Range<usize>)> {
    let diagnostics = parse(text, Syntax::Json).diagnostics;
    diagnostics.into_iter().map(|it| (it.message, it.span)).collect()
}

#[test]
fn each_of_two_mistakes_is_reported_and_nothing_else() {
    for (first, mistake) in MISTAKES.iter().enumerate() {
        let alone = errors_of(&text_with(&[(1, first)]));
        let [(message, span)] = &alone[..] else { panic!("{mistake:?}: {alone:?}") };
        for (second, other) in MISTAKES.iter().enumerate() {
            let text = text_with(&[(1, first), (3, second)]);
            let found = errors_of(&text);
            let [one, two] = &found[..] else { panic!("{mistake:?}, {other:?}: {found:?}") };
            assert_eq!(one, &(message.clone(), span.clone()), "{text}");
            let only = errors_of(&text_with(&[(3, second)])).remove(0);
            assert_eq!(two.0, only.0, "{text}");
            assert_eq!(&text[two.1.clone()], &text_with(&[(3, second)])[only.1.clone()], "{text}");
        }
    }
}

#[test]
fn nothing_is_reported_after_a_mistake_without_an_obvious_correction() {
    let check =
        |text: &str, want: usize| assert_eq!(errors_of(text).len(), want, "{text}: {:?}", errors_of(text));
    // A bracket that is not closed, a text that ends at a quote in its middle, a placeholder, a merge conflict.
    check("{\"a\": {\"b\": [1, 2, \"c\": 3}, d: 4}", 1);
    check("{\"a\": \"b \"c\" d\", e: 1}", 1);
    check("{\"a\": [1, ...], b: 2}", 1);
    check("{\n<<<<<<< HEAD\n  \"a\": 1\n=======\n  a: 2\n>>>>>>> x\n}", 1);
    check("{a: 1, b: 2, \"c\": {", 3);
    check("{\"a\": {\"b\": \"x\n\" },\n\"c\": [\"y\nz\",\n \"d\"]}", 2);
    let many: Vec<String> = (0..50).map(|it| format!("\"k{it}\": True")).collect();
    check(&format!("{{{}}}", many.join(",\n")), 10);
}
