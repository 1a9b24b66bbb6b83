//! Compares two trees, except for intended changes. Verifies every edit of a file.

use crate::syntax::{Content, Node, child_pointer};

/// Pointers into the old and the new tree where the trees may differ. The comparison skips these entries and
/// matches the remaining items of a list with each other.
#[derive(Debug, Default)]
pub struct ChangedPointers {
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
}

/// The pointer in the old tree of an unintended difference.
pub fn find_difference(old: &Node, new: &Node, changed: &ChangedPointers) -> Option<String> {
    let root = |node| DiffEntry { key: None, pointer: String::new(), value: node };
    compare_entries(root(old), root(new), changed)
}

/// The pointer in the old tree of the first unintended difference between two entries or below them.
fn compare_entries(old: DiffEntry<'_>, new: DiffEntry<'_>, changed: &ChangedPointers) -> Option<String> {
    if changed.old.contains(&old.pointer) && changed.new.contains(&new.pointer) {
        return None;
    }
    match (old.value.resolved_content(), new.value.resolved_content()) {
        (Content::Mapping(_), Content::Mapping(_)) | (Content::Sequence(_), Content::Sequence(_)) => {
            let mut old_entries = compared_entries(old.value, &old.pointer, &changed.old);
            let mut new_entries = compared_entries(new.value, &new.pointer, &changed.new);
            loop {
                match (old_entries.next(), new_entries.next()) {
                    (None, None) => return None,
                    (Some(old), Some(new)) if old.key == new.key => {
                        let res = compare_entries(old, new, changed);
                        if res.is_some() {
                            return res;
                        }
                    }
                    _ => return Some(old.pointer),
                }
            }
        }
        (Content::Null, Content::Null) | (Content::Broken, Content::Broken) => None,
        (Content::Bool(a), Content::Bool(b)) if a == b => None,
        (Content::Integer(a), Content::Integer(b)) if a == b => None,
        (Content::Float(a), Content::Float(b)) if a.to_bits() == b.to_bits() => None,
        (Content::Large(a) | Content::Text(a), Content::Large(b) | Content::Text(b))
            if a == b && old.value.kind() == new.value.kind() =>
        {
            None
        }
        _ => Some(old.pointer),
    }
}

/// A member, an item or the root, to be compared.
struct DiffEntry<'a> {
    /// The key of a member; `None` for an item and for the root.
    key: Option<&'a str>,
    pointer: String,
    value: &'a Node,
}

/// The members or items of a node, without those at a skipped pointer.
fn compared_entries<'a>(
    node: &'a Node,
    at: &str,
    skipped: &'a [String],
) -> impl Iterator<Item = DiffEntry<'a>> + use<'a> {
    let members = node.members().unwrap_or_default().iter();
    let members = members.map(|it| (Some(&*it.key.text), it.key.text.to_string(), &it.value));
    let items = node.items().unwrap_or_default().iter().enumerate();
    let items = items.map(|(index, it)| (None, index.to_string(), it));
    let at = at.to_owned();
    let all = members.chain(items);
    all.map(move |(key, segment, value)| DiffEntry { key, pointer: child_pointer(&at, &segment), value })
        .filter(|it| !skipped.contains(&it.pointer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse_any;

    #[track_caller]
    fn check(old: &str, new: &str, changed: [&str; 2], want: Option<&str>) {
        let list = |it: &str| it.split_whitespace().map(str::to_owned).collect();
        let changed = ChangedPointers { old: list(changed[0]), new: list(changed[1]) };
        let (old_root, new_root) = (parse_any(old).root.unwrap(), parse_any(new).root.unwrap());
        assert_eq!(find_difference(&old_root, &new_root, &changed).as_deref(), want, "{old} -> {new}");
    }

    #[test]
    fn equal_trees_in_other_syntax_have_no_difference() {
        check("{a: [1, 'x', ~], b: true}", "a:\n- 1\n- x\n- null\nb: true # c", ["", ""], None);
        check("x: &a {k: v}\ny: *a", "x: {k: v}\ny: {k: v}", ["", ""], None);
    }

    #[test]
    fn difference_is_found_at_its_pointer() {
        check("a: {b: 1}", "a: {b: 2}", ["", ""], Some("/a/b"));
        check("a: {b: 1}", "a: {b: '1'}", ["", ""], Some("/a/b"));
        check("a: 1\nb: 2", "b: 2\na: 1", ["", ""], Some(""));
        check("a: [1, 2]", "a: [1]", ["", ""], Some("/a"));
        check("a: 99999999999999999999", "a: '99999999999999999999'", ["", ""], Some("/a"));
    }

    #[test]
    fn intended_changes_are_ignored() {
        check("a: 1\nb: 2", "a: 1\nc: 2", ["/b", "/c"], None);
        check("a: 1\nb: 2", "a: 1\nc: 2", ["/b", ""], Some(""));
        check("a: [1, 2, 3]", "a: [1, 3]", ["/a/1", ""], None);
        check("a: [1, 2, 3]", "a: [1, 4]", ["/a/1", ""], Some("/a/2"));
        check("a: [1]", "a: [1, {x: y}]", ["", "/a/1"], None);
        check("a: 1", "a: 2", ["/a", "/a"], None);
    }
}
