//! Name patterns: `*` matches any run of characters; every other character matches itself, case included (DM-036).

/// Returns the first of `patterns` that matches the whole of `name`.
pub fn first_match<'a>(patterns: &'a [String], name: &str) -> Option<&'a str> {
    patterns.iter().find(|pattern| matches(pattern, name)).map(String::as_str)
}

/// Matches `pattern` against the whole of `name`.
///
/// A mismatch extends only the latest `*`, because extending an earlier one could not match more. The time is therefore
/// at most the product of both lengths. Comparing bytes is enough, since a UTF-8 sequence matches only itself.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut pattern_at, mut name_at) = (0, 0);
    // The position of the latest `*`, and the end of the part of the name that it matches.
    let mut star = None;
    while name_at < name.len() {
        if pattern.get(pattern_at) == Some(&b'*') {
            star = Some((pattern_at, name_at));
            pattern_at += 1;
        } else if pattern.get(pattern_at) == Some(&name[name_at]) {
            pattern_at += 1;
            name_at += 1;
        } else if let Some((star_at, match_end)) = star {
            star = Some((star_at, match_end + 1));
            pattern_at = star_at + 1;
            name_at = match_end + 1;
        } else {
            return false;
        }
    }
    pattern[pattern_at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks rows of a pattern and a name with `=` (match) or `!` (no match) between them.
    #[track_caller]
    fn check(rows: &str) {
        for row in rows.split(',') {
            let row = row.trim();
            let at = row.find(['=', '!']).expect("a row has a sign");
            let (pattern, name, want) = (&row[..at], &row[at + 1..], row[at..].starts_with('='));
            assert_eq!(matches(pattern, name), want, "{row}");
        }
    }

    #[test]
    fn dm_036_only_the_star_is_special() {
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
    fn dm_036_long_prefixes_suffixes_and_nul_bytes_are_compared() {
        check(
            "abcdefghij*=abcdefghijk, abcdefghij*!abcdefghix, *abcdefghij=xabcdefghij, *abcdefghij!xxbcdefghij",
        );
        check(
            "ab\0*!ab, *\0ab!ab, ab\0!ab, \0*!a, abc*abc!abc, abc*bcd!abcd, *needle*=a needle b, *needle*!nedle",
        );
    }

    #[test]
    fn first_matching_pattern_is_returned() {
        let list = ["x*", "a*", "*b", "ab"].map(str::to_owned);
        assert_eq!(first_match(&list, "ab"), Some("a*"));
        assert_eq!(first_match(&list, "bb"), Some("*b"));
        assert_eq!(first_match(&list, "c"), None);
    }

    /// A list of `count` patterns, three of which match, beginning at position `first`.
    #[track_caller]
    fn check_position(count: usize, first: usize) {
        let mut list: Vec<String> = (0..count).map(|number| format!("*needle{number}_*")).collect();
        for (at, pattern) in ["*hay*", "*stack*needle*", "*e"].into_iter().enumerate() {
            list[first + at] = pattern.to_owned();
        }
        assert_eq!(first_match(&list, "haystack with a needle"), Some("*hay*"));
        assert_eq!(first_match(&list, "stack with a needle"), Some("*stack*needle*"));
        assert_eq!(first_match(&list, "a needle"), Some("*e"));
        assert_eq!(first_match(&list, "needle1_"), Some("*needle1_*").filter(|_| first > 1));
        assert_eq!(first_match(&list, "nothing"), None);
    }

    #[test]
    fn first_match_is_found_anywhere_in_a_long_list() {
        for (count, first) in [(20, 0), (20, 17), (64, 61), (300, 2), (1_000, 997)] {
            check_position(count, first);
        }
    }

    #[test]
    fn adversarial_patterns_take_bounded_time() {
        let pattern = format!("{}b", "a*".repeat(2_000));
        assert!(!matches(&pattern, &"a".repeat(20_000)));
        let list = vec!["*aaaa*b".to_owned(); 100];
        assert_eq!(first_match(&list, &"a".repeat(100_000)), None);
    }
}
