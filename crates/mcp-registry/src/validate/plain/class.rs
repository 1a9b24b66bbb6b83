//! Patterns of one kind: a text of nothing but certain letters, digits and signs, as ids and names are asked to be.

use super::Length;

/// `^[…]+$` and its like, where what stands between the brackets is ASCII and means itself.
#[derive(Debug)]
pub(super) struct Class {
    /// A bit for each character.
    characters: u128,
    length: Length,
}

impl Class {
    /// The class that a pattern asks for, if that is all that it does.
    pub(super) fn of(pattern: &str) -> Option<Class> {
        let (class, count) = pattern.strip_prefix("^[")?.strip_suffix('$')?.split_once(']')?;
        let length = match count {
            "*" => Length { least: 0, most: u64::MAX },
            "+" => Length { least: 1, most: u64::MAX },
            _ => counted(count)?,
        };
        let class = class.as_bytes();
        let mut characters = 0;
        let mut at = 0;
        while let Some(first) = class.get(at) {
            let last = match class.get(at + 1..) {
                // Behind the last one it stands for itself.
                Some([b'-', last, ..]) => {
                    let is_range =
                        first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && first <= last;
                    if !is_range {
                        return None;
                    }
                    at += 3;
                    last
                }
                _ => {
                    let is_itself = match first {
                        b'-' => at + 1 == class.len(),
                        // What else there is means something to one engine or another.
                        it => it.is_ascii_alphanumeric() || b"_.,:/@ ".contains(it),
                    };
                    if !is_itself {
                        return None;
                    }
                    at += 1;
                    first
                }
            };
            (*first..=*last).for_each(|it| characters |= 1 << it);
        }
        (characters != 0).then_some(Class { characters, length })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let is_in = |it: u8| it.is_ascii() && self.characters & (1 << it) != 0;
        // All are ASCII, if it fits at all.
        self.length.admits(text.len() as u64) && text.bytes().all(is_in)
    }
}

/// `{2}`, `{2,}` or `{2,4}`.
fn counted(count: &str) -> Option<Length> {
    let count = count.strip_prefix('{')?.strip_suffix('}')?;
    let number = |it: &str| match it.len() {
        1..=4 if it.bytes().all(|it| it.is_ascii_digit()) => it.parse().ok(),
        _ => None,
    };
    let (least, most) = match count.split_once(',') {
        None => (number(count)?, number(count)?),
        Some((least, "")) => (number(least)?, u64::MAX),
        Some((least, most)) => (number(least)?, number(most)?),
    };
    (least <= most).then_some(Length { least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside the engine that such patterns are run by otherwise.
    #[track_caller]
    fn check(pattern: &str, is_known: bool) {
        let class = Class::of(pattern);
        assert_eq!(class.is_some(), is_known, "{pattern}");
        let Some(class) = class else { return };
        let regex = regex::Regex::new(pattern).unwrap();
        let mut texts: Vec<String> = (0..300).filter_map(char::from_u32).map(String::from).collect();
        texts.extend(["", "ab", "a-b_c.9", "abc\n", "a\nb", "\u{e9}a", "aaaaa", "A B"].map(str::to_owned));
        for text in texts {
            assert_eq!(class.matches(&text), regex.is_match(&text), "{pattern} {text:?}");
        }
    }

    #[test]
    fn a_class_is_what_its_pattern_means() {
        for it in [
            "^[a-z0-9_-]+$",
            "^[A-Z]*$",
            "^[a-f0-9]{2}$",
            "^[ab.]{1,3}$",
            "^[a-z ]{2,}$",
            "^[-]+$",
            "^[a]{0}$",
        ] {
            check(it, true);
        }
        for it in [
            "^[a-z]+",
            "[a-z]+$",
            "^[^a]+$",
            "^[\\w]+$",
            "^[a-z]$",
            "^[a-z]+|b$",
            "^[a&&b]+$",
            "^[a--b]+$",
            "^[z-a]+$",
            "^[a-]b]+$",
            "^[]+$",
            "^[a-z]{2,1}$",
            "^[a-z]+?$",
            "^[a-z]+\\$",
            "^[[a]]+$",
            "^[\u{e9}]+$",
            "^[-a]+$",
        ] {
            check(it, false);
        }
    }
}
