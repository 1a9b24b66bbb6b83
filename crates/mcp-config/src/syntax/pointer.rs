//! JSON pointers (RFC 6901).

/// The pointer to `key` below `parent`.
pub(crate) fn child_pointer(parent: &str, key: &str) -> String {
    let mut res = String::with_capacity(parent.len() + key.len() + 1);
    res.push_str(parent);
    push_key(&mut res, key);
    res
}

/// Appends `key` to `pointer`, escaped.
pub(crate) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    if key.contains('~') || key.contains('/') {
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(key);
    }
}

/// Returns whether `pointer` is `parent` or below it.
pub(crate) fn pointer_contains(parent: &str, pointer: &str) -> bool {
    pointer.strip_prefix(parent).is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// The unescaped segments of a pointer: keys of mappings, and indexes of lists.
pub(crate) fn pointer_segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~"))
}

/// The pointer to the parent; `None` for the root.
pub(crate) fn parent_pointer(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|it| it.0)
}

/// The last segment, unescaped; empty for the root.
pub(crate) fn last_key(pointer: &str) -> String {
    pointer_segments(pointer).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_escapes_and_unescapes() {
        let pointer = child_pointer(&child_pointer("", "servers"), "a/b~c");
        assert_eq!(pointer, "/servers/a~1b~0c");
        assert_eq!(pointer_segments(&pointer).collect::<Vec<_>>(), ["servers", "a/b~c"]);
        assert_eq!(last_key(&pointer), "a/b~c");
        assert_eq!(last_key(""), "");
    }

    #[test]
    fn contains_compares_whole_keys() {
        assert!(pointer_contains("/tools/1", "/tools/1"));
        assert!(pointer_contains("/tools/1", "/tools/1/env"));
        assert!(!pointer_contains("/tools/1", "/tools/10"));
        assert!(pointer_contains("", "/tools"));
    }
}
