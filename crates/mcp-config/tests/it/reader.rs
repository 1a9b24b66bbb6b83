//! The reader for other programs' configurations, by its example.

#[path = "../../examples/backup_jobs.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod backup_jobs;

use std::collections::BTreeMap;

use backup_jobs::{TEXTS, describe_jobs, fix_certain_mistakes, list_mistakes};
use mcp_host_config::reader::{Format, Optional, Required, read};
use mcp_host_config::{Colour, Diagnostic};
use serde::Deserialize;

#[test]
fn example_reports_all_mistakes_and_fixes_the_certain_ones() {
    let mut positions = Vec::new();
    for (name, format, text) in TEXTS {
        let found = list_mistakes(text, format);
        let (at, messages): (Vec<&str>, Vec<&str>) =
            found.iter().map(|it| it.split_once(' ').unwrap()).unzip();
        for (message, start) in messages.iter().zip([
            "unknown key 'schedul' (did you mean `schedule`?)",
            "'compress' must be true or false, not text (write `true` or `false`, without quotes",
            "'folder' is required (add `folder`)",
            "'name' must be text, not a number (put the value into quotes)",
            "'keep' must be from 1 to 365 (write how many backups are kept)",
        ]) {
            assert!(message.starts_with(start), "{name}: {messages:#?}");
        }
        positions.push(at.join(" "));
        let fixed = fix_certain_mistakes(text, format);
        assert_eq!(describe_jobs(&fixed, format), ["home /home compress=true"], "{name}: {fixed}");
        assert_eq!(list_mistakes(&fixed, format).len(), 2, "{name}: {fixed}");
    }
    assert_eq!(positions, ["4:5 5:15 6:5 6:11 7:11", "3:41 3:73 4:6 4:14 4:25", "4:1 5:12 8:1 8:8 9:8"]);
}

#[derive(Debug, Deserialize)]
struct Import {
    count: Optional<u8>,
    ratio: Optional<f32>,
    total: Optional<u64>,
    offset: Optional<i64>,
    size: Optional<f64>,
    note: Option<String>,
}

/// Reads a text, and compares the values that are there, or the mistake.
#[track_caller]
fn check_in(format: Format, text: &str, want: Result<&str, &str>) {
    let document = read::<Import>(text, format, |_, _| ());
    let mistakes: Vec<_> =
        document.diagnostics.iter().map(|it| format!("{} {}", it.pointer, it.message)).collect();
    assert_eq!(document.has_errors(), want.is_err(), "{text}: {mistakes:?}");
    assert!(document.diagnostics.iter().all(|it| it.fix.is_none()));
    let values = document.value.map(|Import { count, ratio, total, offset, size, note }| {
        let numbers = [
            count.value().map(u8::to_string),
            ratio.value().map(|it| format!("{it:?}")),
            total.value().map(u64::to_string),
            offset.value().map(i64::to_string),
            size.value().map(|it| format!("{it:?}")),
        ];
        numbers.into_iter().flatten().chain(note).collect::<Vec<_>>().join(" ")
    });
    match want {
        Ok(want) => assert_eq!((values.as_deref(), mistakes.len()), (Some(want), 0), "{mistakes:?}"),
        Err(want) => assert_eq!(mistakes, [want]),
    }
}

#[track_caller]
fn check(text: &str, want: Result<&str, &str>) {
    check_in(Format::Yaml, text, want);
}

/// Checks a number of a field in all three formats.
#[track_caller]
fn check_number(key: &str, number: &str, want: Result<&str, &str>) {
    let mistake = want.map_err(|it| format!("/{key} '{key}' {it}"));
    let want = mistake.as_ref().map(|it| *it).map_err(String::as_str);
    check_in(Format::Yaml, &format!("{key}: {number}\n"), want);
    check_in(Format::Json, &format!("{{\"{key}\": {number}}}\n"), want);
    check_in(Format::Toml, &format!("{key} = {number}\n"), want);
}

#[test]
fn numbers_of_all_sizes_and_options_are_read() {
    check("count: 255\nratio: 0.5\nnote: hi\n", Ok("255 0.5 hi"));
    check("note: null\n", Ok(""));
    check_number("count", "3", Ok("3"));
    check_number("count", "256", Err("must be a whole number from 0 to 255"));
    check_number("count", "-1", Err("must be a whole number from 0 to 255"));
    check_number("total", "-1", Err("must be a whole number from 0 to 18,446,744,073,709,551,615"));
    check_number("offset", "-9223372036854775808", Ok("-9223372036854775808"));
    check_number("ratio", "3.4e38", Ok("3.4e38"));
    check_number("ratio", "1e39", Err("must be a number from -3.4e38 to 3.4e38"));
    check_number("ratio", "-1e39", Err("must be a number from -3.4e38 to 3.4e38"));
    check("ratio: .inf\nsize: -.inf\n", Ok("inf -inf"));
    check_in(Format::Toml, "ratio = inf\n", Ok("inf"));
}

