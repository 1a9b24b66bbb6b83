//! Links of the pages at the root, such as ARCHITECTURE.md: the files and folders that they name exist.

use crate::error::Violation;
use crate::tree::Source;

/// Checks the links of each page at the root to files of the tree.
pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let exists = |target: &str| {
        let folder = format!("{}/", target.trim_end_matches('/'));
        sources.iter().any(|source| source.path == target || source.path.starts_with(&folder))
    };
    let mut res = Vec::new();
    for page in sources.iter().filter(|source| source.path.ends_with(".md") && !source.path.contains('/')) {
        for (index, line) in page.text.lines().enumerate() {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            let targets = targets.filter(|target| !target.is_empty() && !target.contains("://"));
            let missing = targets.filter(|target| !exists(target));
            res.extend(missing.map(|target| {
                Violation::new(&page.path, index + 1, format!("`{target}` does not exist: correct the link"))
            }));
        }
    }
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn a_link_to_a_missing_file_is_found() {
        let text = "[a](src/a.rs) [f](src#x) [s](#part) [w](https://a.example)\n[b](src/b.rs)\n";
        let found = check(&Tree::of(&[("PAGE.md", text), ("docs/p.md", text), ("src/a.rs", "")]).sources);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["PAGE.md:2: `src/b.rs` does not exist: correct the link"]);
    }
}
