//! The nesting depth of JSON text, which readers of some programs limit.

/// Returns whether containers are nested deeper than `limit` in a JSON text.
pub fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    // Each level has two delimiters.
    if text.len() <= 2 * limit {
        return false;
    }
    // Most texts have few opening delimiters.
    if memchr::memchr2_iter(b'{', b'[', text).take(limit + 1).count() <= limit {
        return false;
    }
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !is_in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_containers_count() {
        #[track_caller]
        fn check(text: &str, depth: usize) {
            let deeper: Vec<bool> =
                (0..depth + 3).map(|limit| is_deeper_than(text.as_bytes(), limit)).collect();
            let want: Vec<bool> = (0..depth + 3).map(|limit| limit < depth).collect();
            assert_eq!(deeper, want, "{text}");
        }
        check("7", 0);
        check("[]", 1);
        check(r#"{"a":[{"b":1},[[2]]],"c":[]}"#, 4);
        check("[[],[],[[]],[]]", 3);
        check(r#"["[[[\\\"[[",[]]"#, 2);
        check(&format!("{}{}", "[".repeat(200), "]".repeat(200)), 200);
    }
}
