//! Rule ids in tests: `HD-044`, `hd_044_by_host`, `HD-107 to HD-111`, `dm_038_to_dm_041`, `DM-041/042`.
//!
//! A range means the ids of the table between its ends; the numbers have gaps.

use std::collections::BTreeSet;

use super::table::{FAMILIES, Id};

/// Separators before the last id of a range.
const RANGE: &[&str] = &[" to ", "_to_", " through ", "...", "..", "–"];

/// Separators before the next id of a list, which omits the family.
const LIST: &[&str] = &[", ", "/", " and ", "_and_", "_"];

/// The ids in one line of a test. A range gives its ends and the ids of `known` between them.
pub(super) fn ids(line: &str, known: &BTreeSet<Id>) -> Vec<Id> {
    let mut res = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let Some((id, length)) = starts_with_id(line, at) else {
            at += line[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        res.push(id);
        at += length;
        let mut last = id;
        while let Some((next, length, is_range)) = continuation(&line[at..], last) {
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
fn starts_with_id(line: &str, at: usize) -> Option<(Id, usize)> {
    let before = line[..at].chars().next_back();
    if before.is_some_and(|it| it.is_ascii_alphanumeric() || it == '-') {
        return None;
    }
    full_id(&line[at..], line)
}

/// An id with its family: in capitals with a hyphen, or in snake case in the name of a test.
fn full_id(text: &str, line: &str) -> Option<(Id, usize)> {
    FAMILIES.iter().find_map(|&(family, digits)| {
        let capitals = text.strip_prefix(family).and_then(|it| number(it, digits));
        if let Some(number) = capitals {
            return Some((Id { family, digits, number }, family.len() + digits));
        }
        let snake = family.to_ascii_lowercase().replace('-', "_");
        let spelled = [snake.clone(), format!("{snake}_")];
        let is_name = line.contains("fn ") || line.contains("mod ");
        let found = spelled.iter().find_map(|it| {
            let number = text.strip_prefix(it.as_str()).and_then(|it| number(it, digits))?;
            Some((Id { family, digits, number }, it.len() + digits))
        });
        found.filter(|_| is_name)
    })
}

/// Parses exactly this many digits, without a letter or digit after them.
fn number(text: &str, digits: usize) -> Option<u32> {
    let number = text.get(..digits).filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?;
    let after = text[digits..].chars().next();
    if after.is_some_and(|it| it.is_ascii_alphanumeric()) { None } else { number.parse().ok() }
}

/// The id after another one, as the end of a range or the next of a list, with its length.
fn continuation(text: &str, last: Id) -> Option<(Id, usize, bool)> {
    let bare = |text: &str| Some((Id { number: number(text, last.digits)?, ..last }, last.digits));
    for link in RANGE {
        if let Some(rest) = text.strip_prefix(link) {
            // The first id shows that the line names ids, so both notations count.
            let (id, length) = full_id(rest, "fn ").or_else(|| bare(rest))?;
            let is_forward = id.family == last.family && id > last;
            return is_forward.then_some((id, link.len() + length, true));
        }
    }
    for link in LIST {
        if let Some((id, length)) = text.strip_prefix(link).and_then(bare) {
            // Two digits after a name could be a size.
            return (last.digits == 3).then_some((id, link.len() + length, false));
        }
    }
    None
}
