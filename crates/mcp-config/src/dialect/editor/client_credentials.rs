//! Reads the credentials of an OAuth client: the key `auth` in the form of mcp-host. Forms of other programs are kept
//! and not used.

use mcp_host_model::{ClientCredentials, ClientGrant, ClientKey, ConfigValue};

use crate::de::{Location, ReadContext};
use crate::diagnostic::{CheckError, Code, quoted};
use crate::dialect::editor::fields::ValueReader;
use crate::syntax::{Member, Node};

/// The values of `grant`. An `auth` without it is a form of another program.
const GRANTS: [(&str, ClientGrant); 2] =
    [("client_credentials", ClientGrant::ClientCredentials), ("token_exchange", ClientGrant::TokenExchange)];

/// The keys of the mapping `auth`.
const KEYS: [&str; 6] = ["grant", "clientId", "clientSecret", "privateKey", "scopes", "issuer"];

/// Reads the key `auth` of an entry. `None` if it is missing, of another program, or invalid, which is reported.
pub(super) fn read(
    entry: &Node,
    at: &Location,
    values: &ValueReader<'_>,
) -> Option<ClientCredentials<ConfigValue>> {
    let context = values.context;
    let member = entry.get("auth")?;
    let (auth, at) = (&member.value, at.member(member, context));
    let grant = read_grant(auth.get("grant")?, &at, context)?;
    for member in auth.members().into_iter().flatten() {
        if !KEYS.contains(&&*member.key.text) {
            let message = format!("`auth` has no key '{}'", quoted(&member.key.text));
            let help = context.did_you_mean(&member.key.text, KEYS).unwrap_or_else(|| "remove it".to_owned());
            context.error(Code::UnknownKey, &at.member(member, context), message, help);
        }
    }
    let text = |key: &str| {
        let member = auth.get(key)?;
        let at = at.member(member, context);
        match member.value.text().filter(|text| !text.trim().is_empty()) {
            Some(text) => Some((text.to_owned(), at)),
            None => {
                context.error(Code::WrongType, &at, format!("`{key}` must be a text"), "write it in quotes");
                None
            }
        }
    };
    let value = |key: &str| {
        let (text, at) = text(key)?;
        Some(values.without_shell_syntax().value(text, &at, accept_any))
    };
    let key = match (value("clientSecret"), value("privateKey")) {
        (Some(secret), None) => Some(ClientKey::Secret(secret)),
        (None, Some(key)) => Some(ClientKey::PrivateKey(key)),
        (Some(_), Some(_)) => {
            let message = "`auth` has both `clientSecret` and `privateKey`";
            let help = "remove the one that the client is not registered with";
            context.error(Code::Exclusive, &at, message, help);
            None
        }
        (None, None) => {
            let message = "`auth` has neither `clientSecret` nor `privateKey`";
            context.error(Code::MissingKey, &at, message, "add the one that the client is registered with");
            None
        }
    };
    let client_id = text("clientId").map(|(id, _)| id);
    if client_id.is_none() && auth.get("clientId").is_none() {
        context.error(Code::MissingKey, &at, "`auth` has no `clientId`", "add the id of the client");
    }
    let scopes = read_scopes(auth, &at, context);
    let issuer = text("issuer").map(|(issuer, _)| issuer);
    if auth.get("issuer").is_none() {
        // Without it, a server could choose which authorization server receives the secret.
        let message = "`auth` has no `issuer`, the only authorization server that receives the secret";
        let help =
            "add the server where the client is registered, as in `\"issuer\": \"https://id.example\"`";
        context.error(Code::MissingKey, &at, message, help);
    }
    let mut credentials = ClientCredentials::new(grant, client_id?, key?, issuer?);
    credentials.scopes = scopes;
    Some(credentials)
}

fn read_grant(member: &Member, auth: &Location, context: &ReadContext) -> Option<ClientGrant> {
    let text = member.value.text().unwrap_or_default();
    if let Some((_, grant)) = GRANTS.iter().find(|(name, _)| *name == text) {
        return Some(*grant);
    }
    let near = context.did_you_mean(text, GRANTS.map(|(name, _)| name));
    let help = near.unwrap_or_else(|| "to log in as a user, leave out `auth`".to_owned());
    let message = "`grant` must be `client_credentials` or `token_exchange`";
    context.error(Code::UnknownWord, &auth.member(member, context), message, help);
    None
}

fn read_scopes(auth: &Node, at: &Location, context: &ReadContext) -> Vec<String> {
    let Some(member) = auth.get("scopes") else { return Vec::new() };
    let at = at.member(member, context);
    let items: Option<Vec<String>> = member
        .value
        .items()
        .and_then(|items| items.iter().map(|item| item.text().map(str::to_owned)).collect());
    items.unwrap_or_else(|| {
        let help = "write [\"read\", \"write\"]";
        context.error(Code::WrongType, &at, "`scopes` must be a list of texts", help);
        Vec::new()
    })
}

fn accept_any(_: &str) -> Result<(), CheckError> {
    Ok(())
}
