//! The scenarios that a protocol revision requires, parsed from the suite's list.

/// The side of the protocol that a scenario tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The conformance client, built on the crates.
    Client,
    /// The gateway.
    Server,
}

/// The scenarios of a revision for one side, in the suite's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scenarios {
    /// Scenarios that count.
    pub scored: Vec<String>,
    /// Scenarios that are run and do not count.
    pub unscored: Vec<String>,
}

/// A section of the list.
#[derive(Clone, Copy)]
enum Section {
    Other,
    Required(Side),
    Unscored,
}

impl Side {
    /// The name that the suite uses.
    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// Parses the output of `list --requirements` for one side.
pub(super) fn parse_requirements(text: &str, side: Side) -> Scenarios {
    let mut res = Scenarios::default();
    let mut section = Section::Other;
    let suffix = format!(" [{}]", side.name());
    for line in text.lines() {
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            match (section, item.trim().strip_suffix(&suffix)) {
                (Section::Required(of), None) if of == side => res.scored.push(item.trim().to_owned()),
                (Section::Unscored, Some(name)) => res.unscored.push(name.to_owned()),
                (Section::Other | Section::Required(_) | Section::Unscored, _) => {}
            }
        } else if line.starts_with("Client scenarios") {
            section = Section::Required(Side::Client);
        } else if line.starts_with("Server scenarios") {
            section = Section::Required(Side::Server);
        } else if line.starts_with("Run and reported") {
            section = Section::Unscored;
        } else if !line.starts_with(' ') && !line.trim().is_empty() {
            section = Section::Other;
        }
    }
    res
}
