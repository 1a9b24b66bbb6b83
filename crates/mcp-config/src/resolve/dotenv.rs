//! Reads `.env` files (HD-057) like HoloDeck: no quotes, no `export`, no comments after values, no expansion.
//!
//! A line is split at its first `=` and both sides are trimmed. Blank lines, lines that begin with `#`, and lines
//! without `=` are skipped. Unlike HoloDeck, a byte order mark is not part of the first name, and a line with an empty
//! name is skipped, because no system accepts such a variable.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mcp_host_model::Secret;

/// The variables of a `.env` file, in file order. Of a repeated name, the last value counts (HD-057).
pub fn parse_env_file(text: &str) -> Vec<(String, Secret)> {
    let mut res: Vec<(String, Secret)> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.contains('\0') || value.contains('\0') {
            continue;
        }
        match positions.entry(name) {
            Entry::Occupied(position) => res[*position.get()].1 = Secret::new(value),
            Entry::Vacant(position) => {
                position.insert(res.len());
                res.push((name.to_owned(), Secret::new(value)));
            }
        }
    }
    res
}

/// Like [`parse_env_file`], with the rules of editors (DIA-07): `export` is skipped, quotes are removed, and comments
/// after unquoted values are ignored. A value is one line.
pub fn parse_editor_env_file(text: &str) -> Vec<(String, Secret)> {
    let plain = parse_env_file(text).into_iter();
    let unquoted = plain.map(|(name, value)| {
        let name = name.strip_prefix("export ").map_or(name.as_str(), str::trim_start).to_owned();
        (name, Secret::new(unquote(value.expose())))
    });
    unquoted.filter(|it| !it.0.is_empty()).collect()
}

/// The value without quotes, or without the comment after it.
fn unquote(value: &str) -> String {
    for quote in ['"', '\'', '`'] {
        let Some((inner, rest)) = value.strip_prefix(quote).and_then(|it| it.rsplit_once(quote)) else {
            continue;
        };
        if rest.trim().is_empty() || rest.trim_start().starts_with('#') {
            let escapes = quote == '"' && inner.contains('\\');
            return if escapes { inner.replace("\\n", "\n").replace("\\r", "\r") } else { inner.to_owned() };
        }
    }
    value.split_once(" #").map_or(value, |it| it.0).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(&str, &str)]) {
        let got = parse_env_file(text);
        let got: Vec<_> = got.iter().map(|it| (it.0.as_str(), it.1.expose())).collect();
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn hd_057_lines_are_read_as_holodeck_reads_them() {
        check("A=1\nB=2\n", &[("A", "1"), ("B", "2")]);
        check(" A = 1 \n", &[("A", "1")]);
        check("A=\"q\"\n", &[("A", "\"q\"")]);
        check("A=1 # c\n", &[("A", "1 # c")]);
        check("# A=1\n\n  # B=2\n", &[]);
        check("A\n", &[]);
        check("A: 1\n", &[]);
        check("A=\n", &[("A", "")]);
        check("A=1\r\nB=2\r\n", &[("A", "1"), ("B", "2")]);
        check("A=\u{e9}\n", &[("A", "\u{e9}")]);
        check("A=b=c\n", &[("A", "b=c")]);
        check("A=1\nA=2\n", &[("A", "2")]);
        check("export A=1\n", &[("export A", "1")]);
        check("A=${B}\n", &[("A", "${B}")]);
    }

    #[test]
    fn two_defects_of_holodeck_are_avoided() {
        // HoloDeck keeps the byte order mark in the name, so the server never gets `A`.
        check("\u{feff}A=1\n", &[("A", "1")]);
        // HoloDeck creates a variable with an empty name, which no system accepts.
        check("=x\n", &[]);
    }

    #[test]
    fn dia_07_editors_remove_quotes() {
        let text = "A=\"b c\"\nexport B='$x' # c\nC=d # e\nD=\"f\\ng\"\nE=\"h\nF=a#b\nG=\n";
        let got: Vec<_> =
            parse_editor_env_file(text).into_iter().map(|it| format!("{}={}", it.0, it.1.expose())).collect();
        assert_eq!(got, ["A=b c", "B=$x", "C=d", "D=f\ng", "E=\"h", "F=a#b", "G="]);
    }
}
