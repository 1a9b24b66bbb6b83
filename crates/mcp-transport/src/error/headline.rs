//! Finds the line of a server's standard error that names its failure.
//!
//! Pure. A traceback has many lines; its exception is in the first or the last one.

/// Finds the exception or panic in the last lines of standard error. `None` if there is none, or if there is only one
/// line, which is shown anyway.
pub(crate) fn find_headline(stderr: &[String]) -> Option<String> {
    if stderr.len() < 2 {
        return None;
    }
    if let Some(start) = stderr.iter().rposition(|line| line.starts_with("Traceback (most recent call last)"))
    {
        let mut lines = stderr[start..].iter().skip(1);
        let exception = lines.find(|line| !line.starts_with(' ') && is_exception(line, |_| true));
        return exception.cloned();
    }
    let index = stderr.iter().position(|line| is_exception(line, has_exception_name) || is_panic(line))?;
    let line = stderr[index].trim();
    // Rust prints the message of a panic on the next line.
    match stderr.get(index + 1).filter(|_| line.contains("panicked at") && line.ends_with(':')) {
        Some(message) => Some(format!("{line} {}", message.trim())),
        None => Some(line.to_owned()),
    }
}

/// Whether a line begins with the name of an exception that `is_name` accepts: `ValueError: no`, `Error [ERR_X]: no`,
/// `requests.Timeout`.
fn is_exception(line: &str, is_name: impl Fn(&str) -> bool) -> bool {
    let line = line.trim_start().trim_start_matches("Uncaught ");
    let name = line.split_once(": ").map_or(line.trim_end(), |(name, _)| name);
    let name = match name.split_once(" [") {
        Some((name, code)) if code.ends_with(']') => name,
        Some(_) | None => name,
    };
    let is_identifier =
        name.chars().all(|character| character.is_ascii_alphanumeric() || "_.$".contains(character));
    is_identifier && name.starts_with(|first: char| first.is_ascii_alphabetic()) && is_name(name)
}

fn has_exception_name(name: &str) -> bool {
    ["Error", "Exception", "Panic"].iter().any(|suffix| name.ends_with(suffix))
}

fn is_panic(line: &str) -> bool {
    line.starts_with("panic: ")
        || line.contains(" panicked at ")
        || line.starts_with("Exception in thread ")
        || line.starts_with("Unhandled exception. ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stderr: &str, want: Option<&str>) {
        let lines: Vec<String> = stderr.lines().map(str::to_owned).collect();
        assert_eq!(find_headline(&lines).as_deref(), want);
    }

    #[test]
    fn exception_of_a_traceback_is_found() {
        let traceback = "Starting\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 1, in <module>\n    \
                         import b\nModuleNotFoundError: No module named 'b'";
        check(traceback, Some("ModuleNotFoundError: No module named 'b'"));
        let chained = "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n\nDuring handling of the above \
                       exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a\"\n\
                       pydantic_core._pydantic_core.ValidationError: 1 validation error\ntoken\n  Field required";
        check(chained, Some("pydantic_core._pydantic_core.ValidationError: 1 validation error"));
        check(
            "Traceback (most recent call last):\n  File \"a\"\nKeyboardInterrupt",
            Some("KeyboardInterrupt"),
        );
        check(
            "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/a.js'\n    at \
             Module._resolveFilename (node:internal:1)\n  code: 'MODULE_NOT_FOUND',\nNode.js v20.1.0",
            Some("Error: Cannot find module '/srv/a.js'"),
        );
        check(
            "file:///srv/a.js:1\nTypeError [ERR_INVALID_ARG]: no\n    at x",
            Some("TypeError [ERR_INVALID_ARG]: no"),
        );
        check(
            "thread 'main' (7) panicked at src/main.rs:2:5:\nno token\nnote: run with `RUST_BACKTRACE=1`",
            Some("thread 'main' (7) panicked at src/main.rs:2:5: no token"),
        );
        check("panic: no token\n\ngoroutine 1 [running]:", Some("panic: no token"));
        check(
            "Exception in thread \"main\" java.lang.E: no\n\tat x",
            Some("Exception in thread \"main\" java.lang.E: no"),
        );
        check("starting: one\nno licence", None);
        check("ValueError: the only line", None);
        check("", None);
    }
}
