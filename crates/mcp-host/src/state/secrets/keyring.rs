//! The keyring of the system: the Secret Service, the macOS keychain, or the Windows credential manager.
//!
//! Each operation runs on a thread of its own and has a deadline, because a locked keyring may ask the user.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use keyring_core::{CredentialStore, Entry, Error};

use crate::state::secrets::{SecretError, system};

/// How long an operation may take, a question to the user included.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum number of items that are listed.
const MAX_ITEMS: usize = 10_000;

/// The keyring of the system, with the items of one service. Blocks.
#[derive(Clone)]
pub(crate) struct Keyring {
    store: Arc<CredentialStore>,
    service: &'static str,
}

impl Keyring {
    /// Connects to the keyring. The error is the reason why there is none.
    pub(crate) fn open(service: &'static str) -> Result<Keyring, SecretError> {
        let store = with_deadline(|| system::open_store().map_err(|it| error_message(&it)))?;
        Ok(Keyring { store, service })
    }

    /// The value of an item.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, SecretError> {
        self.with_entry(name, |entry| match entry.get_secret() {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error_message(&error)),
        })
    }

    /// Stores an item, and replaces the earlier one.
    pub(crate) fn set(&self, name: &str, value: &[u8]) -> Result<(), SecretError> {
        let value = value.to_vec();
        self.with_entry(name, move |entry| entry.set_secret(&value).map_err(|it| error_message(&it)))
    }

    /// Removes an item. Returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        self.with_entry(name, |entry| match entry.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(error_message(&error)),
        })
    }

    /// The names of all items, unsorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, SecretError> {
        let Keyring { store, service } = self.clone();
        with_deadline(move || {
            let (key, value) = system::search_key(service);
            let found = Entry::search_in_store(&store, &[(key, value.as_str())].into());
            let found = found.map_err(|it| error_message(&it))?;
            let specifiers = found.iter().take(MAX_ITEMS).filter_map(Entry::get_specifiers);
            Ok(specifiers.filter(|it| it.0 == service).map(|it| it.1).collect())
        })
    }

    fn with_entry<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(Entry) -> Result<T, String> + Send + 'static,
    ) -> Result<T, SecretError> {
        let (Keyring { store, service }, name) = (self.clone(), name.to_owned());
        with_deadline(move || {
            work(Entry::new_in_store(&store, service, &name).map_err(|it| error_message(&it))?)
        })
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.service)
    }
}

/// Runs an operation on a thread. After the deadline the thread is left to end by itself.
fn with_deadline<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, SecretError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || {
        let _ = sender.send(work());
    };
    let started = thread::Builder::new().name("keyring".to_owned()).spawn(run);
    started.map_err(|error| SecretError::new(format!("the keyring cannot be used: {error}")))?;
    match receiver.recv_timeout(TIMEOUT) {
        Ok(result) => result.map_err(SecretError::new),
        Err(_) => {
            Err(SecretError::new(format!("the keyring did not respond within {} s", TIMEOUT.as_secs())))
        }
    }
}

/// The message of an error, without the data that it may carry.
fn error_message(error: &Error) -> String {
    match error {
        Error::PlatformFailure(cause) => format!("the keyring failed: {cause}"),
        Error::NoStorageAccess(cause) => format!("the keyring is locked or not accessible: {cause}"),
        Error::TooLong(_, limit) => format!("the keyring of this system stores at most {limit} bytes"),
        Error::Ambiguous(items) => format!("the keyring has {} items of this name", items.len()),
        Error::BadEncoding(_) | Error::BadDataFormat(_, _) => "the keyring has an invalid item".to_owned(),
        _ => "the keyring cannot be used".to_owned(),
    }
}
