//! A filter of tools by name.

use std::fmt;

use mcp_host_registry::ExposedTool;
use mcp_host_registry::pattern::first_match;

/// The patterns of a filter; without patterns, it accepts every tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameFilter(Vec<String>);

impl fmt::Display for NameFilter {
    /// Prints the patterns, in backquotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<String> = self.0.iter().map(|pattern| format!("`{pattern}`")).collect();
        f.write_str(&patterns.join(", "))
    }
}

impl NameFilter {
    /// A filter with these patterns. A pattern with a `*` matches a whole name, another one a part of a name; case is
    /// ignored.
    pub(crate) fn new(patterns: &[String]) -> NameFilter {
        let whole = |pattern: &String| {
            let pattern = pattern.to_lowercase();
            if pattern.contains('*') { pattern } else { format!("*{pattern}*") }
        };
        NameFilter(patterns.iter().map(whole).collect())
    }

    /// Whether there are no patterns.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a pattern matches the exposed name of a tool, or the server's own name for it.
    pub(crate) fn accepts(&self, tool: &ExposedTool) -> bool {
        self.is_empty() || self.matches(tool.name.as_str()) || self.matches(&tool.tool.name)
    }

    fn matches(&self, name: &str) -> bool {
        first_match(&self.0, &name.to_lowercase()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], name: &str, want: bool) {
        let patterns: Vec<String> = patterns.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(NameFilter::new(&patterns).matches(name), want, "{patterns:?} {name}");
    }

    #[test]
    fn star_matches_a_whole_name_and_a_word_its_part() {
        check(&["read*"], "read_file", true);
        check(&["read*"], "fs_read_file", false);
        check(&["*file"], "read_file", true);
        check(&["read"], "fs_read_file", true);
        check(&["READ"], "fs_Read_file", true);
        check(&["write", "*file"], "read_file", true);
        check(&["write"], "read_file", false);
    }
}
