//! The positional arguments of `add`: a file, a name, and a URL, an entry in JSON or a command, in the order that other
//! programs have them.

use std::path::{Path, PathBuf};

use crate::config::locate::locate_config;

/// The file that is created if there is no configuration.
const NEW_FILE: &str = ".mcp.json";

/// The words, by their meaning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AddWords {
    /// The configuration.
    pub(super) file: PathBuf,
    /// The name of the server.
    pub(super) server: Option<String>,
    /// What the server is.
    pub(super) source: Option<WordSource>,
}

/// A server that is described by words instead of options.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WordSource {
    /// A URL to connect to.
    Url(String),
    /// An entry of an mcp.json, perhaps with its `name`.
    Json(String),
    /// A program with its arguments.
    Command(Vec<String>),
}

/// Where the server is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Description {
    /// In an option, such as `--command`: the words are only a file and a name.
    Option,
    /// In the words.
    Words,
}

/// Finds the meaning of the words before and after `--`. `is_file` tells whether a first word names a configuration.
/// The error is a message for the user.
pub(super) fn read_words(
    words: Vec<String>,
    command: Vec<String>,
    description: Description,
    is_file: &dyn Fn(&str) -> bool,
) -> Result<AddWords, String> {
    let has_both = description == Description::Option && words.len() == 2;
    let mut words = words.into_iter().peekable();
    let file = words.next_if(|word| has_both || (!is_source(word) && is_file(word))).map(PathBuf::from);
    let server = words.next_if(|word| !is_source(word));
    let mut rest: Vec<String> = words.collect();
    let has_source = rest.first().is_some_and(|word| is_source(word));
    if has_source && (rest.len() > 1 || !command.is_empty()) {
        let other = rest.get(1).or(command.first()).map(String::as_str).unwrap_or_default();
        return Err(format!("a URL or a JSON entry is the last word, but `{other}` follows it"));
    }
    let source = if has_source {
        rest.pop()
            .map(|word| if word.starts_with('{') { WordSource::Json(word) } else { WordSource::Url(word) })
    } else {
        rest.extend(command);
        (!rest.is_empty()).then_some(WordSource::Command(rest))
    };
    Ok(AddWords { file: choose_file(file), server, source })
}

/// Whether a word is a URL or an entry in JSON.
fn is_source(word: &str) -> bool {
    word.contains("://") || word.starts_with('{')
}

/// The file to change: the named one, the configuration of the named folder, or the nearest one. Without any, a new
/// file in that folder. Reads the disk.
fn choose_file(named: Option<PathBuf>) -> PathBuf {
    match named {
        Some(path) if path.is_dir() && locate_config(&path).is_err() => path.join(NEW_FILE),
        Some(path) => path,
        None if locate_config(Path::new("")).is_ok() => PathBuf::new(),
        None => NEW_FILE.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &str) {
        check_with(Description::Words, line, want);
    }

    /// Words are separated by blanks; `|` separates the words after `--`.
    #[track_caller]
    fn check_with(description: Description, line: &str, want: &str) {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (words, command) = line.split_once('|').unwrap_or((line, ""));
        let is_file = |word: &str| word.ends_with(".json") || word == ".";
        let got = read_words(split(words), split(command), description, &is_file).map(|it| {
            let source = match it.source {
                None => "nothing".to_owned(),
                Some(WordSource::Url(url)) => format!("url {url}"),
                Some(WordSource::Json(json)) => format!("json {json}"),
                Some(WordSource::Command(words)) => format!("command {}", words.join(" ")),
            };
            format!("{} = {source}", it.server.unwrap_or_default())
        });
        assert_eq!(got.unwrap_or_else(|message| message), want, "{line}");
    }

    /// RPT-104
    #[test]
    fn words_are_read_as_other_programs_read_them() {
        // Claude Code and Codex.
        check("files | npx -y pkg /srv", "files = command npx -y pkg /srv");
        check("a.json files | npx -y pkg", "files = command npx -y pkg");
        check("a.json | npx pkg", " = command npx pkg");
        check("docs https://x.example/mcp", "docs = url https://x.example/mcp");
        check("a.json docs https://x.example/mcp", "docs = url https://x.example/mcp");
        check("https://x.example/mcp", " = url https://x.example/mcp");
        check("a.json https://x.example/mcp", " = url https://x.example/mcp");
        // Gemini CLI, and what clap suggests for a flag of the program.
        check("files node server.js", "files = command node server.js");
        check("files npx | -y pkg", "files = command npx -y pkg");
        check("a.json files npx | -y pkg", "files = command npx -y pkg");
        // VS Code.
        check(r#"{"name":"x","command":"y"}"#, r#" = json {"name":"x","command":"y"}"#);
        check(r#"x {"command":"y"}"#, r#"x = json {"command":"y"}"#);
        check("a.json files", "files = nothing");
        check("", " = nothing");
        check_with(Description::Option, "files", "files = nothing");
        check_with(Description::Option, "x.txt files", "files = nothing");
        check("x https://x.example y", "a URL or a JSON entry is the last word, but `y` follows it");
        check("x https://x.example | npx", "a URL or a JSON entry is the last word, but `npx` follows it");
    }
}
