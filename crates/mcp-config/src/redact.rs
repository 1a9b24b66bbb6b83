//! What `Debug` shows of a value that may hold a secret, where the value is plain text because a program or a file gives it so.

use std::fmt;

/// A URL without what may be secret in it.
pub(crate) fn redact_url(url: &str) -> String {
    url::Url::parse(url).map_or_else(|_| "***".to_owned(), |it| mcp_model::UrlEndpoint::new(it).label())
}

/// A value that is not shown.
struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Names with values, of which only the names are shown.
pub(crate) struct NamesOnly<I>(pub(crate) I);

impl<'a, I: Iterator<Item = &'a String> + Clone> fmt::Debug for NamesOnly<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.clone().map(|it| (it, Hidden))).finish()
    }
}