#[test]
fn integers_above_i64_are_read_where_the_format_has_them() {
    for (key, number, want) in [
        ("total", "18446744073709551615", Ok("18446744073709551615")),
        ("total", "18446744073709551616", Err("must be a whole number from 0 to 18,446,744,073,709,551,615")),
        ("count", "18446744073709551615", Err("must be a whole number from 0 to 255")),
        ("offset", "9223372036854775808", Err("is too large a number")),
        (
            "offset",
            "-9223372036854775809",
            Err("must be a whole number of at least -9,223,372,036,854,775,808"),
        ),
        ("size", "18446744073709551616", Ok("1.8446744073709552e19")),
        ("size", "1e400", Err("is too large a number")),
        ("size", "-1e400", Err("must be a number of at least -1.7e308")),
        ("count", "1e400", Err("must be a whole number from 0 to 255")),
    ] {
        let mistake = want.map_err(|it| format!("/{key} '{key}' {it}"));
        let want = mistake.as_ref().map(|it| *it).map_err(String::as_str);
        check_in(Format::Yaml, &format!("{key}: {number}\n"), want);
        check_in(Format::Json, &format!("{{\"{key}\": {number}}}\n"), want);
        let document = read::<Import>(&format!("{key} = {number}\n"), Format::Toml, |_, _| ());
        let [mistake] = &document.diagnostics[..] else { panic!("{:?}", document.diagnostics) };
        let range = if number.contains('e') {
            "write a number up to 1.7e308"
        } else {
            "TOML has whole numbers from -9,223,372,036,854,775,808 to 9,223,372,036,854,775,807; write such a \
             number, or a text in quotes if the program reads one"
        };
        assert_eq!((mistake.line, mistake.column), (1, key.len() + 4));
        assert_eq!(mistake.message, "invalid TOML: the number is out of range");
        assert_eq!(mistake.help.as_deref(), Some(range));
    }
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only the mistakes are compared")]
struct Photos {
    library: Required<String>,
    count: Optional<u8>,
    layout: Optional<Layout>,
    tags: Optional<Vec<String>>,
    sizes: Optional<BTreeMap<String, i64>>,
    pair: Optional<(i64, i64)>,
    letter: Optional<char>,
    backup: Optional<Backup>,
    camera: Optional<Camera>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Layout {
    Flat,
    Dated,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the mistakes are compared")]
enum Backup {
    Never,
    Every(i64),
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only the mistakes are compared")]
struct Camera {
    name: String,
    note: Option<String>,
}

/// The mistakes of a text, as `POINTER DISPLAY (HELP)`, with the title of the fix.
fn photo_mistakes(text: &str) -> Vec<String> {
    let document = read::<Photos>(text, Format::Yaml, |_, _| ());
    let line = |it: &Diagnostic| {
        let fix = it.fix.as_ref().map_or(String::new(), |fix| format!(" -> {}", fix.title()));
        format!("{} {it} ({}){fix}", it.pointer, it.help.as_deref().unwrap())
    };
    document.diagnostics.iter().map(line).collect()
}

#[test]
fn unsupported_type_is_a_fault_of_the_program() {
    for (text, name) in [
        ("pair: [1, 2]", "pair"),
        ("letter: 5", "letter"),
        ("backup: every", "backup"),
        ("backup: {every: 5}", "backup"),
        ("backup: {every: 5, never: 1}", "backup"),
    ] {
        let want = format!(
            "/{name} ValidationError: the program cannot read '{name}' (this is a fault of the program, not of the \
             file: it uses a type that its reader does not support)"
        );
        assert_eq!(photo_mistakes(&format!("library: a\n{text}\n")), [want]);
    }
}

#[test]
fn mistake_in_an_unwrapped_value_is_reported_at_that_value() {
    let mistakes =
        photo_mistakes("library: a\ntags: [a, 1]\nsizes: {a: 1, b: x}\ncamera: {note: 5, name: x}\n");
    assert_eq!(
        mistakes,
        [
            "/tags/1 ValidationError: item 2 of 'tags' must be text, not a number (put the value into quotes) \
             -> put it into quotes",
            "/sizes/b ValidationError: 'b' must be a whole number, not text (write the number alone, without quotes \
             or unit)",
            "/camera/note ValidationError: 'note' must be text, not a number (put the value into quotes) \
             -> put it into quotes",
        ]
    );
    let missing = photo_mistakes("library: a\ncamera: {note: x}\n");
    assert_eq!(missing, ["/camera/name ValidationError: 'name' is required (add `name`)"]);
}

#[test]
fn unknown_alias_in_an_unwrapped_item_is_one_mistake() {
    let mistakes = photo_mistakes("library: a\ntags: [a, *missing]\n");
    let [mistake] = &mistakes[..] else { panic!("{mistakes:#?}") };
    assert!(mistake.contains("missing"), "{mistake}");
}

#[test]
fn misspelt_required_key_is_one_mistake() {
    let want = "/libary ValidationError: unknown key 'libary' (did you mean `library`?) -> write `library`";
    assert_eq!(photo_mistakes("libary: a\n"), [want]);
    let missing = "/library ValidationError: 'library' is required (add `library`)";
    assert_eq!(photo_mistakes("count: 1\n"), [missing]);
}

#[test]
fn unknown_word_is_a_validation_error() {
    let want =
        "/layout ValidationError: 'layout' must be one of `flat`, `dated` (write one of `flat`, `dated`)";
    assert_eq!(photo_mistakes("library: a\nlayout: round\n"), [want]);
}

#[test]
fn mapping_instead_of_a_word_is_a_mistake_of_the_file() {
    let want =
        "/layout ValidationError: 'layout' must be one of `flat`, `dated` (write one of `flat`, `dated`)";
    assert_eq!(photo_mistakes("library: a\nlayout: {flat: 1}\n"), [want]);
    assert_eq!(photo_mistakes("library: a\nlayout: {round: 1}\n"), [want]);
}

/// A folder, which the program itself reads from text.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Folder(#[expect(dead_code, reason = "only the mistakes are compared")] String);

impl TryFrom<String> for Folder {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Folder, &'static str> {
        if text.starts_with('/') { Ok(Folder(text)) } else { Err("a folder begins with `/`") }
    }
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only the mistakes are compared")]
struct Server {
    root: Optional<Folder>,
    roots: Optional<Vec<Folder>>,
    address: Optional<std::net::IpAddr>,
    port: Optional<std::num::NonZeroU16>,
}

#[test]
fn error_of_the_programs_own_type_is_reported_at_the_value() {
    let text = "root: home\nroots: [/a, hunter2]\naddress: localhost\nport: 0\n";
    let document = read::<Server>(text, Format::Yaml, |_, _| ());
    let line = |it: &Diagnostic| format!("{}:{} {} {it}", it.line, it.column, it.pointer);
    let mistakes: Vec<_> = document.diagnostics.iter().map(line).collect();
    assert_eq!(
        mistakes,
        [
            "1:7 /root ValidationError: 'root' cannot be read: a folder begins with `/`",
            "2:13 /roots/1 ValidationError: item 2 of 'roots' cannot be read: a folder begins with `/`",
            "3:10 /address ValidationError: 'address' cannot be read: invalid IP address syntax",
            "4:7 /port ValidationError: 'port' must be a nonzero u16",
        ]
    );
    let helps: Vec<_> = document.diagnostics.iter().map(|it| it.help.as_deref()).collect();
    assert_eq!(helps, [None, None, None, Some("write a nonzero u16")]);
    assert!(document.diagnostics.iter().all(|it| it.fix.is_none()));
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only the mistakes are compared")]
struct Uploads {
    host: Required<String>,
    password: Optional<String>,
    headers: Optional<BTreeMap<String, String>>,
    limits: Optional<Vec<Vec<i64>>>,
    copy: Optional<String>,
}

fn render_text(text: &str, format: Format, secret_keys: &[&str]) -> String {
    read::<Uploads>(text, format, |_, _| ()).render("uploads", text, Colour::Never, secret_keys)
}

/// The first line of the text that is rendered.
fn rendered_first_line(text: &str, format: Format, secret_keys: &[&str]) -> String {
    let page = render_text(text, format, secret_keys);
    let mut lines = page.lines().filter_map(|it| it.split_once(" | "));
    lines.find(|it| it.0.trim().parse::<usize>().is_ok()).unwrap().1.to_owned()
}

#[test]
fn document_shows_the_values_that_are_no_secrets() {
    let json = r#"{"host": 5, "password": "hunter2", "pasword": "hunter3", "headers": {"Auth": "b64"}, "limits": [["x"], [7]]} // note"#;
    let keys = ["password", "headers"];
    let hidden = r#"{"host": 5, "password": "*******", "pasword": "*******", "headers": {"Auth": "***"}, "limits": [["x"], [*]]} // ****"#;
    assert_eq!(rendered_first_line(json, Format::Json, &keys), hidden);
    assert_eq!(rendered_first_line(json, Format::Json, &[]), json);
    let toml = "host = 'a'\npassword = 42 # 42\n";
    assert_eq!(rendered_first_line(toml, Format::Toml, &keys), "password = ** # **");
    // An anchor outside of the secret, a missing space, and a fix that would write the secret.
    let yaml = "host: [&a hunter2, 5]\npassword: *a\ncopy: 4\n";
    assert_eq!(rendered_first_line(yaml, Format::Yaml, &keys), "host: [&* *******, *]");
    let yaml = "host: a\nlimits:\n  password:hunter2\n";
    assert_eq!(rendered_first_line(yaml, Format::Yaml, &keys), "  ****************");
    let yaml = "host: a\nlimits: [[\"42\"]]\n";
    assert!(!render_text(yaml, Format::Yaml, &["limits"]).contains("42"));
    assert!(render_text(yaml, Format::Yaml, &[]).contains("+ limits: [[42]]"));
    let broken = "host: [hunter2\n";
    assert!(!render_text(broken, Format::Yaml, &keys).contains("hunter2"));
    assert!(render_text(broken, Format::Yaml, &[]).contains("hunter2"));
}
