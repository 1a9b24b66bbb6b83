//! Replaces strings in JSON by their decoded value; numbers, order and escapes of all other text stay as they are.

/// Returns the JSON on one line with each string as `replaced` returns it. A number for which it returns a value
/// becomes `0`.
pub fn map_json_strings(json: &str, replace: impl Fn(&str) -> Option<String>) -> String {
    let mut res = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            '-' | '0'..='9' => rest.find(|it: char| !is_number(it)).unwrap_or(rest.len()),
            it => it.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        rest = after;
        match first {
            '"' => push_string(&mut res, token, &replace),
            '-' | '0'..='9' if replace(token).is_some() => res.push('0'),
            ' ' | '\t' | '\n' | '\r' => {}
            _ => res.push_str(token),
        }
    }
    res
}

fn push_string(res: &mut String, token: &str, replace: impl Fn(&str) -> Option<String>) {
    match serde_json::from_str::<String>(token) {
        Ok(text) => match replace(&text) {
            Some(clean) => res.push_str(&serde_json::to_string(&clean).expect("a string is JSON")),
            None => res.push_str(token),
        },
        // An unpaired surrogate is no valid string; it stays as it is unless it contains a secret.
        Err(_) => res.push_str(&replace(token).unwrap_or_else(|| token.to_owned())),
    }
}

fn is_number(character: char) -> bool {
    matches!(character, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')
}

/// The length of the string that starts here, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
