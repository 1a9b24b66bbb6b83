//! Phrases: finds the word patterns of [`rules`](super::rules) in a text.
//!
//! The patterns are compiled once. A search looks at a bounded number of words after each beginning of a phrase.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::finding::{FindingKind, FindingSeverity, FindingText, Match, OtherTools};
use super::rules::{self, Rule};
use super::tokens::{Word, read_words};

/// The most words between the first and the last one of a phrase.
const MAX_PHRASE_WORDS: usize = 100;

/// Finds the phrases of all rules in a text.
pub(super) fn find(text: &str, kind: FindingText, others: &OtherTools, matches: &mut Vec<Match>) {
    let words = read_words(text, kind, &|chunk| chunk_word(chunk, others));
    let is_name = kind == FindingText::Name;
    let names = is_name.then_some(&NAME_PHRASES);
    for phrases in [Some(&PHRASES), names].into_iter().flatten() {
        for (kind, severity, range) in phrases.find(&words) {
            let span = words[range.0].span.start..words[range.1].span.end;
            matches.push(Match { kind, severity, span, evidence: None });
        }
    }
}

/// Whether a decoded text has an order, or addresses a model.
pub(super) fn has_order(text: &str) -> bool {
    let mut matches = Vec::new();
    find(text, FindingText::Value, &OtherTools::default(), &mut matches);
    matches.iter().any(|it| it.severity == FindingSeverity::Hard) || has_address(text)
}

/// Whether a text addresses a model, or gives an order.
pub(super) fn has_address(text: &str) -> bool {
    let words = read_words(text, FindingText::Value, &|_| None);
    words.iter().any(|word| rules::ADDRESS.split('|').any(|it| it == word.text))
}

/// The word that replaces a chunk: see [`rules`](super::rules).
fn chunk_word(chunk: &str, others: &OtherTools) -> Option<&'static str> {
    let bare = chunk.trim_end_matches("()");
    let last = bare.rsplit(['/', '.', ':']).next().unwrap_or(bare);
    if others.contains(bare) || others.contains(last) {
        return Some("@tool");
    }
    if !chunk.contains(['.', '/', '_', '@', '\\']) {
        return None;
    }
    let path = chunk.replace('\\', "/").to_ascii_lowercase();
    let path = path.trim_end_matches(['.', '/', '`', '\'', '"', ',', ')']);
    let is_secret = rules::SECRET_FILES.contains(&path)
        || path.ends_with("/.env")
        || rules::SECRET_PATHS.iter().any(|it| path.contains(it));
    if is_secret {
        return Some("@secret");
    }
    let is_url = path.contains("://");
    let is_mail = path.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    (is_url || is_mail).then_some("@address")
}

/// The phrases of all texts.
static PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::compile(rules::RULES));
/// The further phrases of names of members.
static NAME_PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::compile(rules::NAME_RULES));

/// Compiled phrases.
struct Phrases {
    /// The number of each word that a phrase has.
    vocabulary: HashMap<&'static str, usize>,
    phrases: Vec<Phrase>,
    /// The phrases that begin with a word, by its number.
    beginnings: Vec<Vec<usize>>,
}

/// A compiled phrase, and the finding that a text with it is.
struct Phrase {
    kind: FindingKind,
    severity: FindingSeverity,
    /// The words of the phrase in their order.
    slots: Vec<Slot>,
}

/// One word of a phrase, with its alternatives.
struct Slot {
    /// How many words may be between this one and the one before.
    gap: usize,
    /// Whether they may be in different sentences.
    crosses_sentences: bool,
    /// Whether a word is allowed here, by its number.
    words: Vec<bool>,
}

/// The first and the last word of a phrase in a text.
type WordRange = (usize, usize);

impl Phrases {
    fn compile(rules: &'static [Rule]) -> Phrases {
        let mut vocabulary = HashMap::new();
        let words_of = |token: &'static str| {
            token.split('|').flat_map(|word| {
                let set = rules::SETS.iter().find(|it| it.0 == word);
                set.map_or(word, |it| it.1).split('|').map(str::trim)
            })
        };
        let is_word = |token: &&str| !token.starts_with(['~', '^']);
        for token in rules.iter().flat_map(|it| it.2.split_whitespace()).filter(is_word) {
            for word in words_of(token) {
                let next = vocabulary.len();
                vocabulary.entry(word).or_insert(next);
            }
        }
        let mut res =
            Phrases { phrases: Vec::new(), beginnings: vec![Vec::new(); vocabulary.len()], vocabulary };
        for (kind, severity, text) in rules {
            let mut slots: Vec<Slot> = Vec::new();
            let (mut gap, mut crosses_sentences) = (0, false);
            for token in text.split_whitespace() {
                if let Some(count) = token.strip_prefix(['~', '^']) {
                    gap = count.parse().expect("a gap is a number");
                    crosses_sentences = token.starts_with('^');
                    continue;
                }
                let mut words = vec![false; res.vocabulary.len()];
                words_of(token).for_each(|it| words[res.vocabulary[it]] = true);
                slots.push(Slot { gap, crosses_sentences, words });
                (gap, crosses_sentences) = (0, false);
            }
            let first = slots.first().expect("a phrase has a word");
            for (number, _) in first.words.iter().enumerate().filter(|it| *it.1) {
                res.beginnings[number].push(res.phrases.len());
            }
            res.phrases.push(Phrase { kind: *kind, severity: *severity, slots });
        }
        res
    }

    /// Finds the first place of each phrase.
    fn find(&self, words: &[Word]) -> Vec<(FindingKind, FindingSeverity, WordRange)> {
        let numbers: Vec<Option<usize>> =
            words.iter().map(|it| self.vocabulary.get(it.text.as_str()).copied()).collect();
        let mut is_found = vec![false; self.phrases.len()];
        let mut res = Vec::new();
        for (start, number) in numbers.iter().enumerate() {
            let Some(number) = number else { continue };
            for index in &self.beginnings[*number] {
                let Phrase { kind, severity, slots } = &self.phrases[*index];
                if !is_found[*index]
                    && let Some(end) = find_end(slots, words, &numbers, start)
                {
                    is_found[*index] = true;
                    res.push((*kind, *severity, (start, end)));
                }
            }
        }
        res
    }
}

/// The last word of a phrase that begins at `start`.
fn find_end(slots: &[Slot], words: &[Word], numbers: &[Option<usize>], start: usize) -> Option<usize> {
    let limit = words.len().min(start + MAX_PHRASE_WORDS);
    let mut reached = vec![start];
    for slot in &slots[1..] {
        let mut next = Vec::new();
        let mut before = reached.iter().copied().peekable();
        let mut latest = None;
        for at in start + 1..limit {
            // Of all words of the slot before, the nearest one fits if any does.
            while let Some(position) = before.next_if(|it| *it < at) {
                latest = Some(position);
            }
            let Some(position) = latest else { continue };
            let is_near = at - position - 1 <= slot.gap
                && (slot.crosses_sentences || words[at].sentence == words[position].sentence);
            if is_near && numbers[at].is_some_and(|it| slot.words[it]) {
                next.push(at);
            }
        }
        if next.is_empty() {
            return None;
        }
        reached = next;
    }
    reached.first().copied()
}
