//! Results of `completion/complete`.

use serde::{Deserialize, Deserializer};

/// Suggested values of an argument of a prompt or a resource template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// The total number of values, if the server states it.
    pub total: Option<u64>,
    /// Whether there are more values.
    pub has_more: bool,
}

impl<'de> Deserialize<'de> for Completion {
    /// Reads the `result` member of a response. Fails if `values` is missing.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Completion, D::Error> {
        #[derive(Deserialize)]
        struct CompletionJson {
            completion: ValuesJson,
        }
        #[derive(Deserialize)]
        struct ValuesJson {
            values: Vec<String>,
            // JSON allows `1.0` for a whole number.
            total: Option<f64>,
            #[serde(rename = "hasMore")]
            has_more: Option<bool>,
        }
        let ValuesJson { values, total, has_more } = CompletionJson::deserialize(deserializer)?.completion;
        Ok(Completion { values, total: total.map(|it| it as u64), has_more: has_more == Some(true) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_are_required() {
        let read = |text: &str| serde_json::from_str::<Completion>(text).ok();
        let got = read(r#"{"completion":{"values":["a","b"],"total":7,"hasMore":true}}"#).unwrap();
        assert_eq!((got.values.join(" ").as_str(), got.total, got.has_more), ("a b", Some(7), true));
        let got = read(r#"{"completion":{"values":[]}}"#).unwrap();
        assert_eq!(got, Completion::default());
        assert_eq!(read(r#"{"completion":{}}"#), None);
        assert_eq!(read("{}"), None);
    }
}
