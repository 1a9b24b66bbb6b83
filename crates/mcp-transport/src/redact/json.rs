//! Replaces strings in JSON text; everything else keeps its bytes, except blanks.

/// Returns the JSON on one line. `replace` gets each decoded string, and returns its replacement, or `None` to keep it.
/// A number for which `replace` returns a value becomes `0`.
pub fn map_json_strings(json: &str, replace: impl Fn(&str) -> Option<String>) -> String {
    let mut res = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            '-' | '0'..='9' => rest.find(|it: char| !is_number(it)).unwrap_or(rest.len()),
            it => it.len_utf8(),
        };
        let token;
        (token, rest) = rest.split_at(len);
        match first {
            '"' => push_string(&mut res, token, &replace),
            '-' | '0'..='9' if replace(token).is_some() => res.push('0'),
            ' ' | '\t' | '\n' | '\r' => {}
            _ => res.push_str(token),
        }
    }
    res
}

/// Appends a string token, or its replacement.
fn push_string(res: &mut String, token: &str, replace: impl Fn(&str) -> Option<String>) {
    match serde_json::from_str::<String>(token) {
        Ok(text) => match replace(&text) {
            Some(replacement) => {
                res.push_str(&serde_json::to_string(&replacement).expect("a string is JSON"))
            }
            None => res.push_str(token),
        },
        // An unpaired surrogate is no valid string; it stays as it is unless it contains a secret.
        Err(_) => res.push_str(&replace(token).unwrap_or_else(|| token.to_owned())),
    }
}

/// Whether a JSON number may contain this character.
fn is_number(character: char) -> bool {
    matches!(character, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')
}

/// The length of the string that starts here, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}
