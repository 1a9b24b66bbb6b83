//! Decides which command-line arguments and variable values are safe to print.
//!
//! A word is printed only if it is recognised: a flag, the package of a runner, a path, a number after `--port`.
//! Everything else may be a password, including values of unknown flags, anything with a name like a secret, and words
//! that mix letters and digits as tokens do. Hiding too much is harmless; printing a secret is not.

use std::ops::Range;

use mcp_host_model::internal::{may_name_secret, names_setting};

/// Words, separated by blanks.
pub(super) struct WordList(pub(super) &'static str);

impl WordList {
    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.0.split(' ')
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.words().any(|each| each == word)
    }
}

/// Programs that start a package.
const RUNNERS: WordList = WordList("npx bunx pnpx uvx pipx npm pnpm yarn bun uv");
/// Programs that start a container image.
const CONTAINERS: &[&str] = &["docker", "podman"];
/// Subcommands before the package or image.
const SUBCOMMANDS: &[&str] = &["run", "exec", "x", "dlx", "tool", "--"];
/// Programs that run a script.
const INTERPRETERS: &[&str] = &["node", "python", "python3", "deno", "ruby", "php"];
/// Flags of shells that use slashes, as in `cmd /c npx`.
const SHELL_SWITCHES: &[&str] = &["/c", "/C", "/s", "/d"];

/// Flags of runners without a value.
const FLAGS_WITHOUT_VALUE: WordList = WordList(
    "-y --yes -i -t -it --rm --init --interactive --tty -q --quiet --no-install --isolated --verbose \
    --stdio --headless --read-only",
);

/// Common subcommands of servers.
const SUBCOMMAND_NAMES: WordList =
    WordList("stdio sse http mcp serve server demo-server start run true false");

/// The last words of flags and variables that have a name or a file as their value.
const NAME_WORDS: WordList = WordList("file config project package from with python module m env");

/// Prefixes of tokens of well-known services.
const TOKEN_PREFIXES: WordList = WordList(
    "sk- pk- rk- sk_ pk_ rk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat glpat xox akia asia aiza ya29 eyj npm_ \
    pypi- hf_ shpat sg. dop_ lin_ ntn_ secret_ figd_ tvly- fc- bsa gsk_ key- pat- whsec r8_",
);

/// The maximum length of a printed word.
const MAX_SHOWN_LENGTH: usize = 96;

/// The role of the next argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextArgument {
    /// The package of a runner, or the script of an interpreter.
    Target,
    /// The value of a flag that is known to take no secret.
    SafeValue,
    /// The value of a flag that is not known, if the flag has a value at all.
    UnknownValue,
    /// The value of a flag with a name like a secret.
    SecretValue,
    /// A positional argument, or a flag.
    Other,
}

/// The byte ranges to show of each argument. An argument that cannot be inspected is `None`.
pub(super) fn visible_arguments(command: Option<&str>, args: &[Option<&str>]) -> Vec<Vec<Range<usize>>> {
    let program = command.map(program_name).unwrap_or_default();
    // The runner whose package has not been seen yet.
    let mut runner = Some(program).filter(|it| is_launcher(it));
    // Only flags were seen so far.
    let mut is_early = true;
    let mut expected = if runner.is_some() { NextArgument::Target } else { NextArgument::Other };
    let mut res = Vec::new();
    for arg in args {
        let Some(arg) = *arg else {
            (runner, is_early, expected) = (None, false, NextArgument::UnknownValue);
            res.push(Vec::new());
            continue;
        };
        let is_container = runner.is_some_and(|it| CONTAINERS.contains(&it));
        let (shown, next) = classify(arg, expected, is_container);
        let is_flag = arg.starts_with('-');
        match expected {
            NextArgument::Target | NextArgument::Other if is_early && is_launcher(program_name(arg)) => {
                runner = Some(program_name(arg));
            }
            NextArgument::Target if !is_flag && !SUBCOMMANDS.contains(&arg) => {
                (runner, is_early) = (None, false)
            }
            NextArgument::Other if !is_flag && !SHELL_SWITCHES.contains(&arg) => is_early = false,
            // This was the flag's value, or the package; what follows is unknown.
            NextArgument::UnknownValue | NextArgument::SecretValue if !is_flag && !is_container => {
                (runner, is_early) = (None, false)
            }
            NextArgument::Target
            | NextArgument::SafeValue
            | NextArgument::UnknownValue
            | NextArgument::SecretValue
            | NextArgument::Other => {}
        }
        expected = if next == NextArgument::Other && runner.is_some() { NextArgument::Target } else { next };
        res.push(shown);
    }
    res
}

