//! What a revision requires, as the suite lists it: pure.

/// The scenarios of a revision, in the suite's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Requirements {
    /// Those of a client that count.
    pub client: Vec<String>,
    /// Those of a client that are run and do not count.
    pub client_unscored: Vec<String>,
}

/// Which part of the listing a line stands in.
#[derive(Clone, Copy)]
enum Part {
    Other,
    Client,
    Unscored,
}

/// Reads `list --requirements`.
pub(super) fn read(text: &str) -> Requirements {
    let mut res = Requirements::default();
    let mut part = Part::Other;
    for line in text.lines() {
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            match (part, item.trim().strip_suffix(" [client]")) {
                (Part::Client, None) => res.client.push(item.trim().to_owned()),
                (Part::Unscored, Some(name)) => res.client_unscored.push(name.to_owned()),
                (Part::Other | Part::Client | Part::Unscored, _) => {}
            }
        } else if line.starts_with("Client scenarios") {
            part = Part::Client;
        } else if line.starts_with("Run and reported") {
            part = Part::Unscored;
        } else if !line.starts_with(' ') && !line.trim().is_empty() {
            part = Part::Other;
        }
    }
    res
}
