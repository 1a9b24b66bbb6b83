//! Moves the secrets that are written in a configuration to the store of secrets, and writes references to them.
//!
//! A secret is stored before the file is changed, so that no failure loses it.

use mcp_host_config::{
    Document, FieldChange, FieldOperation, Reading, WrittenFile, is_secret_name, read, secret_fields,
    set_fields, split_scheme,
};
use mcp_host_model::{ConfigValue, Dialect, Secret, ServerSpec, TransportSpec};
use mcp_host_runtime::{SecretPlace, SecretStore};
use serde::Serialize;

/// The maximum number of secrets of the same name in different files.
const MAX_NUMBER: usize = 100;

/// A secret that was moved.
#[derive(Debug, Serialize)]
pub(super) struct MovedSecret {
    server: String,
    field: String,
    /// The name under which it is stored.
    secret: String,
}

/// The text of a file without its secrets.
#[derive(Debug, Default)]
pub(super) struct MovedSecrets {
    pub(super) text: String,
    pub(super) moved: Vec<MovedSecret>,
    /// Where they are stored; `None` if none was moved.
    pub(super) place: Option<SecretPlace>,
    /// Fields that were not moved, with the reason.
    pub(super) skipped: Vec<String>,
}

/// The fields of all servers that may be secrets, as `SERVER: FIELD`. An ACP request cannot have references.
pub(super) fn literal_secrets(reading: &Reading) -> Vec<String> {
    let servers = reading.servers.iter().filter(|it| it.origin.dialect() != Dialect::Acp);
    let fields = servers.flat_map(|server| {
        secret_fields(server).into_iter().map(move |field| format!("{}: {field}", server.id))
    });
    fields.collect()
}

/// Stores the secrets of a file, and returns its text with references. Blocks. The error says why none can be stored.
pub(super) fn move_secrets(document: &Document<'_>, store: &SecretStore) -> Result<MovedSecrets, String> {
    let mut res = MovedSecrets { text: document.text.to_owned(), ..MovedSecrets::default() };
    for server in &read(document).servers {
        for field in secret_fields(server) {
            let Some((prefix, value)) = literal_secret(server, &field) else {
                res.skipped
                    .push(format!("{}: {field} is not a single text of `env` or `headers`", server.id));
                continue;
            };
            let name = free_name(server.id.as_str(), &field, &value, store)?;
            let change = FieldOperation::Set(format!("{prefix}${{secret:{name}}}"));
            let change = FieldChange::new(&*field, change);
            // A file that cannot have the reference keeps its value, and nothing is stored.
            match set_fields(&document.with_text(&res.text), server.id.as_str(), &[change]) {
                Ok(WrittenFile { text, .. }) => {
                    res.place = Some(store.set(&name, &value).map_err(|it| it.to_string())?);
                    res.text = text;
                    res.moved.push(MovedSecret { server: server.id.to_string(), field, secret: name });
                }
                Err(error) => res.skipped.push(format!("{}: {field}: {error}", server.id)),
            }
        }
    }
    Ok(res)
}

/// The text before a secret that stays in the file, and the secret. `None` if the field is not one literal text.
fn literal_secret<'a>(server: &'a ServerSpec, field: &str) -> Option<(&'a str, Secret)> {
    let (map, name) = field.split_once('.')?;
    let entries = match (map, &server.transport) {
        ("env", TransportSpec::Stdio(spec)) => &spec.env,
        (
            "headers",
            TransportSpec::Sse(spec) | TransportSpec::WebSocket(spec) | TransportSpec::Http(spec),
        ) => &spec.headers,
        (_, _) => return None,
    };
    // A repeated name cannot be changed by its name.
    let mut values = entries.iter().filter(|it| it.0 == name);
    let (Some((_, ConfigValue::Literal(text))), None) = (values.next(), values.next()) else { return None };
    let text = text.expose();
    let (scheme, secret) = if map == "headers" { split_scheme(text) } else { ("", text) };
    Some((scheme, Secret::new(secret)))
}

/// A name for a secret that is free, or has this value already: `SERVER_NAME`, or with a number.
fn free_name(server: &str, field: &str, value: &Secret, store: &SecretStore) -> Result<String, String> {
    let key = field.split_once('.').map_or(field, |it| it.1);
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let base: String = format!("{server}_{key}").chars().map(plain).take(56).collect();
    let base = base.trim_start_matches('-');
    for number in 1..=MAX_NUMBER {
        let name = if number == 1 { base.to_owned() } else { format!("{base}_{number}") };
        debug_assert!(is_secret_name(&name));
        match store.get(&name).map_err(|it| it.to_string())? {
            Some(stored) if stored != *value => {}
            Some(_) | None => return Ok(name),
        }
    }
    Err(format!("there are {MAX_NUMBER} secrets like `{base}`"))
}