/// Returns whether the value of a variable or flag with this name is safe to print.
pub(super) fn is_safe_value(name: &str, value: &str) -> bool {
    has_safe_name(name) && (is_plain_words(value) || is_path(value) || SUBCOMMAND_NAMES.contains(value))
}

/// The name of a program without its folder and extension: `npx` of `/usr/bin/npx` and `npx.cmd`.
fn program_name(program: &str) -> &str {
    let last = program.rsplit(['/', '\\']).next().unwrap_or_default();
    [".cmd", ".exe"].iter().find_map(|it| last.strip_suffix(it)).unwrap_or(last)
}

/// Returns whether a program starts a package, a container or a script.
pub(super) fn is_launcher(program: &str) -> bool {
    RUNNERS.contains(program) || CONTAINERS.contains(&program) || INTERPRETERS.contains(&program)
}

/// The byte ranges to show of an argument, and the role of the next one.
fn classify(arg: &str, expected: NextArgument, is_container: bool) -> (Vec<Range<usize>>, NextArgument) {
    let whole = || vec![prefix(arg.len())];
    if let Some((name, value)) = arg.split_once('=')
        && (is_variable_name(name) || is_flag(name))
    {
        let is_value = matches!(expected, NextArgument::SecretValue | NextArgument::UnknownValue)
            && !name.starts_with("--");
        let is_safe = is_safe_value(name.trim_start_matches('-'), value);
        return match (is_value, is_safe) {
            (true, _) => (Vec::new(), NextArgument::Other),
            (false, true) => (whole(), NextArgument::Other),
            (false, false) => {
                let mut shown = vec![prefix(name.len() + 1)];
                if !may_name_secret(name) {
                    let at = name.len() + 1;
                    shown.extend(visible_url(value).into_iter().map(|it| it.start + at..it.end + at));
                }
                (shown, NextArgument::Other)
            }
        };
    }
    if arg.starts_with('-') {
        // A secret may begin with a dash.
        let may_be_flag = match expected {
            NextArgument::SecretValue | NextArgument::UnknownValue => arg.starts_with("--"),
            NextArgument::Target | NextArgument::SafeValue | NextArgument::Other => true,
        };
        return match may_be_flag && is_flag(arg) {
            true if is_container && ["-e", "--env"].contains(&arg) => (whole(), NextArgument::SafeValue),
            true => (whole(), argument_after_flag(arg)),
            false => (Vec::new(), NextArgument::Other),
        };
    }
    let is_location = is_path(arg) || is_scoped(arg);
    let shown = match expected {
        NextArgument::Target if SUBCOMMANDS.contains(&arg) || is_launcher(arg) => true,
        NextArgument::Target if is_container => is_path(arg) || is_image(arg),
        NextArgument::Target => is_location || is_plain_words(package_name(arg)),
        NextArgument::SafeValue => is_location || is_plain_words(package_name(arg)) || is_variable_name(arg),
        NextArgument::UnknownValue => is_location,
        NextArgument::Other => {
            is_location || is_launcher(arg) || SUBCOMMAND_NAMES.contains(arg) || SHELL_SWITCHES.contains(&arg)
        }
        NextArgument::SecretValue => return (Vec::new(), NextArgument::Other),
    };
    (if shown { whole() } else { visible_url(arg) }, NextArgument::Other)
}

/// The range of a prefix of this length.
fn prefix(end: usize) -> Range<usize> {
    0..end
}

