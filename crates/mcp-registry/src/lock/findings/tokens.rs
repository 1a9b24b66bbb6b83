//! The words of a text, as the rules compare them.
//!
//! Words are in lower case. Invisible characters are left out, and letters that look like Latin ones are replaced, so
//! that neither hides a word from the rules.

use std::ops::Range;

use mcp_host_model::is_invisible;

use super::finding::FindingText;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Range<usize>,
    /// The number of the sentence that it is in.
    pub(super) sentence: u32,
}

/// Returns the word that replaces a whole chunk of a text, such as a path.
pub(super) type ChunkWord<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Reads the words. A chunk without white space for which `chunk_word` returns a word is this one word. In the name of
/// a member a capital after a small letter begins a word, as in `systemPrompt`.
pub(super) fn read_words(text: &str, kind: FindingText, chunk_word: ChunkWord<'_>) -> Vec<Word> {
    let mut reader = WordReader { kind, chunk_word, sentence: 0, words: Vec::new() };
    let (mut start, mut ends_sentence) = (0, false);
    while let Some(length) = text[start..].find(|it: char| !it.is_whitespace()) {
        let space = &text[start..start + length];
        if space.matches('\n').count() > 1 || (ends_sentence && !space.is_empty()) {
            reader.sentence += 1;
        }
        start += length;
        let end = text[start..].find(char::is_whitespace).map_or(text.len(), |it| start + it);
        let chunk = &text[start..end];
        reader.read_chunk(chunk, start);
        ends_sentence = chunk.trim_end_matches(['"', '\'', ')', '`', '*']).ends_with(['.', '!', '?', ';']);
        start = end;
    }
    reader.words
}

/// The state of reading words.
struct WordReader<'a> {
    kind: FindingText,
    chunk_word: ChunkWord<'a>,
    /// The number of the current sentence.
    sentence: u32,
    words: Vec<Word>,
}

impl WordReader<'_> {
    /// Reads the words of a chunk, which begins at `start`.
    fn read_chunk(&mut self, chunk: &str, start: usize) {
        let is_part = |it: char| it.is_alphanumeric();
        let inner = chunk.trim_start_matches(|it| !is_part(it) && !matches!(it, '/' | '~' | '_' | '.'));
        let inner = inner.trim_end_matches(|it| !is_part(it) && !matches!(it, '/' | '_'));
        if let Some(word) = (self.chunk_word)(inner) {
            self.push(word.to_owned(), start..start + chunk.len());
            return;
        }
        let (mut word, mut span, mut after_small) = (String::new(), 0..0, false);
        for (at, character) in chunk.char_indices().filter(|it| !is_invisible(it.1)) {
            let letter = fold(character);
            let begins_word = self.kind == FindingText::Name && after_small && character.is_uppercase();
            let continues = is_part(letter) || (letter == '\'' && !word.is_empty());
            if (begins_word || !continues) && !word.is_empty() {
                self.push(std::mem::take(&mut word), span.clone());
            }
            after_small = character.is_lowercase();
            if continues {
                if word.is_empty() {
                    span.start = start + at;
                }
                span.end = start + at + character.len_utf8();
                word.extend(letter.to_lowercase());
            }
        }
        if !word.is_empty() {
            self.push(word, span);
        }
    }

    fn push(&mut self, text: String, span: Range<usize>) {
        self.words.push(Word { text, span, sentence: self.sentence });
    }
}

/// Replaces a letter that looks like a Latin one by that one.
pub(super) fn fold(character: char) -> char {
    let code = u32::from(character);
    match character {
        '\0'..='\u{7f}' => character,
        '’' | 'ʼ' | '＇' => '\'',
        // Full-width forms are in the order of ASCII.
        '！'..='～' => char::from_u32(code - 0xfee0).unwrap_or(character),
        // Mathematical alphabets: 13 styles of 52 letters.
        '\u{1d400}'..='\u{1d6a3}' => match (code - 0x1d400) % 52 {
            it @ 0..26 => char::from_u32(u32::from('A') + it).unwrap_or(character),
            it => char::from_u32(u32::from('a') + it - 26).unwrap_or(character),
        },
        '\u{24b6}'..='\u{24cf}' => char::from_u32(code - 0x24b6 + u32::from('A')).unwrap_or(character),
        '\u{24d0}'..='\u{24e9}' => char::from_u32(code - 0x24d0 + u32::from('a')).unwrap_or(character),
        _ => look_alike(character).unwrap_or(character),
    }
}

/// Cyrillic and Greek letters, each before the Latin letter that it looks like.
const LOOK_ALIKES: [&str; 4] = [
    "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwмmтtкkнhвb",
    "АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХX",
    "αaοoνvρpιiκkτtυu",
    "ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX",
];

/// The Latin letter that a Cyrillic or Greek letter looks like.
pub(super) fn look_alike(character: char) -> Option<char> {
    LOOK_ALIKES.into_iter().find_map(|row| {
        let mut letters = row.chars();
        while let (Some(from), Some(to)) = (letters.next(), letters.next()) {
            if from == character {
                return Some(to);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, kind: FindingText, want: &[&str]) {
        let chunk_word = |chunk: &str| (chunk == "~/.ssh").then_some("@file");
        let got = read_words(text, kind, &chunk_word);
        let got: Vec<String> = got.into_iter().map(|it| format!("{}{}", it.text, it.sentence)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn words_are_folded() {
        check("Do NOT, don’t.\nMore; then", FindingText::Value, &["do0", "not0", "don't0", "more1", "then2"]);
        check("ig\u{200b}nore іgnоrе 𝐢𝐠𝐧𝐨𝐫𝐞 ｉgnore", FindingText::Value, &["ignore0"; 4]);
        check("a\nb\n\nc", FindingText::Value, &["a0", "b0", "c1"]);
        check("in `~/.ssh`, x_y", FindingText::Value, &["in0", "@file0", "x0", "y0"]);
        check("systemPrompt_ID", FindingText::Name, &["system0", "prompt0", "id0"]);
    }
}
