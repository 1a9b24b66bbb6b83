//! What was probably meant.

/// The candidate nearest to `word`, if it is near: at most a third of its letters wrong, and at least one may be.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nothing we know is so long, and the distance takes time with the square of the length.
    const LONGEST: usize = 64;
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    let allowed = (length / 3).max(1);
    let folded = word.to_lowercase();
    candidates
        .into_iter()
        .map(|it| (strsim::damerau_levenshtein(&folded, &it.to_lowercase()), it))
        .filter(|it| it.0 <= allowed)
        .min_by_key(|it| it.0)
        .map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, want: Option<&str>) {
        let known = ["truely-stateless", "command", "transport", "env", "envFile", "url"];
        assert_eq!(nearest(word, known), want, "{word}");
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        check("truly-stateless", Some("truely-stateless"));
        check("comand", Some("command"));
        check("trasnport", Some("transport"));
        check("envfile", Some("envFile"));
        check("URL", Some("url"));
        check("enc", Some("env"));
        check("foo", None);
        check("", None);
        check(&"x".repeat(1000), None);
    }
}