/// The role of the argument after a flag.
fn argument_after_flag(flag: &str) -> NextArgument {
    let name = flag.trim_start_matches('-');
    if may_name_secret(name) {
        NextArgument::SecretValue
    } else if FLAGS_WITHOUT_VALUE.contains(flag) || name.is_empty() {
        NextArgument::Other
    } else if has_safe_name(name) {
        NextArgument::SafeValue
    } else {
        NextArgument::UnknownValue
    }
}

/// Returns whether the value for this name is safe.
fn has_safe_name(name: &str) -> bool {
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default().to_ascii_lowercase();
    (names_setting(name) || NAME_WORDS.contains(last.as_str())) && !may_name_secret(name)
}

/// Returns whether the text is `--flag`, or one or two letters after a dash, but not `-pPASSWORD`.
fn is_flag(text: &str) -> bool {
    let short = |it: &str| (1..=2).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphabetic());
    match text.strip_prefix("--") {
        Some(name) => name.is_empty() || (is_plain_words(name) && !name.contains(['@', '/', ':'])),
        None => text.strip_prefix('-').is_some_and(short),
    }
}

/// Returns whether the text is the name of a variable: `LOG_LEVEL`.
fn is_variable_name(text: &str) -> bool {
    let upper = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    text.bytes().all(upper) && text.starts_with(|it: char| it.is_ascii_uppercase()) && is_plain_words(text)
}

/// Returns whether the text is `@scope/name`, with or without a version.
fn is_scoped(text: &str) -> bool {
    text.starts_with('@') && text.contains('/') && is_plain_words(package_name(text))
}

/// A package name without its version: `@scope/name@1.2.3`, `name==1.0`.
fn package_name(text: &str) -> &str {
    let is_version = |it: &str| {
        it.len() <= 24
            && (it == "latest"
                || it == "next"
                || it.trim_start_matches(['^', '~', 'v']).starts_with(|it: char| it.is_ascii_digit()))
            && is_plain_words(it.trim_start_matches(['^', '~']))
    };
    let name = match text.rsplit_once("==").or_else(|| text.rsplit_once('@')) {
        Some((name, version)) if !name.is_empty() && is_version(version) => name,
        Some(_) | None => text,
    };
    match name.strip_prefix('@') {
        Some(name) if name.matches('/').count() == 1 => name,
        Some(_) | None => name,
    }
}

/// Returns whether the text is an image: `mcp/time:latest`, `ghcr.io/github/github-mcp-server`.
fn is_image(text: &str) -> bool {
    let (name, tag) = text.split_once(':').unwrap_or((text, "latest"));
    name.contains('/') && is_plain_words(name) && is_plain_words(tag)
}

