//! The cases of the benchmark and their clients, read from `benches/cases.toml`.

use serde::Deserialize;

use crate::error::Error;
use crate::tree;

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cases {
    pub(super) clients: Vec<Client>,
    /// The comparison of clients.
    pub(super) comparison: Vec<Case>,
    /// Growth of the cost with the load.
    pub(super) growth: Vec<Case>,
}

/// A client: a column of the tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) program: String,
    #[serde(default)]
    pub(super) arguments: Vec<String>,
}

/// The transport between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BenchTransport {
    /// The client starts the server.
    #[default]
    Stdio,
    /// HTTP with JSON responses.
    Http,
    /// HTTP with event streams as responses.
    Events,
}

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BetterDirection {
    #[default]
    Less,
    More,
}

/// One measurement.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Case {
    pub(super) title: String,
    pub(super) transport: BenchTransport,
    /// Arguments of the client.
    pub(super) arguments: String,
    /// Arguments of the server.
    pub(super) server: String,
    /// The field of the client's JSON output.
    pub(super) metric: String,
    /// How many units of the metric are one `unit`.
    pub(super) divisor: f64,
    pub(super) unit: String,
    pub(super) better: BetterDirection,
    /// Whether client and server share one processor.
    pub(super) is_pinned: bool,
    /// The ids of the clients.
    pub(super) clients: Vec<String>,
    /// A multiple of the number of rounds, for short measurements with much variance.
    pub(super) rounds_factor: usize,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            title: String::new(),
            transport: BenchTransport::default(),
            arguments: String::new(),
            server: String::new(),
            metric: "p50_us".to_owned(),
            divisor: 1.0,
            unit: "µs".to_owned(),
            better: BetterDirection::default(),
            is_pinned: false,
            clients: Vec::new(),
            rounds_factor: 1,
        }
    }
}

impl Cases {
    /// Reads the file.
    pub(super) fn read() -> Result<Cases, Error> {
        tree::read_toml("benches/cases.toml")
    }

    /// The clients that run one of these cases.
    pub(super) fn clients_of(&self, cases: &[Case]) -> Vec<&Client> {
        let runs = |client: &Client| cases.iter().any(|case| case.clients.contains(&client.id));
        self.clients.iter().filter(|client| runs(client)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_title_and_known_clients() {
        let cases = Cases::read().unwrap();
        for case in cases.comparison.iter().chain(&cases.growth) {
            assert!(!case.title.is_empty() && !case.clients.is_empty(), "{case:?}");
            assert_eq!(cases.clients_of(std::slice::from_ref(case)).len(), case.clients.len(), "{case:?}");
        }
    }
}
