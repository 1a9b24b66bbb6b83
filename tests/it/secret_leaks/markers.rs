//! Secret markers, one for each location, so that a leak shows its origin. They are found verbatim, percent-encoded
//! and in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretLocation {
    /// An environment variable that a child inherits.
    Environment,
    /// A literal value in a server's `env`.
    Literal,
    /// A line in the `envFile` of an entry.
    EnvFile,
    /// A line in the file of `--env-file`.
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
    /// An unknown token for the gateway.
    WrongToken,
    AcpArgument,
    AcpVariable,
    AcpHeader,
    AcpQuery,
}

impl SecretLocation {
    pub(crate) const ALL: [SecretLocation; 19] = [
        SecretLocation::Environment,
        SecretLocation::Literal,
        SecretLocation::EnvFile,
        SecretLocation::DotEnv,
        SecretLocation::Argument,
        SecretLocation::Config,
        SecretLocation::Header,
        SecretLocation::User,
        SecretLocation::Password,
        SecretLocation::Query,
        SecretLocation::Path,
        SecretLocation::SessionId,
        SecretLocation::ClientSecret,
        SecretLocation::GatewayToken,
        SecretLocation::WrongToken,
        SecretLocation::AcpArgument,
        SecretLocation::AcpVariable,
        SecretLocation::AcpHeader,
        SecretLocation::AcpQuery,
    ];

    /// The marker of a location. It is long enough to be redacted as a path segment.
    pub(crate) fn mark(self) -> String {
        format!("pl4nted~{self:?}~9f86d081884c7d659a2feaa0c5")
    }
}

/// The locations of the markers in a text.
pub(crate) fn found(text: &str) -> Vec<SecretLocation> {
    SecretLocation::ALL.into_iter().filter(|it| holds(text, &it.mark())).collect()
}

/// Whether a text contains a secret in any form.
pub(crate) fn holds(text: &str, secret: &str) -> bool {
    let percent: String = secret.bytes().map(|it| format!("%{it:02X}")).collect();
    let escaped = secret.replace('~', "%7E");
    let forms = [secret.to_owned(), escaped, percent.clone(), percent.to_lowercase()];
    forms.iter().chain(&in_base64(secret)).any(|it| text.contains(it))
}

/// The parts of its base64 forms that do not depend on the alignment.
fn in_base64(secret: &str) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let text = format!("{}{secret}", "x".repeat(before));
        let encoded = STANDARD.encode(&text);
        // The first group may contain bits of the preceding text, the last one bits of the following text.
        encoded[if before == 0 { 0 } else { 4 }..encoded.len() - 4].to_owned()
    })
}

#[test]
fn a_marker_is_found_in_every_form() {
    let mark = SecretLocation::Password.mark();
    assert!(found("nothing").is_empty());
    for text in [
        format!("a {mark} b"),
        format!("https://u:{}@h/", mark.replace('~', "%7E")),
        STANDARD.encode(format!("user:{mark}")),
        STANDARD.encode(format!("me:{mark}!")),
        STANDARD.encode(&mark),
    ] {
        assert_eq!(found(&text), [SecretLocation::Password], "{text}");
    }
}
