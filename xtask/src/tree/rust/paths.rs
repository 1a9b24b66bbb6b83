//! Paths in Rust code and in macro arguments, and what `use` imports.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path of two segments or more: an import, or a path inside the code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathUse {
    /// The first segment: `crate`, `super`, `self`, `std`, or any other name.
    pub root: String,
    /// The byte offset of the root.
    pub at: usize,
    /// The segments after the root. The last one is `*` for an import of everything.
    pub segments: Vec<String>,
    /// How often the root is repeated: 2 for `super::super::name`.
    pub repetitions: usize,
    /// How many inline modules (`mod a { … }`) contain the path.
    pub inline_modules: usize,
    /// Set if the path is part of a `use` item.
    pub import: Option<Import>,
}

impl PathUse {
    /// The segment after the root.
    pub(crate) fn name(&self) -> &str {
        self.segments.first().map_or("", String::as_str)
    }
}

/// What a `use` item makes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    /// The name in this module; `*` for everything.
    pub name: String,
    /// Whether other modules can use the name: `pub use`, `pub(crate) use`.
    pub is_reexport: bool,
    /// The bytes of the whole `use` item.
    pub item: Range<usize>,
}

/// All paths in the tokens. An import of several names, `root::{a, b::c}`, gives one entry for each.
pub(super) fn collect_paths(tokens: &TokenStream) -> Vec<PathUse> {
    let mut res = Vec::new();
    collect_from(tokens, 0, &mut res);
    res
}

fn collect_from(tokens: &TokenStream, inline_modules: usize, res: &mut Vec<PathUse>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut index = 0;
    while index < tokens.len() {
        let before = |distance: usize| index.checked_sub(distance).map(|before| &tokens[before]);
        match &tokens[index] {
            TokenTree::Group(group) => {
                let is_module = group.delimiter() == Delimiter::Brace
                    && before(2).is_some_and(|keyword| is_ident(keyword, "mod"));
                let is_visibility = group.delimiter() == Delimiter::Parenthesis
                    && before(1).is_some_and(|keyword| is_ident(keyword, "pub"));
                if !is_visibility {
                    collect_from(&group.stream(), inline_modules + usize::from(is_module), res);
                }
            }
            // Not the captures of a type, `use<'a>`.
            TokenTree::Ident(keyword)
                if keyword == "use" && !tokens.get(index + 1).is_some_and(|next| is_punct(next, '<')) =>
            {
                let end = tokens[index..].iter().position(|token| is_punct(token, ';'));
                let end = end.map_or(tokens.len(), |length| index + length);
                let is_reexport = before(1).is_some_and(|token| is_ident(token, "pub"))
                    || before(2).is_some_and(|token| is_ident(token, "pub"));
                let last = &tokens[end.min(tokens.len() - 1)];
                let item = keyword.span().byte_range().start..last.span().byte_range().end;
                let import = Import { name: String::new(), is_reexport, item };
                let mut imported = Vec::new();
                collect_imports(&tokens[index + 1..end], &mut Vec::new(), &mut imported);
                res.extend(imported.into_iter().filter_map(|(segments, name)| {
                    new_path_use(segments, inline_modules, Some(Import { name, ..import.clone() }))
                }));
                index = end;
            }
            TokenTree::Ident(_) => {
                let segments = leading_segments(&tokens[index..]);
                let length = 3 * (segments.len() - 1);
                res.extend(new_path_use(segments, inline_modules, None));
                index += length;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        index += 1;
    }
}

/// A segment with its offset.
type Segment = (String, usize);

/// Combines segments into a path. `None` if the root is all of it.
fn new_path_use(segments: Vec<Segment>, inline_modules: usize, import: Option<Import>) -> Option<PathUse> {
    let (root, at) = segments.first()?.clone();
    let repetitions = match root.as_str() {
        "super" => segments.iter().take_while(|(segment, _)| *segment == root).count(),
        _ => 1,
    };
    let segments: Vec<String> = segments.into_iter().skip(repetitions).map(|(segment, _)| segment).collect();
    (!segments.is_empty()).then_some(PathUse { root, at, segments, repetitions, inline_modules, import })
}

/// The segments of the path at the start of the tokens, of which the first is an identifier.
fn leading_segments(tokens: &[TokenTree]) -> Vec<Segment> {
    let mut res = Vec::new();
    for step in tokens.chunks(3) {
        res.extend(parse_segment(&step[0]));
        let continues =
            is_path_separator(&step[1..]) && matches!(tokens.get(3 * res.len()), Some(TokenTree::Ident(_)));
        if !continues {
            break;
        }
    }
    res
}

/// The paths of a `use` item and the names that they get. `prefix` is the path before the tokens.
fn collect_imports(tokens: &[TokenTree], prefix: &mut Vec<Segment>, res: &mut Vec<(Vec<Segment>, String)>) {
    let outer = prefix.len();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let members: Vec<TokenTree> = group.stream().into_iter().collect();
                for member in members.split(|token| is_punct(token, ',')) {
                    collect_imports(member, prefix, res);
                }
                prefix.truncate(outer);
                return;
            }
            _ if is_ident(token, "as") => {
                let alias = tokens.get(index + 1).map(ToString::to_string).unwrap_or_default();
                res.push((prefix.clone(), alias));
                prefix.truncate(outer);
                return;
            }
            _ if is_ident(token, "self") && !prefix.is_empty() => {}
            _ => prefix.extend(parse_segment(token)),
        }
    }
    if let Some((name, _)) = prefix.last().filter(|_| !tokens.is_empty()) {
        let name = name.clone();
        res.push((prefix.clone(), name));
    }
    prefix.truncate(outer);
}

/// The segment that a token is: an identifier or `*`.
fn parse_segment(token: &TokenTree) -> Option<Segment> {
    let is_segment = matches!(token, TokenTree::Ident(_)) || is_punct(token, '*');
    is_segment.then(|| (token.to_string(), token.span().byte_range().start))
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    tokens.len() >= 2 && tokens[..2].iter().all(|token| is_punct(token, ':'))
}
