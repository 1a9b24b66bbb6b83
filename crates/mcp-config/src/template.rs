//! `${VAR}` in texts (HD-050 to HD-056).
//!
//! A reference is `${`, a name of `[A-Za-z_][A-Za-z0-9_]*`, and `}`. Everything else stays as it is: `$VAR`,
//! `${VAR:-x}`, `${input:x}`. There is no escape, and a value that is put in is never looked at again.

use mcp_model::{Part, Secret, Value};

use crate::policy::VariableRule;

/// The variable that is the configuration file's folder.
pub(crate) const WORKSPACE_FOLDER: &str = "workspaceFolder";

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// The name of a variable.
    Variable(&'a str),
}

/// Cuts a text into its pieces.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut res = Vec::new();
    let mut rest = text;
    let mut searched = 0;
    while let Some(found) = rest[searched..].find("${") {
        let start = searched + found;
        let name = &rest[start + 2..];
        let length = name.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_').count();
        if length == 0 || name.as_bytes()[0].is_ascii_digit() || name.as_bytes().get(length) != Some(&b'}') {
            searched = start + 2;
            continue;
        }
        if start > 0 {
            res.push(Piece::Text(&rest[..start]));
        }
        res.push(Piece::Variable(&name[..length]));
        rest = &name[length + 1..];
        searched = 0;
    }
    if !rest.is_empty() {
        res.push(Piece::Text(rest));
    }
    res
}

/// Does the text refer to a variable?
pub(crate) fn has_variable(text: &str) -> bool {
    pieces(text).iter().any(|it| matches!(it, Piece::Variable(_)))
}

/// A text as a value of the model.
pub(crate) fn value(text: &str, rule: VariableRule) -> Value {
    if rule == VariableRule::Literal || !has_variable(text) {
        return Value::literal(text);
    }
    let parts = pieces(text).into_iter().map(|it| match it {
        Piece::Text(text) => Part::Text(Secret::new(text)),
        Piece::Variable(name) => Part::Variable(name.to_owned()),
    });
    Value::Template(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let shown: Vec<_> = pieces(text)
            .into_iter()
            .map(|it| match it {
                Piece::Text(text) => format!("'{text}'"),
                Piece::Variable(name) => name.to_owned(),
            })
            .collect();
        assert_eq!(shown.join(" "), want, "{text}");
    }

    #[test]
    fn hd_050_hd_055_only_whole_references_are_variables() {
        check("plain", "'plain'");
        check("${A}", "A");
        check("x${A}y${B_1}z", "'x' A 'y' B_1 'z'");
        check("${A}${A}", "A A");
        check("$A", "'$A'");
        check("${}", "'${}'");
        check("${A", "'${A'");
        check("${1A}", "'${1A}'");
        check("${A-B}", "'${A-B}'");
        check("${A:-def}", "'${A:-def}'");
        check("${MISSING:-def}${A}", "'${MISSING:-def}' A");
        check("$${A}", "'$' A");
        check("\\${A}", "'\\' A");
        check("${ A }", "'${ A }'");
        check("${env:A}", "'${env:A}'");
        check("${A.B}", "'${A.B}'");
        check("${_U}", "_U");
        check("${é}", "'${é}'");
        check("${${A}}", "'${' A '}'");
        check("", "");
    }
}
