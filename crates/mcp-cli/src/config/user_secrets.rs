//! The user's secrets: their store, and the sources that configurations read them from.

use std::env;
use std::sync::OnceLock;

use mcp_host_config::SecretSource;
use mcp_host_model::Secret;
use mcp_host_runtime::{KeyringUse, SecretCommand, SecretSources, SecretStore, StateFolderError, state_path};

/// The variable that turns the keyring off.
const KEYRING_VARIABLE: &str = "MCP_HOST_KEYRING";

/// Whether the keyring of the system is used: unless the variable `MCP_HOST_KEYRING` is `off`.
pub(crate) fn keyring_use() -> KeyringUse {
    match env::var_os(KEYRING_VARIABLE) {
        Some(value) if value == "off" => KeyringUse::Off,
        Some(_) | None => KeyringUse::Available,
    }
}

/// Opens the store of the user's secrets. Blocks.
pub(crate) fn open_secret_store() -> Result<SecretStore, StateFolderError> {
    let folder = state_path("mcp-host/secrets", &|name| env::var_os(name))?;
    Ok(SecretStore::open(folder, keyring_use()))
}

/// The sources of secrets: the store, then the user's program, then questions.
pub(crate) fn secret_sources(
    command: Option<SecretCommand>,
    questions: impl SecretSource + 'static,
) -> SecretSources {
    let mut sources: Vec<Box<dyn SecretSource>> = vec![Box::new(LazyStore::default())];
    sources.extend(command.map(|it| Box::new(it) as Box<dyn SecretSource>));
    sources.push(Box::new(questions));
    SecretSources::new(sources)
}

/// The store, which is opened when a configuration first needs a secret.
#[derive(Default)]
struct LazyStore(OnceLock<Result<SecretStore, StateFolderError>>);

impl SecretSource for LazyStore {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        match self.0.get_or_init(open_secret_store) {
            Ok(store) => store.secret(name),
            Err(error) => Err(error.to_string()),
        }
    }
}
