//! Spelling suggestions.

use crate::diagnostic::Applicability;

/// The candidate closest to `word`. At most a third of its letters may differ, but always one.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    suggest(word, candidates).map(|it| it.0)
}

/// The variable whose name was probably meant by `name`: it differs in case and underscores, or in one or two
/// characters. Names of variables are often alike, so they need more likeness than other words.
pub(crate) fn closest_variable<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let fold = |it: &str| it.replace('_', "").to_lowercase();
    let folded = fold(name);
    let max_distance = if folded.len() < 8 { 1 } else { 2 };
    let near = candidates.into_iter().filter(|it| it.len().abs_diff(name.len()) <= 4 && it.len() > 2);
    let near = near.map(|it| (strsim::damerau_levenshtein(&folded, &fold(it)), it));
    near.filter(|it| it.0 <= max_distance).min().map(|it| it.1)
}

/// The words of different programs for one transport.
const SYNONYMS: [&[&str]; 3] = [
    &["http", "streamable_http", "streamable-http", "streamableHttp", "streamableHTTP"],
    &["websocket", "ws"],
    &["stdio", "local"],
];

/// The unit that a word names at its end, as `_ms` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Milliseconds,
    Seconds,
}

/// Endings of words that name a unit.
const UNIT_ENDINGS: [(&str, Unit); 7] = [
    ("milliseconds", Unit::Milliseconds),
    ("millis", Unit::Milliseconds),
    ("_ms", Unit::Milliseconds),
    ("-ms", Unit::Milliseconds),
    ("seconds", Unit::Seconds),
    ("secs", Unit::Seconds),
    ("sec", Unit::Seconds),
];

/// The unit of a word, and the word without it.
fn split_unit(word: &str) -> (String, Option<Unit>) {
    let lower = word.to_lowercase();
    // `startupTimeoutMs`, but not `params`.
    if let Some(stem) = word.strip_suffix("Ms") {
        return (stem.to_lowercase(), Some(Unit::Milliseconds));
    }
    for (ending, unit) in UNIT_ENDINGS {
        if let Some(stem) = lower.strip_suffix(ending) {
            return (stem.trim_end_matches(['_', '-']).to_owned(), Some(unit));
        }
    }
    (lower, None)
}

/// Like [`closest`], with the certainty of the suggestion. The word of another program for a transport is certain.
///
/// A suggestion is certain if it is the only close candidate, or differs in case only. It never names another unit than
/// the word, and one that adds a unit is not certain.
pub(crate) fn suggest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, Applicability)> {
    // No known word is longer, and the cost grows with the square of the length.
    const MAX_CHARS: usize = 64;
    let length = word.chars().count();
    if length > MAX_CHARS {
        return None;
    }
    let mut candidates = candidates.into_iter().peekable();
    let mut known = Vec::new();
    if let Some(same) = SYNONYMS.iter().find(|it| it.contains(&word)) {
        known.extend(candidates.by_ref());
        if let Some(other) = known.iter().find(|it| same.contains(it)) {
            return Some((other, Applicability::Certain));
        }
    }
    let candidates = known.into_iter().chain(candidates);
    let max_distance = (length / 3).max(1);
    let folded = word.to_lowercase();
    let (_, unit) = split_unit(word);
    let distance = |candidate: &str| {
        let (stem, candidate_unit) = split_unit(candidate);
        match (unit, candidate_unit) {
            // Only the unit is missing.
            (None, Some(_)) if stem == folded => Some(1),
            (None, _) => Some(strsim::damerau_levenshtein(&folded, &candidate.to_lowercase())),
            (Some(_), _) if unit != candidate_unit => None,
            (Some(_), _) => Some(strsim::damerau_levenshtein(&folded, &candidate.to_lowercase())),
        }
    };
    let mut near: Vec<_> = candidates.filter_map(|it| Some((distance(it)?, it))).collect();
    near.retain(|it| it.0 <= max_distance);
    near.sort_by_key(|it| it.0);
    let (distance, res) = *near.first()?;
    if unit != split_unit(res).1 {
        return Some((res, Applicability::Suggested));
    }
    // A word of two or three letters is similar to too many others.
    let is_only_candidate = near.len() == 1 && length > 3;
    let is_certain = distance == 0 || is_only_candidate;
    Some((res, if is_certain { Applicability::Certain } else { Applicability::Suggested }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, want: Option<&str>) {
        let known = ["truely-stateless", "command", "transport", "env", "envFile", "url"];
        assert_eq!(suggest(word, known).map(|it| it.0), want, "{word}");
    }

    #[test]
    fn variables_need_more_likeness() {
        let known = ["OPENROUTER_API_KEY", "GITHUB_TOKEN", "PATH", "A"];
        let check = |name, want| assert_eq!(closest_variable(name, known), want, "{name}");
        check("GITHUB_TOKN", Some("GITHUB_TOKEN"));
        check("GithubToken", Some("GITHUB_TOKEN"));
        check("PTAH", Some("PATH"));
        check("OPENAI_API_KEY", None);
        check("B", None);
        check("HASH", None);
    }

    #[test]
    fn typos_get_a_suggestion() {
        check("truly-stateless", Some("truely-stateless"));
        check("comand", Some("command"));
        check("trasnport", Some("transport"));
        check("envfile", Some("envFile"));
        check("URL", Some("url"));
        check("enc", Some("env"));
        check("foo", None);
        let known = ["truely-stateless", "command", "transport", "env", "envFile", "env_file", "url"];
        let sure = |word| suggest(word, known).map(|it| it.1);
        assert_eq!(sure("truly_stateless"), Some(Applicability::Certain));
        assert_eq!(sure("envfile"), Some(Applicability::Certain));
        assert_eq!(sure("env_fil"), Some(Applicability::Suggested));
        assert_eq!(sure("evn"), Some(Applicability::Suggested));
        check("", None);
        check(&"x".repeat(1000), None);
        // RPT-216
        let timeouts = ["startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "timeout"];
        let find = |word| suggest(word, timeouts);
        assert_eq!(find("startup_timeout"), Some(("startup_timeout_sec", Applicability::Suggested)));
        assert_eq!(find("tool_timeout"), Some(("tool_timeout_sec", Applicability::Suggested)));
        assert_eq!(find("startupTimeoutMs").map(|it| it.0), Some("startup_timeout_ms"));
        assert_eq!(find("tool_timeout_ms").map(|it| it.0), None);
        assert_eq!(find("timeout_ms"), None);
        assert_eq!(suggest("parms", ["params"]).map(|it| it.0), Some("params"));
        // RPT-211
        let transports = |word| suggest(word, ["stdio", "sse", "websocket", "http"]).map(|it| it.0);
        assert_eq!(transports("streamable_http"), Some("http"));
        assert_eq!(transports("streamable-http"), Some("http"));
        assert_eq!(transports("ws"), Some("websocket"));
        assert_eq!(suggest("http", ["stdio", "streamable_http"]).map(|it| it.0), Some("streamable_http"));
    }
}
