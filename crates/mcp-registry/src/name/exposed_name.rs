//! Exposed names: the format that model providers accept, and the conversion of any text into it.
//!
//! Collisions are the catalog's subject.

use std::borrow::Borrow;
use std::sync::Arc;

use derive_more::{Debug, Display};
use mcp_host_model::{NameClass, NameLimit};
use serde::{Serialize, Serializer};

/// The length of the end of a shortened name: `-` and eight hexadecimal digits.
pub(crate) const HASH_SUFFIX_BYTES: usize = 1 + 8;

/// The exposed name of a tool or prompt.
///
/// Invariant: not empty, and made by its server's rules: bytes of `[A-Za-z0-9_-]` within the rules' limit, unless the
/// rules are `Pass` (any text) or keep the dot. Cheap to clone.
#[derive(Clone, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[debug("{_0:?}")]
pub struct ExposedName(Arc<str>);

impl ExposedName {
    /// A name for which the caller guarantees the invariant.
    pub(crate) fn new(name: impl Into<Arc<str>>) -> ExposedName {
        let name = name.into();
        debug_assert!(!name.is_empty());
        ExposedName(name)
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ExposedName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for ExposedName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The pattern that [`is_valid`] checks, for messages.
pub(crate) fn pattern_text(limit: NameLimit) -> String {
    format!("^[a-zA-Z0-9_-]{{1,{}}}$", limit.bytes())
}

/// Returns whether providers with this limit accept `name` as a function name (DM-047).
pub fn is_valid(limit: NameLimit, name: &str) -> bool {
    let fits = (1..=limit.bytes()).contains(&name.len());
    // Checking all bytes is faster than stopping early. Bytes of non-ASCII characters are never allowed.
    fits && name.bytes().filter(|it| !is_allowed(NameClass::Strict, char::from(*it))).count() == 0
}

/// Replaces every character outside `class` by `-`.
pub(crate) fn normalise(class: NameClass, name: &str) -> String {
    let mut res = String::with_capacity(name.len());
    push_normalised(&mut res, class, name);
    res
}

/// Appends the normalised name.
fn push_normalised(res: &mut String, class: NameClass, name: &str) {
    // Most names are unchanged.
    if name.bytes().all(|it| is_allowed(class, char::from(it))) {
        res.push_str(name);
    } else {
        res.extend(name.chars().map(|it| if is_allowed(class, it) { it } else { '-' }));
    }
}

/// Replaces every run of characters outside [`NameClass::Strict`] by one `_`, and removes `_` at the ends. An empty
/// result becomes `resource` (DMX-10).
pub(crate) fn slug(name: &str) -> String {
    let mut res = String::with_capacity(name.len());
    let mut is_in_run = false;
    for character in name.chars() {
        if is_allowed(NameClass::Strict, character) {
            if std::mem::take(&mut is_in_run) {
                res.push('_');
            }
            res.push(character);
        } else {
            is_in_run = true;
        }
    }
    match res.trim_matches('_') {
        "" => "resource".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Returns `<server>__<name>`, both parts normalised (HD-114).
pub(crate) fn qualify(class: NameClass, server: &str, name: &str) -> String {
    const SEPARATOR: &str = "__";
    let mut res = String::with_capacity(server.len() + SEPARATOR.len() + name.len());
    push_normalised(&mut res, class, server);
    res.push_str(SEPARATOR);
    push_normalised(&mut res, class, name);
    res
}

/// Returns `name` if it has at most `limit` bytes. Otherwise returns its start, `-`, and eight hexadecimal digits of
/// its blake3 hash: the same long name always gives the same short one.
pub fn shorten(name: String, limit: usize) -> String {
    if name.len() <= limit {
        return name;
    }
    let hash = hash_digits(&name);
    with_suffix(name, &hash, limit)
}

/// Returns `name` with the hash of `original`, in the form of [`shorten`], so that two originals that have the same
/// exposed name get different ones.
pub(crate) fn with_hash_of(name: &str, original: &str, limit: usize) -> String {
    with_suffix(name.to_owned(), &hash_digits(original), limit)
}

/// The first eight hexadecimal digits of the hash.
fn hash_digits(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
}

/// Cuts the name so that `-` and the suffix fit into the limit.
fn with_suffix(mut name: String, suffix: &str, limit: usize) -> String {
    let mut end = name.len().min(limit - 1 - suffix.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.push('-');
    name.push_str(suffix);
    name
}

/// Whether a name of this class may contain the character.
fn is_allowed(class: NameClass, character: char) -> bool {
    let is_strict = character.is_ascii_alphanumeric() || character == '_' || character == '-';
    match class {
        NameClass::Strict => is_strict,
        NameClass::WithDot => is_strict || character == '.',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(class: NameClass, server: &str, name: &str, want: &str) {
        assert_eq!(qualify(class, server, name), want);
        assert_eq!(normalise(class, name), want.split_once("__").expect("it is qualified").1);
    }

    #[test]
    fn dmx_10_slug_replaces_invalid_runs() {
        for (name, want) in [
            ("read_file-2", "read_file-2"),
            ("ask me", "ask_me"),
            ("a .. b", "a_b"),
            ("a_ .b", "a__b"),
            ("  x!", "x"),
            ("__x__", "x"),
            ("-x-", "-x-"),
            ("é", "resource"),
            ("_", "resource"),
        ] {
            assert_eq!(slug(name), want, "{name}");
        }
    }

    /// HD-FR015, SK-01.
    #[test]
    fn hd_114_x_03_other_characters_become_a_dash_in_both_parts() {
        check(NameClass::Strict, "files", "read_file", "files__read_file");
        check(NameClass::Strict, "my files", "read.file", "my-files__read-file");
        check(NameClass::WithDot, "my.files", "read.file", "my.files__read.file");
        check(NameClass::WithDot, "a b", "tool@v1", "a-b__tool-v1");
        check(NameClass::Strict, "a", "é", "a__-");
        check(NameClass::Strict, "a", "x\ny\tz", "a__x-y-z");
        check(NameClass::Strict, "a", "a--b", "a__a--b");
    }

    #[test]
    fn a_long_name_ends_with_its_hash() {
        for limit in [NameLimit::Gemini, NameLimit::Common, NameLimit::Anthropic] {
            let limit = limit.bytes();
            let fits = "x".repeat(limit);
            assert_eq!(shorten(fits.clone(), limit), fits);
            let (one, two) = (shorten(format!("{fits}1"), limit), shorten(format!("{fits}2"), limit));
            assert_eq!((one.len(), two.len()), (limit, limit));
            assert_ne!(one, two);
            assert!(one.starts_with(&fits[..limit - 9]) && one.as_bytes()[limit - 9] == b'-', "{one}");
        }
        let long = format!("a__{}", "x".repeat(62));
        assert_eq!(shorten(long, 64), format!("a__{}-a9c07a00", "x".repeat(52)), "the hash never moves");
        assert_eq!(shorten("éééééééé".to_owned(), 12).len(), 11, "cut between characters");
    }

    #[test]
    fn dm_047_common_name_format() {
        let valid = |name: &str| is_valid(NameLimit::Common, name);
        for name in ["a", "A-b_9", &"x".repeat(64)] {
            assert!(valid(name), "{name}");
        }
        for name in ["", "a.b", "a/b", "a b", "é", "工具", "tool*", &"x".repeat(65)] {
            assert!(!valid(name), "{name}");
        }
        assert_eq!(pattern_text(NameLimit::Common), "^[a-zA-Z0-9_-]{1,64}$");
    }
}
