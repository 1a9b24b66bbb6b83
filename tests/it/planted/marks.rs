//! What is planted, one value for each place, so that a leak names where it came from; and the search for it, in the
//! forms that it may have on its way: as it is, percent-encoded, and in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A variable of ours, handed to a child by its name.
    Environment,
    /// A literal value in a server's `env`.
    Literal,
    /// A line of a file that an entry names as its `envFile`.
    EnvFile,
    /// A line of the file of `--env-file`.
    DotEnv,
    Argument,
    /// `config`, which becomes `MCP_CONFIG`.
    Config,
    Header,
    User,
    Password,
    Query,
    /// A segment of a URL's path.
    Path,
    SessionId,
    ClientSecret,
    GatewayToken,
    /// A token for the gateway that it does not know.
    WrongToken,
    AcpArgument,
    AcpVariable,
    AcpHeader,
    AcpQuery,
}

impl Spot {
    pub(crate) const ALL: [Spot; 19] = [
        Spot::Environment,
        Spot::Literal,
        Spot::EnvFile,
        Spot::DotEnv,
        Spot::Argument,
        Spot::Config,
        Spot::Header,
        Spot::User,
        Spot::Password,
        Spot::Query,
        Spot::Path,
        Spot::SessionId,
        Spot::ClientSecret,
        Spot::GatewayToken,
        Spot::WrongToken,
        Spot::AcpArgument,
        Spot::AcpVariable,
        Spot::AcpHeader,
        Spot::AcpQuery,
    ];

    /// What is planted there. Long enough for a path's segment to be one that nobody shows.
    pub(crate) fn mark(self) -> String {
        format!("pl4nted~{self:?}~9f86d081884c7d659a2feaa0c5")
    }
}

/// The marks that are in a text.
pub(crate) fn found(text: &str) -> Vec<Spot> {
    Spot::ALL.into_iter().filter(|it| holds(text, &it.mark())).collect()
}

/// Does a text hold a secret, in any form?
pub(crate) fn holds(text: &str, secret: &str) -> bool {
    let percent: String = secret.bytes().map(|it| format!("%{it:02X}")).collect();
    let escaped = secret.replace('~', "%7E");
    let forms = [secret.to_owned(), escaped, percent.clone(), percent.to_lowercase()];
    forms.iter().chain(&in_base64(secret)).any(|it| text.contains(it))
}

/// What is always the same of its base64, wherever in a longer text it stands.
fn in_base64(secret: &str) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let text = format!("{}{secret}", "x".repeat(before));
        let encoded = STANDARD.encode(&text);
        // The first group may have bits of what stands before, the last one of what follows.
        encoded[if before == 0 { 0 } else { 4 }..encoded.len() - 4].to_owned()
    })
}

#[test]
fn a_mark_is_found_in_every_form() {
    let mark = Spot::Password.mark();
    assert!(found("nothing").is_empty());
    for text in [
        format!("a {mark} b"),
        format!("https://u:{}@h/", mark.replace('~', "%7E")),
        STANDARD.encode(format!("user:{mark}")),
        STANDARD.encode(format!("me:{mark}!")),
        STANDARD.encode(&mark),
    ] {
        assert_eq!(found(&text), [Spot::Password], "{text}");
    }
}
