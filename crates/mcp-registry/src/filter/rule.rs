//! What a filter says about a name: the paper's two modes, and why.
//!
//! Matched are original names, so that a filter stays true when the transforms change (DM-037).

use mcp_model::Filter;

use crate::filter::pattern::Patterns;

/// What a filter says, with the pattern that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruling<'a> {
    /// There is no pattern at all (DM-039).
    Unfiltered,
    /// The whitelist names it (DM-038), and the blacklist, if any, does not.
    Whitelisted(&'a str),
    /// The whitelist brings it back from the blacklist (DM-040).
    Rescued {
        /// The whitelist's pattern.
        whitelist: &'a str,
        /// The blacklist's pattern.
        blacklist: &'a str,
    },
    /// Neither list names it, and there is a blacklist (DM-041).
    Unmentioned,
    /// The blacklist names it (DM-040).
    Blacklisted(&'a str),
    /// There is only a whitelist, and it does not name it (DM-038).
    NotWhitelisted,
}

/// A filter with its patterns prepared.
#[derive(Debug)]
pub(crate) struct Sieve<'a> {
    whitelist: Patterns<'a>,
    blacklist: Patterns<'a>,
}

impl<'a> Sieve<'a> {
    pub(crate) fn new(filter: &'a Filter) -> Sieve<'a> {
        let Filter { whitelist, blacklist } = filter;
        Sieve { whitelist: Patterns::new(whitelist), blacklist: Patterns::new(blacklist) }
    }

    /// The same for a single name.
    pub(crate) fn for_one(filter: &'a Filter) -> Sieve<'a> {
        let Filter { whitelist, blacklist } = filter;
        Sieve { whitelist: Patterns::for_one(whitelist), blacklist: Patterns::for_one(blacklist) }
    }

    /// Rules on one original name. The first matching pattern of a list is the one named.
    pub(crate) fn rule(&self, original: &str) -> Ruling<'a> {
        if self.blacklist.is_empty() {
            if self.whitelist.is_empty() {
                return Ruling::Unfiltered;
            }
            return self.whitelist.first(original).map_or(Ruling::NotWhitelisted, Ruling::Whitelisted);
        }
        match (self.blacklist.first(original), self.whitelist.first(original)) {
            (Some(blacklist), Some(whitelist)) => Ruling::Rescued { whitelist, blacklist },
            (Some(blacklist), None) => Ruling::Blacklisted(blacklist),
            (None, Some(whitelist)) => Ruling::Whitelisted(whitelist),
            (None, None) => Ruling::Unmentioned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists are separated by spaces; `want` has one word for each name.
    #[track_caller]
    fn check(whitelist: &str, blacklist: &str, names: &str, want: &str) {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let filter = Filter { whitelist: list(whitelist), blacklist: list(blacklist) };
        let ruled = |it: &str| {
            let ruling = Sieve::for_one(&filter).rule(it);
            assert_eq!(ruling, Sieve::new(&filter).rule(it), "prepared or not");
            ruling
        };
        let got = names.split_whitespace().map(|it| match ruled(it) {
            Ruling::Unfiltered | Ruling::Unmentioned => "shown".to_owned(),
            Ruling::Whitelisted(pattern) => format!("shown:{pattern}"),
            Ruling::Rescued { whitelist, blacklist } => format!("shown:{whitelist}>{blacklist}"),
            Ruling::Blacklisted(pattern) => format!("black:{pattern}"),
            Ruling::NotWhitelisted => "unlisted".to_owned(),
        });
        assert_eq!(got.collect::<Vec<_>>().join(" "), want);
    }

    #[test]
    fn dm_039_without_patterns_everything_is_shown() {
        check("", "", "a b", "shown shown");
    }

    #[test]
    fn dm_038_a_whitelist_alone_restricts() {
        check("page_* nav*", "", "page_open other navigate", "shown:page_* unlisted shown:nav*");
        check("nomatch", "", "a b", "unlisted unlisted");
    }

    #[test]
    fn dm_040_dm_041_beside_a_blacklist_a_whitelist_only_rescues() {
        check("", "*_unsafe", "a a_unsafe", "shown black:*_unsafe");
        check(
            "browser_* page_*",
            "*_unsafe",
            "browser_click browser_unsafe other other_unsafe",
            "shown:browser_* shown:browser_*>*_unsafe shown black:*_unsafe",
        );
        check(
            "page_unsafe",
            "*_unsafe x*",
            "page_unsafe x_unsafe xy",
            "shown:page_unsafe>*_unsafe black:*_unsafe black:x*",
        );
    }
}
