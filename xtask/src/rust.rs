//! Rust text, as far as the gates must understand it: what is a comment, what is a string, what is a test.
//!
//! There is no parser here, and no syntax tree: the rules are about words. Every view of a file has the length and
//! the lines of the file, so that a place in one is the place in all.

mod mask;
mod test_code;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::tree::Source;
use mask::mask;
pub(crate) use test_code::module_folder;

/// One `.rs` file in the views that the gates need.
#[derive(Debug)]
pub(crate) struct RustFile {
    pub path: String,
    /// As it stands.
    pub text: String,
    /// Comments and the insides of strings are blank.
    pub code: String,
    /// Comments are blank, strings stay.
    pub spoken: String,
    tests: Vec<Range<usize>>,
}

impl RustFile {
    /// All `.rs` files of the tree.
    pub(crate) fn all(sources: &[Source]) -> Vec<RustFile> {
        let rust = sources.iter().filter(|it| it.path.ends_with(".rs"));
        let mut res: Vec<RustFile> = rust.map(RustFile::read).collect();
        let outside: BTreeSet<String> =
            res.iter().flat_map(|it| test_code::test_modules(&it.path, &it.code)).collect();
        for file in &mut res {
            let stem = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
            let within = outside.iter().any(|it| stem == it || stem.starts_with(&format!("{it}/")));
            if within || test_code::is_test_path(&file.path) {
                file.tests = std::iter::once(0..file.text.len()).collect();
            }
        }
        res
    }

    fn read(source: &Source) -> RustFile {
        let (code, spoken) = mask(&source.text);
        let tests = test_code::regions(&code);
        RustFile { path: source.path.clone(), text: source.text.clone(), code, spoken, tests }
    }

    /// Is this place of the file test code?
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|it| it.contains(&at))
    }

    /// The parts of the text that are test code.
    pub(crate) fn test_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.tests.iter().map(|it| (self.line(it.start), &self.text[it.clone()]))
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].bytes().filter(|&it| it == b'\n').count() + 1
    }

    /// Where `word` stands in the code. A word that begins or ends like an identifier is a whole one.
    pub(crate) fn find(&self, word: &str) -> Vec<usize> {
        find_word(&self.code, word)
    }
}

/// Where `word` stands in `text`, see [`RustFile::find`].
pub(crate) fn find_word(text: &str, word: &str) -> Vec<usize> {
    let stands_alone = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let joins = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(is_identifier) && outer.is_some_and(is_identifier)
        };
        !joins(word.chars().next(), before) && !joins(word.chars().next_back(), after)
    };
    text.match_indices(word).map(|(at, _)| at).filter(|&at| stands_alone(at)).collect()
}

pub(crate) fn is_identifier(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

#[cfg(test)]
mod tests;
