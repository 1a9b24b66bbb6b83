//! The reader for other programs' configurations, by its example.

#[path = "../../examples/backup_jobs.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod backup_jobs;

use backup_jobs::{TEXTS, fixed, jobs, mistakes};
use mcp_config::reader::{Format, Optional, read};
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
