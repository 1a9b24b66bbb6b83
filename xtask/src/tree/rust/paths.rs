//! Paths in Rust code and in macro arguments: which name follows `crate::`, `super::` or `std::`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The first segments that are recorded.
const ROOTS: [&str; 3] = ["crate", "super", "std"];

/// A path that begins with one of the roots.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub root: &'static str,
    /// The byte offset of the root.
    pub at: usize,
    /// The segment after the root, or `*`.
    pub name: String,
    /// How often the root is repeated: 2 for `super::super::name`.
    pub repetitions: usize,
    /// How many inline modules (`mod a { … }`) contain the path.
    pub inline_modules: usize,
}

/// All paths in the tokens. An import of several names, `root::{a, b::c}`, gives one entry for each.
pub(super) fn paths(tokens: &TokenStream) -> Vec<PathUse> {
    let mut res = Vec::new();
    collect(tokens, 0, &mut res);
    res
}

fn collect(tokens: &TokenStream, inline_modules: usize, res: &mut Vec<PathUse>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut index = 0;
    while index < tokens.len() {
        match &tokens[index] {
            TokenTree::Group(group) => {
                let is_module = group.delimiter() == Delimiter::Brace
                    && index.checked_sub(2).is_some_and(|keyword| is_ident(&tokens[keyword], "mod"));
                let is_visibility = group.delimiter() == Delimiter::Parenthesis
                    && index.checked_sub(1).is_some_and(|keyword| is_ident(&tokens[keyword], "pub"));
                if !is_visibility {
                    collect(&group.stream(), inline_modules + usize::from(is_module), res);
                }
            }
            token => {
                let Some(root) = ROOTS.into_iter().find(|root| is_ident(token, root)) else {
                    index += 1;
                    continue;
                };
                let at = token.span().byte_range().start;
                let mut repetitions = 1;
                while is_colons(&tokens[index + 1..])
                    && tokens.get(index + 3).is_some_and(|next| is_ident(next, root))
                {
                    index += 3;
                    repetitions += 1;
                }
                for name in names_after_colons(&tokens[index + 1..]) {
                    res.push(PathUse { root, at, name, repetitions, inline_modules });
                }
            }
        }
        index += 1;
    }
}

fn names_after_colons(tokens: &[TokenTree]) -> Vec<String> {
    if !is_colons(tokens) {
        return Vec::new();
    }
    match tokens.get(2) {
        Some(TokenTree::Ident(name)) => vec![name.to_string()],
        Some(TokenTree::Punct(star)) => vec![star.to_string()],
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let members: Vec<TokenTree> = group.stream().into_iter().collect();
            let members =
                members.split(|token| matches!(token, TokenTree::Punct(comma) if comma.as_char() == ','));
            members.filter_map(|member| member.first().map(ToString::to_string)).collect()
        }
        Some(TokenTree::Group(_) | TokenTree::Literal(_)) | None => Vec::new(),
    }
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(colon) if colon.as_char() == ':');
    tokens.len() >= 2 && tokens[..2].iter().all(is_colon)
}
