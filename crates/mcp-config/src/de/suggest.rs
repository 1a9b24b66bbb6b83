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

/// Like [`closest`], with the certainty of the suggestion. The word of another program for a transport is certain.
///
/// A suggestion is certain if it is the only close candidate, or differs in case only.
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
    let mut near: Vec<_> = candidates
        .map(|it| (strsim::damerau_levenshtein(&folded, &it.to_lowercase()), it))
        .filter(|it| it.0 <= max_distance)
        .collect();
    near.sort_by_key(|it| it.0);
    let (distance, res) = *near.first()?;
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
        // RPT-211
        let transports = |word| suggest(word, ["stdio", "sse", "websocket", "http"]).map(|it| it.0);
        assert_eq!(transports("streamable_http"), Some("http"));
        assert_eq!(transports("streamable-http"), Some("http"));
        assert_eq!(transports("ws"), Some("websocket"));
        assert_eq!(suggest("http", ["stdio", "streamable_http"]).map(|it| it.0), Some("streamable_http"));
    }
}
