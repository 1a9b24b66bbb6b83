//! Encoded text: Base64 and hexadecimal digits that contain readable text.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::finding::{FindingKind, FindingSeverity, Match};
use super::phrases::has_order;

/// The shortest encoded text that is decoded, and the shortest text that is searched for it.
pub(super) const MIN_BYTES: usize = 24;

/// The longest part of an encoded text that is decoded.
const MAX_BYTES: usize = 16 << 10;

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

/// Finds encoded text. It is hard if the decoded text has an order to the model.
pub(super) fn find(text: &str, matches: &mut Vec<Match>) {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '-' | '_' | '=');
    let mut start = 0;
    while let Some(at) = text[start..].find(is_part) {
        let begin = start + at;
        let end = text[begin..].find(|it| !is_part(it)).map_or(text.len(), |it| begin + it);
        if end - begin >= MIN_BYTES
            && let Some(decoded) = decode(&text[begin..end])
        {
            let severity = if has_order(&decoded) { FindingSeverity::Hard } else { FindingSeverity::Soft };
            matches.push(Match {
                kind: FindingKind::EncodedText,
                severity,
                span: begin..end,
                evidence: Some(format!("decoded: {decoded}")),
            });
        }
        start = end;
    }
}

/// Decodes a text if the result is readable: ASCII with blanks between words.
fn decode(text: &str) -> Option<String> {
    let text = &text.trim_end_matches('=')[..text.trim_end_matches('=').len().min(MAX_BYTES)];
    let hexadecimal = text.bytes().all(|it| it.is_ascii_hexdigit()).then(|| decode_hexadecimal(text));
    // A cut text may end within a group of four.
    let whole = &text[..text.len() - usize::from(text.len() % 4 == 1)];
    let decoders = [hexadecimal, STANDARD.decode(whole).ok(), URL_SAFE.decode(whole).ok()];
    decoders.into_iter().flatten().find_map(|bytes| {
        let text = String::from_utf8(bytes).ok()?;
        let is_readable = text.chars().all(|it| matches!(it, ' '..='~' | '\n' | '\t'));
        let has_words = text.split_whitespace().filter(|it| it.len() > 1).count() >= 3;
        (is_readable && has_words).then_some(text)
    })
}

fn decode_hexadecimal(text: &str) -> Vec<u8> {
    let digit = |it: u8| char::from(it).to_digit(16).and_then(|it| u8::try_from(it).ok()).unwrap_or_default();
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
