//! Blanks comments and strings out of Rust text.
//!
//! Every masked byte becomes a space and every line break stays, so that places and lines keep their numbers.

use std::ops::Range;

enum Token {
    Comment(usize),
    Literal(usize),
    Other(usize),
}

/// The text without comments and strings, and the text without comments only.
pub(super) fn mask(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut code, mut spoken) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        at = match token(bytes, at) {
            Token::Comment(end) => {
                blank(&mut code, at..end);
                blank(&mut spoken, at..end);
                end
            }
            Token::Literal(end) => {
                blank(&mut code, at..end);
                end
            }
            Token::Other(end) => end,
        };
    }
    let whole = |bytes| String::from_utf8(bytes).expect("only whole tokens were replaced, by spaces");
    (whole(code), whole(spoken))
}

fn blank(bytes: &mut [u8], range: Range<usize>) {
    for byte in &mut bytes[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn token(bytes: &[u8], at: usize) -> Token {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => {
            Token::Comment(at + rest.iter().position(|&it| it == b'\n').unwrap_or(rest.len()))
        }
        [b'/', b'*', ..] => Token::Comment(block_comment_end(bytes, at)),
        [b'"', ..] => Token::Literal(quoted_end(bytes, at, b'"')),
        [b'\'', ..] => character(bytes, at),
        [first, ..] if first.is_ascii_alphabetic() || *first == b'_' => word(bytes, at),
        // A number keeps its letters, so that the `b` of `0b1` is no prefix.
        [first, ..] if first.is_ascii_digit() => Token::Other(word_end(bytes, at)),
        _ => Token::Other(at + 1),
    }
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let is_part = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
    bytes[at..].iter().position(|it| !is_part(it)).map_or(bytes.len(), |it| at + it)
}

/// A word, or the literal that it is the prefix of.
fn word(bytes: &[u8], at: usize) -> Token {
    let end = word_end(bytes, at);
    match (&bytes[at..end], bytes.get(end)) {
        (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => {
            raw_end(bytes, end).map_or(Token::Other(end), Token::Literal)
        }
        (b"b" | b"c", Some(b'"')) => Token::Literal(quoted_end(bytes, end, b'"')),
        (b"b", Some(b'\'')) => Token::Literal(quoted_end(bytes, end, b'\'')),
        _ => Token::Other(end),
    }
}

/// A character, or the tick of a lifetime.
fn character(bytes: &[u8], at: usize) -> Token {
    let Some(&first) = bytes.get(at + 1) else { return Token::Other(at + 1) };
    let width = match first {
        b'\\' => return Token::Literal(quoted_end(bytes, at, b'\'')),
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    };
    match bytes.get(at + 1 + width) {
        Some(b'\'') => Token::Literal(at + width + 2),
        _ => Token::Other(at + 1),
    }
}

/// Past the closing quote of the literal that opens at `at`.
fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            it if it == quote => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// Past the end of the raw string whose hashes begin at `at`; nothing where it is a raw identifier.
fn raw_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at..].iter().take_while(|&&it| it == b'#').count();
    let open = at + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let inside = &bytes[open + 1..];
    let length = inside.windows(close.len()).position(|it| it == close);
    Some(length.map_or(bytes.len(), |it| open + 1 + it + close.len()))
}

fn block_comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0_usize, at);
    while end < bytes.len() {
        match &bytes[end..] {
            [b'/', b'*', ..] => {
                depth += 1;
                end += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    return end;
                }
            }
            _ => end += 1,
        }
    }
    bytes.len()
}
