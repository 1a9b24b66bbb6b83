//! `Debug` output of values that may be secret but are plain strings in a public type.

#![expect(
    dead_code,
    reason = "only derived implementations of `Debug` use these items, and rustc does not count those"
)]

use std::fmt;

/// A URL without user, query and fragment; `***` if the text is not a URL.
pub(crate) fn redact_url(url: &str) -> String {
    url::Url::parse(url).map_or_else(|_| "***".to_owned(), |it| mcp_host_model::UrlEndpoint::new(it).label())
}

/// Prints as `***`.
struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Prints the names of a map and hides its values.
pub(crate) struct NamesOnly<I>(pub(crate) I);

impl<'a, I: Iterator<Item = &'a String> + Clone> fmt::Debug for NamesOnly<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.clone().map(|name| (name, Hidden))).finish()
    }
}