/// Returns whether the text is a path that starts with a folder: `/srv/files`, `./index.js`, `C:\tools`.
pub(super) fn is_path(text: &str) -> bool {
    let is_rooted = ["/", "./", "../", "~/"].iter().any(|it| text.starts_with(it));
    let has_drive =
        matches!(text.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let is_part = |it: &str| {
        let word = it.trim_start_matches(['.', '~']);
        word.is_empty() || is_plain_words(it.trim_start_matches('.')) || is_title(word)
    };
    let is_short = text.len() <= 2 * MAX_SHOWN_LENGTH && !text.contains("://");
    text == "." || (is_short && (is_rooted || has_drive) && text.split(['/', '\\', ':']).all(is_part))
}

/// Returns whether the text is a name of capitalised words with blanks, such as `Application Support`.
fn is_title(text: &str) -> bool {
    let is_capitalised = |it: &str| {
        it.starts_with(|it: char| it.is_ascii_uppercase()) && it.bytes().all(|it| it.is_ascii_alphabetic())
    };
    text.contains(' ') && text.split(' ').all(|it| is_capitalised(it) && is_plain_words(it))
}

/// Returns whether the text is a sentence of a comment without a name like a secret: letters, blanks and the signs of a
/// sentence, and at least three words.
pub(super) fn is_plain_sentence(text: &str) -> bool {
    let mut words = 0;
    let all_plain = text.split(' ').filter(|it| !it.is_empty()).all(|word| {
        let word = word.trim_start_matches('(').trim_end_matches(['.', ',', ';', '!', '?', ')']);
        let word = if word == "-" { "" } else { word };
        words += usize::from(!word.is_empty());
        word.is_empty()
            || (word.bytes().all(|it| it.is_ascii_alphabetic()) && is_word(word) && !may_name_secret(word))
    });
    all_plain && words >= 3
}

/// The ranges of scheme, host and plain path words of a URL; none of a text that is not a URL, or of a URL with a user.
fn visible_url(text: &str) -> Vec<Range<usize>> {
    let Some(start) = text.find("://").map(|it| it + "://".len()) else { return Vec::new() };
    let scheme = &text[..start - "://".len()];
    let end = text.find(['?', '#']).unwrap_or(text.len());
    if scheme.is_empty() || !scheme.bytes().all(|it| it.is_ascii_alphabetic()) || end < start {
        return Vec::new();
    }
    let host_end = text[start..end].find('/').map_or(end, |it| start + it);
    // A text before `@` is a user, and other parsers read a URL without host differently.
    if text[start..].contains('@') || text.contains('\\') || host_end == start {
        return Vec::new();
    }
    // A host name that cannot be guessed may be a secret.
    if !text[start..host_end].split('.').all(|it| it.len() < 20 || is_plain_words(it)) {
        return Vec::new();
    }
    let mut res = vec![prefix(host_end)];
    let mut at = host_end;
    for part in text[host_end..end].split_inclusive('/') {
        let word = part.trim_end_matches('/');
        if word.is_empty() || is_plain_words(word) {
            res.push(at..at + part.len());
        }
        at += part.len();
    }
    res
}

/// Returns whether the text is plain words: `server-everything`, `mcp_server/run.py`, `127.0.0.1`.
pub(super) fn is_plain_words(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_token = |it: &str| TOKEN_PREFIXES.words().any(|prefix| it.starts_with(prefix));
    if text.is_empty() || text.len() > MAX_SHOWN_LENGTH || lower.split('/').any(is_token) {
        return false;
    }
    // An address may be followed by a port.
    let text = match text.rsplit_once(':') {
        Some((host, port)) if (1..=5).contains(&port.len()) && port.bytes().all(|it| it.is_ascii_digit()) => {
            host
        }
        Some(_) | None => text,
    };
    let parts: Vec<&str> = text.split(['-', '_', '.', '/', ',']).filter(|it| !it.is_empty()).collect();
    let numbers = parts.iter().filter(|it| it.bytes().all(|it| it.is_ascii_digit())).count();
    (1..=12).contains(&parts.len()) && numbers <= 4 && parts.iter().all(|it| is_word(it))
}

/// Returns whether the text is letters in usual case followed by at most three digits, or a short number.
fn is_word(part: &str) -> bool {
    let letters = part.trim_end_matches(|it: char| it.is_ascii_digit());
    let digits = part.len() - letters.len();
    if letters.is_empty() {
        return digits <= 5;
    }
    if digits > 3 || letters.len() > 24 || !letters.bytes().all(|it| it.is_ascii_alphabetic()) {
        return false;
    }
    // `apiKey` has two case changes; random letters have more, and short runs.
    let starts_run = |it: &[u8]| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase();
    let runs = 1 + letters.as_bytes().windows(2).filter(|it| starts_run(it)).count();
    runs <= 3 && (runs == 1 || letters.len() >= 3 * runs) && (letters.len() < 9 || has_enough_vowels(letters))
}

/// Returns whether a long word has enough vowels. Most random words do not.
fn has_enough_vowels(letters: &str) -> bool {
    let is_vowel = |it: u8| b"aeiouyAEIOUY".contains(&it);
    let vowels = letters.bytes().filter(|it| is_vowel(*it)).count();
    let longest_consonants =
        letters.as_bytes().split(|it| is_vowel(*it)).map(<[u8]>::len).max().unwrap_or_default();
    vowels * 5 >= letters.len() && longest_consonants <= 4
}

#[cfg(test)]
mod tests;
