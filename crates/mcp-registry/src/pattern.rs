//! Does a pattern match a name? `*` is any run of characters, everything else is itself, case included (DM-036).

/// Matches the whole of `name`.
///
/// On a mismatch only the latest `*` takes one more byte, for an earlier one could not do better: the time is at most
/// the product of both lengths, whatever the pattern. Bytes are enough, since a UTF-8 sequence matches only itself.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    while read < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, read));
            at += 1;
        } else if pattern.get(at) == Some(&name[read]) {
            at += 1;
            read += 1;
        } else if let Some((star_at, taken)) = star {
            star = Some((star_at, taken + 1));
            at = star_at + 1;
            read = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows` are `pattern name` with `=` for a match and `!` for none between them.
    #[track_caller]
    fn check(rows: &str) {
        for row in rows.split(',') {
            let row = row.trim();
            let at = row.find(['=', '!']).expect("a row has a sign");
            assert_eq!(matches(&row[..at], &row[at + 1..]), row[at..].starts_with('='), "{row}");
        }
    }

    #[test]
    fn dm_036_a_star_is_any_run_and_nothing_else_is_special() {
        check(
            "*=x, *=, !x, =, a=a, a!b, a!, a*=a, a*=ab, *a=ba, *a*=bab, a*b=ab, a*b!abx, a*a=aa, a*a!a, ab*ba=abba",
        );
        check(
            "a*b*c!acb, *ab*ab=abab, a.c!abc, a?c!abc, [ab]!a, a**b=ab, **=, a*ab!ab, *aab=aaab, a*bc*bc!abc",
        );
        check(
            "browser_*=browser_click, browser_*!xbrowser_a, *_unsafe=_unsafe, *_unsafe!a_unsafe_b, A*!a, é*=éa, *é!a",
        );
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = format!("{}b", "a*".repeat(2_000));
        assert!(!matches(&pattern, &"a".repeat(20_000)));
    }
}
