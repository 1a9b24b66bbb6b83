//! Rust files as the gates read them: code, comments, and code that is compiled for tests only.
//!
//! `proc-macro2` splits the text into tokens, `syn` finds the items. Every view of a file has the length and the lines
//! of the file, so an offset in one view is an offset in all of them.

mod items;
mod module_files;
mod paths;

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Span, TokenStream, TokenTree};

use super::source::Source;
use crate::error::Violation;
pub(crate) use module_files::is_cargo_target;
pub(crate) use paths::{Import, PathUse};

/// One `.rs` file in the views that the gates need.
#[derive(Debug)]
pub(crate) struct RustFile {
    pub path: String,
    pub text: String,
    /// The text without comments and literals, which are replaced by spaces.
    pub code: String,
    /// The text without comments.
    pub code_and_literals: String,
    /// The comments alone, doc comments included.
    pub comments: String,
    /// The bytes of raw string literals.
    pub raw_literals: Vec<Range<usize>>,
    /// Imports, and paths in the code.
    pub paths: Vec<PathUse>,
    /// The files, without their extension, that are declared by `mod name;`.
    pub modules: Vec<String>,
    /// Those of them that are compiled for tests only.
    test_modules: Vec<String>,
    /// The bytes that are compiled for tests only.
    tests: Vec<Range<usize>>,
    /// The lines of the public fields with a `#[cfg]`, except those of non-exhaustive structs.
    pub conditional_fields: Vec<usize>,
    /// The offsets of the tuples of three or more in the types of parameters.
    pub tuple_parameters: Vec<usize>,
}

impl RustFile {
    /// All `.rs` files of the tree, and a violation for each one that does not parse.
    pub(super) fn read_all(sources: &[Source]) -> (Vec<RustFile>, Vec<Violation>) {
        let (mut files, mut violations) = (Vec::new(), Vec::new());
        let mut test_modules = BTreeSet::new();
        for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
            match RustFile::read(source, &mut test_modules) {
                Ok(file) => files.push(file),
                Err(error) => {
                    let line = error.span().start().line;
                    violations.push(Violation::new(
                        &source.path,
                        line,
                        format!("it does not parse: {error}"),
                    ));
                }
            }
        }
        for file in &mut files {
            let stem = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
            let in_test_module = |module: &String| stem == module || stem.starts_with(&format!("{module}/"));
            if items::is_test_path(&file.path) || test_modules.iter().any(in_test_module) {
                file.tests = std::iter::once(0..file.text.len()).collect();
            }
        }
        (files, violations)
    }

    /// Parses one file, and adds its test modules to `test_modules`.
    fn read(source: &Source, test_modules: &mut BTreeSet<String>) -> syn::Result<RustFile> {
        let tokens: TokenStream = source.text.parse()?;
        let items = items::collect_items(&source.path, &syn::parse2(tokens.clone())?);
        test_modules.extend(items.test_modules.iter().cloned());
        let blank: Vec<u8> = source.text.bytes().map(blank_byte).collect();
        let mut views = Views {
            text: &source.text,
            code: blank.clone(),
            code_and_literals: blank,
            raw_literals: Vec::new(),
        };
        views.add_tokens(tokens.clone());
        let comments = source.text.bytes().zip(&views.code_and_literals);
        let comments =
            comments.map(|(byte, &code)| if byte == code { blank_byte(byte) } else { byte }).collect();
        Ok(RustFile {
            path: source.path.clone(),
            text: source.text.clone(),
            code: utf8(views.code),
            code_and_literals: utf8(views.code_and_literals),
            comments: utf8(comments),
            raw_literals: views.raw_literals,
            paths: paths::collect_paths(&tokens),
            modules: items.modules,
            test_modules: items.test_modules,
            tests: if items.is_test {
                std::iter::once(0..source.text.len()).collect()
            } else {
                items.test_code
            },
            conditional_fields: items.conditional_fields,
            tuple_parameters: items.tuple_parameters,
        })
    }

    /// The declared modules that are part of a product build.
    pub(crate) fn product_modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().filter(|module| !self.test_modules.contains(module)).map(String::as_str)
    }

    /// Whether the code at this offset is compiled for tests only.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// The parts of the text that are test code, with their first lines.
    pub(crate) fn test_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.tests.iter().map(|range| (self.line(range.start), &self.text[range.clone()]))
    }

    /// The line of an offset, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// The offsets of `word` in the code. An end of it that is part of an identifier is the end of the identifier.
    pub(crate) fn find(&self, word: &str) -> Vec<usize> {
        find_word(&self.code, word)
    }
}

/// The code of a file, assembled from its tokens.
struct Views<'a> {
    text: &'a str,
    code: Vec<u8>,
    code_and_literals: Vec<u8>,
    raw_literals: Vec<Range<usize>>,
}

impl Views<'_> {
    /// Copies the tokens into the views.
    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            let span = token.span();
            // `proc-macro2` turns a doc comment into an attribute whose tokens all have the span of the comment.
            if self.text[span.byte_range()].starts_with("//")
                || self.text[span.byte_range()].starts_with("/*")
            {
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    self.copy_token(group.span_open(), true);
                    self.add_tokens(group.stream());
                    self.copy_token(group.span_close(), true);
                }
                TokenTree::Literal(literal) => {
                    let literal = literal.to_string();
                    let is_number = literal.starts_with(|first: char| first.is_ascii_digit());
                    if literal.starts_with(['r', 'b']) && literal.trim_start_matches('b').starts_with('r') {
                        self.raw_literals.push(span.byte_range());
                    }
                    self.copy_token(span, is_number);
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => self.copy_token(span, true),
            }
        }
    }

    /// Copies the bytes of one token into the views.
    fn copy_token(&mut self, span: Span, is_code: bool) {
        let range = span.byte_range();
        let bytes = &self.text.as_bytes()[range.clone()];
        self.code_and_literals[range.clone()].copy_from_slice(bytes);
        if is_code {
            self.code[range].copy_from_slice(bytes);
        }
    }
}

/// The byte that replaces another one: a space, or the same line break.
fn blank_byte(byte: u8) -> u8 {
    if byte == b'\n' { byte } else { b' ' }
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("only whole tokens are replaced, by spaces")
}

/// The offsets of `word` in `text`, see [`RustFile::find`].
pub(crate) fn find_word(text: &str, word: &str) -> Vec<usize> {
    let is_whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let joins = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(is_identifier) && outer.is_some_and(is_identifier)
        };
        !joins(word.chars().next(), before) && !joins(word.chars().next_back(), after)
    };
    text.match_indices(word).map(|(at, _)| at).filter(|&at| is_whole(at)).collect()
}

/// Whether a character can be part of an identifier.
pub(crate) fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests;
