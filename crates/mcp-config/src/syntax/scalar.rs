//! Plain scalars by the core schema of YAML 1.2, without YAML 1.1.
//!
//! `yes`, `no`, `on`, `off` and `1:30` are strings, and `0777` is the number 777.

use crate::syntax::Content;

/// Parses a plain scalar.
pub(super) fn parse_plain(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" => Content::Bool(true),
        "false" | "False" | "FALSE" => Content::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Content::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Content::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Content::Float(f64::NEG_INFINITY),
        _ => parse_number(text).unwrap_or_else(|| Content::Text(text.to_owned())),
    }
}

/// Parses a number; `None` for a text.
fn parse_number(text: &str) -> Option<Content> {
    if let Some(digits) = text.strip_prefix("0o") {
        return parse_digits(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return parse_digits(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|it| it.is_ascii_digit()) {
        return Some(parse_integer(text, unsigned));
    }
    is_float(unsigned).then(|| text.parse().ok().map(|it| float_or_large(it, text))).flatten()
}

/// Parses the digits of an octal or hexadecimal integer.
fn parse_digits(digits: &str, radix: u32) -> Option<Content> {
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    Some(match u128::from_str_radix(digits, radix) {
        Ok(value) => {
            i64::try_from(value).map_or_else(|_| Content::Large(value.to_string()), Content::Integer)
        }
        Err(_) => Content::Large(format!("{}{digits}", if radix == 8 { "0o" } else { "0x" })),
    })
}

/// A number, or its text if it is too large for a float.
pub(super) fn float_or_large(value: f64, text: &str) -> Content {
    if value.is_finite() { Content::Float(value) } else { Content::Large(text.to_owned()) }
}

/// Parses a decimal integer; `unsigned` is the text without its sign.
fn parse_integer(text: &str, unsigned: &str) -> Content {
    if let Ok(value) = text.parse() {
        return Content::Integer(value);
    }
    let digits = unsigned.trim_start_matches('0');
    let sign = if text.starts_with('-') { "-" } else { "" };
    format!("{sign}{digits}")
        .parse()
        .map_or_else(|_| Content::Large(format!("{sign}{digits}")), Content::Integer)
}

/// Matches `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, without the sign.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let has_digits_only = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, part)) => {
            has_digits_only(whole) && has_digits_only(part) && !(whole.is_empty() && part.is_empty())
        }
        None => !mantissa.is_empty() && has_digits_only(mantissa),
    };
    let is_exponent = exponent.is_none_or(|it| {
        let it = it.strip_prefix(['-', '+']).unwrap_or(it);
        !it.is_empty() && has_digits_only(it)
    });
    is_mantissa && is_exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(format!("{:?}", parse_plain(text)), want, "{text}");
    }

    #[test]
    fn hdx_24_dm_020_scalars_are_those_of_yaml_1_2() {
        check("", "Null");
        check("~", "Null");
        check("nULL", "Text(\"nULL\")");
        check("true", "Bool(true)");
        check("yes", "Text(\"yes\")");
        check("no", "Text(\"no\")");
        check("on", "Text(\"on\")");
        check("1:30", "Text(\"1:30\")");
        check("1_000", "Text(\"1_000\")");
        check("60", "Integer(60)");
        check("-1", "Integer(-1)");
        check("+7", "Integer(7)");
        check("0777", "Integer(777)");
        check("0o17", "Integer(15)");
        check("0xFf", "Integer(255)");
        check("0x", "Text(\"0x\")");
        check("0b1", "Text(\"0b1\")");
        check("1.0", "Float(1.0)");
        check("1.", "Float(1.0)");
        check(".5", "Float(0.5)");
        check("-1e3", "Float(-1000.0)");
        check("1e", "Text(\"1e\")");
        check(".", "Text(\".\")");
        check("-", "Text(\"-\")");
        check(".inf", "Float(inf)");
        check(".nan", "Float(NaN)");
        check("inf", "Text(\"inf\")");
        check("9223372036854775808", "Large(\"9223372036854775808\")");
        check("-00099999999999999999999", "Large(\"-99999999999999999999\")");
        check("0xffffffffffffffff", "Large(\"18446744073709551615\")");
        check("-1e400", "Large(\"-1e400\")");
    }
}
