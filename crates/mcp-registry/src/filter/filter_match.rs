//! Filters: whether a whitelist and a blacklist allow a name, and the deciding pattern.
//!
//! Filters match original names, so they stay valid when the transforms change (DM-037).

use mcp_host_model::ExposureFilter;

use crate::filter::pattern::first_match;

/// The result of a filter, with the deciding pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterMatch<'a> {
    /// The filter has no patterns (DM-039).
    Unfiltered,
    /// The whitelist matches (DM-038), and the blacklist, if any, does not.
    Whitelisted(&'a str),
    /// The whitelist overrides the blacklist (DM-040).
    WhitelistOverrides {
        /// The whitelist's pattern.
        whitelist: &'a str,
        /// The blacklist's pattern.
        blacklist: &'a str,
    },
    /// Neither list matches, and there is a blacklist (DM-041).
    Unlisted,
    /// The blacklist matches (DM-040).
    Blacklisted(&'a str),
    /// There is only a whitelist, and it does not match (DM-038).
    NotWhitelisted,
}

/// Applies a filter to one original name. The result names the first matching pattern of a list.
pub(crate) fn match_filter<'a>(filter: &'a ExposureFilter, original: &str) -> FilterMatch<'a> {
    let ExposureFilter { whitelist, blacklist } = filter;
    let whitelist_match = || first_match(whitelist, original);
    if blacklist.is_empty() {
        if whitelist.is_empty() {
            return FilterMatch::Unfiltered;
        }
        return whitelist_match().map_or(FilterMatch::NotWhitelisted, FilterMatch::Whitelisted);
    }
    match (first_match(blacklist, original), whitelist_match()) {
        (Some(blacklist), Some(whitelist)) => FilterMatch::WhitelistOverrides { whitelist, blacklist },
        (Some(blacklist), None) => FilterMatch::Blacklisted(blacklist),
        (None, Some(whitelist)) => FilterMatch::Whitelisted(whitelist),
        (None, None) => FilterMatch::Unlisted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a filter. Lists are separated by spaces; `want` has one word for each name.
    #[track_caller]
    fn check(whitelist: &str, blacklist: &str, names: &str, want: &str) {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let filter = ExposureFilter { whitelist: list(whitelist), blacklist: list(blacklist) };
        let got = names.split_whitespace().map(|name| match match_filter(&filter, name) {
            FilterMatch::Unfiltered | FilterMatch::Unlisted => "shown".to_owned(),
            FilterMatch::Whitelisted(pattern) => format!("shown:{pattern}"),
            FilterMatch::WhitelistOverrides { whitelist, blacklist } => {
                format!("shown:{whitelist}>{blacklist}")
            }
            FilterMatch::Blacklisted(pattern) => format!("black:{pattern}"),
            FilterMatch::NotWhitelisted => "unlisted".to_owned(),
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
    fn dm_040_dm_041_whitelist_beside_a_blacklist_only_adds_exceptions() {
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
