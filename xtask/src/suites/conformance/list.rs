//! What a revision requires, as the suite lists it: pure.

/// Which of our two faces a scenario judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// The client that the crates are.
    Client,
    /// The gateway.
    Server,
}

/// The scenarios of a revision for one face, in the suite's order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scenarios {
    /// Those that count.
    pub scored: Vec<String>,
    /// Those that are run and do not count.
    pub unscored: Vec<String>,
}

/// Which part of the listing a line stands in.
#[derive(Clone, Copy)]
enum Part {
    Other,
    Of(Face),
    Unscored,
}

impl Face {
    /// The suite's word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Face::Client => "client",
            Face::Server => "server",
        }
    }
}

/// Reads `list --requirements`, for one face.
pub(super) fn read(text: &str, face: Face) -> Scenarios {
    let mut res = Scenarios::default();
    let mut part = Part::Other;
    let mark = format!(" [{}]", face.word());
    for line in text.lines() {
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            match (part, item.trim().strip_suffix(&mark)) {
                (Part::Of(of), None) if of == face => res.scored.push(item.trim().to_owned()),
                (Part::Unscored, Some(name)) => res.unscored.push(name.to_owned()),
                (Part::Other | Part::Of(_) | Part::Unscored, _) => {}
            }
        } else if line.starts_with("Client scenarios") {
            part = Part::Of(Face::Client);
        } else if line.starts_with("Server scenarios") {
            part = Part::Of(Face::Server);
        } else if line.starts_with("Run and reported") {
            part = Part::Unscored;
        } else if !line.starts_with(' ') && !line.trim().is_empty() {
            part = Part::Other;
        }
    }
    res
}
