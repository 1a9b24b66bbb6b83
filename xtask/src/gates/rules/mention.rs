//! Rule ids in tests: `HD-044`, `hd_044_by_host`, `HD-107 to HD-111`, `dm_038_to_dm_041`, `DM-041/042`.
//!
//! A range means the ids of the table between its ends; the numbers have gaps.

use std::collections::BTreeSet;

use super::table::{FAMILIES, RuleId};

/// Separators before the last id of a range.
const RANGE_SEPARATORS: &[&str] = &[" to ", "_to_", " through ", "...", "..", "–"];

/// Separators before the next id of a list, which omits the family.
const LIST_SEPARATORS: &[&str] = &[", ", "/", " and ", "_and_", "_"];

/// The ids in one line of a test. A range gives its ends and the ids of `known` between them.
pub(super) fn find_ids(line: &str, known: &BTreeSet<RuleId>) -> Vec<RuleId> {
    let mut res = Vec::new();
    // Most lines name no id.
    if !line.bytes().any(|it| it.is_ascii_digit()) {
        return res;
    }
    let mut at = 0;
    while at < line.len() {
        let Some((id, length)) = id_at(line, at) else {
            at += line[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        res.push(id);
        at += length;
        let mut last = id;
        while let Some(FollowingId { id: next, length, is_range }) = following_id(&line[at..], last) {
            if is_range {
                res.extend(known.range(last..=next).filter(|it| **it != last && **it != next));
            }
            res.push(next);
            at += length;
            last = next;
        }
    }
    res
}

/// The id that starts at `at`, with its length.
fn id_at(line: &str, at: usize) -> Option<(RuleId, usize)> {
    let before = line[..at].chars().next_back();
    if before.is_some_and(|it| it.is_ascii_alphanumeric() || it == '-') {
        return None;
    }
    full_id(&line[at..], line)
}

/// An id with its family: in capitals with a hyphen, or in snake case in the name of a test.
fn full_id(text: &str, line: &str) -> Option<(RuleId, usize)> {
    let is_name = line.contains("fn ") || line.contains("mod ");
    FAMILIES.iter().find_map(|&(family, digits)| {
        let (start, rest) = text.split_at_checked(family.len())?;
        let (number, separator) = if start == family {
            (parse_digits(rest, digits), 0)
        } else if is_name && is_snake_case(start, family) {
            match rest.strip_prefix('_') {
                Some(rest) => (parse_digits(rest, digits), 1),
                None => (parse_digits(rest, digits), 0),
            }
        } else {
            (None, 0)
        };
        Some((RuleId { family, digits, number: number? }, family.len() + separator + digits))
    })
}

/// Whether `text` is the family in snake case.
fn is_snake_case(text: &str, family: &str) -> bool {
    let snake = family.bytes().map(|it| if it == b'-' { b'_' } else { it.to_ascii_lowercase() });
    text.bytes().eq(snake)
}

/// Parses exactly this many digits, without a letter or digit after them.
fn parse_digits(text: &str, digits: usize) -> Option<u32> {
    let number = text.get(..digits).filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    let after = text[digits..].chars().next();
    if after.is_some_and(|it| it.is_ascii_alphanumeric()) { None } else { number.parse().ok() }
}

/// The id after another one.
struct FollowingId {
    id: RuleId,
    /// The bytes of the separator and of the id.
    length: usize,
    /// Whether it is the end of a range, and not the next of a list.
    is_range: bool,
}

/// The id after another one, as the end of a range or the next of a list.
fn following_id(text: &str, last: RuleId) -> Option<FollowingId> {
    let bare = |text: &str| Some((RuleId { number: parse_digits(text, last.digits)?, ..last }, last.digits));
    for separator in RANGE_SEPARATORS {
        if let Some(rest) = text.strip_prefix(separator) {
            // The first id shows that the line names ids, so both notations count.
            let (id, length) = full_id(rest, "fn ").or_else(|| bare(rest))?;
            let is_forward = id.family == last.family && id > last;
            return is_forward.then_some(FollowingId {
                id,
                length: separator.len() + length,
                is_range: true,
            });
        }
    }
    for separator in LIST_SEPARATORS {
        if let Some((id, length)) = text.strip_prefix(separator).and_then(bare) {
            // Two digits after a name could be a size.
            return (last.digits == 3).then_some(FollowingId {
                id,
                length: separator.len() + length,
                is_range: false,
            });
        }
    }
    None
}
