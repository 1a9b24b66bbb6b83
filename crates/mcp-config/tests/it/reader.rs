//! The reader for other programs' configurations, by its example.

#[path = "../../examples/backup_jobs.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod backup_jobs;

use std::collections::BTreeMap;

use backup_jobs::{TEXTS, fixed, jobs, mistakes};
use mcp_config::Diagnostic;
use mcp_config::reader::{Format, Optional, Required, read};
use serde::Deserialize;

#[test]
fn example_reports_all_mistakes_and_fixes_the_certain_ones() {
    let mut positions = Vec::new();
    for (name, format, text) in TEXTS {
        let found = mistakes(text, format);
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
        let fixed = fixed(text, format);
        assert_eq!(jobs(&fixed, format), ["home /home compress=true"], "{name}: {fixed}");
        assert_eq!(mistakes(&fixed, format).len(), 2, "{name}: {fixed}");
    }
    assert_eq!(positions, ["4:5 5:15 6:5 6:11 7:11", "3:41 3:73 4:6 4:14 4:25", "4:1 5:12 8:1 8:8 9:8"]);
}

#[derive(Debug, Deserialize)]
struct Import {
    count: Optional<u8>,
    ratio: Optional<f32>,
    note: Option<String>,
}

#[track_caller]
fn check(text: &str, want: Result<&str, &str>) {
    let document = read::<Import>(text, Format::Yaml, |_, _| ());
    let mistakes: Vec<_> =
        document.diagnostics.iter().map(|it| format!("{} {}", it.pointer, it.message)).collect();
    assert_eq!(document.has_errors(), want.is_err());
    assert!(document.diagnostics.iter().all(|it| it.fix.is_none()));
    let Import { count, ratio, note } = document.value.unwrap();
    let values = format!("{:?} {:?} {note:?}", count.value(), ratio.value());
    match want {
        Ok(want) => assert_eq!((values.as_str(), mistakes.len()), (want, 0), "{mistakes:?}"),
        Err(want) => assert_eq!(mistakes, [want]),
    }
}

#[test]
fn numbers_of_all_sizes_and_options_are_read() {
    check("count: 255\nratio: 0.5\nnote: hi\n", Ok("Some(255) Some(0.5) Some(\"hi\")"));
    check("count: 3\n", Ok("Some(3) None None"));
    check("note: null\n", Ok("None None None"));
    check("count: 256\n", Err("/count 'count' must be a whole number from 0 to 255"));
    check("count: -1\n", Err("/count 'count' must be a whole number from 0 to 255"));
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
    for (text, name) in [("pair: [1, 2]", "pair"), ("letter: 5", "letter"), ("backup: every", "backup")] {
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
