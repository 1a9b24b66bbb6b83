//! The store of the user's secrets: the keyring of the system, or private files where there is none.

use std::path::{Path, PathBuf};

use mcp_host_config::{SecretSource, is_secret_name};
use mcp_host_model::Secret;

#[cfg(feature = "keyring")]
use crate::state::secrets::keyring::Keyring;
use crate::state::secrets::private_files::PrivateFiles;
use crate::state::secrets::{SecretError, check_secret};

/// The service under which the keyring has the secrets.
#[cfg(feature = "keyring")]
const SERVICE: &str = "mcp-host secret";

/// Whether the keyring of the system is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is used or not")]
pub enum KeyringUse {
    /// If there is one.
    Available,
    /// Files only.
    Off,
}

/// The store of the user's secrets. Its methods block, and a locked keyring may ask the user.
///
/// A secret is written to the keyring. Where there is none, it is written to a file of mode 0600. Secrets in files are
/// read in any case.
#[derive(Debug)]
pub struct SecretStore {
    /// The keyring, or the reason why there is none.
    #[cfg(feature = "keyring")]
    keyring: Result<Keyring, SecretError>,
    files: PrivateFiles,
}

/// Where a secret is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretPlace {
    /// In the keyring of the system.
    Keyring,
    /// In a private file of a folder.
    #[non_exhaustive]
    File {
        /// The folder.
        folder: PathBuf,
        /// Why there is no keyring.
        reason: String,
    },
}

impl SecretStore {
    /// Connects to the keyring. `folder` has the files, and must be private to the user; it may be missing.
    pub fn open(folder: impl Into<PathBuf>, keyring: KeyringUse) -> SecretStore {
        #[cfg(not(feature = "keyring"))]
        let _ = keyring;
        SecretStore {
            #[cfg(feature = "keyring")]
            keyring: match keyring {
                KeyringUse::Available => Keyring::open(SERVICE),
                KeyringUse::Off => Err(SecretError::new("the keyring is turned off")),
            },
            files: PrivateFiles::new(folder.into()),
        }
    }

    /// Where a new secret is stored.
    pub fn place(&self) -> SecretPlace {
        #[cfg(feature = "keyring")]
        let reason = match &self.keyring {
            Ok(_) => return SecretPlace::Keyring,
            Err(error) => error.to_string(),
        };
        #[cfg(not(feature = "keyring"))]
        let reason = "this program was built without one".to_owned();
        SecretPlace::File { folder: self.files.folder().to_owned(), reason }
    }

    /// The secret with this name.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, SecretError> {
        check_name(name)?;
        #[cfg(feature = "keyring")]
        if let Ok(keyring) = &self.keyring
            && let Some(value) = keyring.get(name)?
        {
            let invalid = |_| SecretError::new("the keyring has an item that is no text");
            return String::from_utf8(value).map(|it| Some(Secret::new(it))).map_err(invalid);
        }
        self.files.get(name)
    }

    /// Stores a secret, and replaces the earlier one.
    pub fn set(&self, name: &str, value: &Secret) -> Result<SecretPlace, SecretError> {
        check_name(name)?;
        check_secret(value.expose())?;
        #[cfg(feature = "keyring")]
        if let Ok(keyring) = &self.keyring {
            keyring.set(name, value.expose().as_bytes())?;
            // The keyring precedes a file of an earlier time, which must not remain.
            self.files.remove(name)?;
            return Ok(SecretPlace::Keyring);
        }
        self.files.set(name, value)?;
        Ok(self.place())
    }

    /// Removes a secret. Returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        check_name(name)?;
        #[cfg_attr(not(feature = "keyring"), expect(unused_mut, reason = "only the keyring changes it"))]
        let mut is_removed = self.files.remove(name)?;
        #[cfg(feature = "keyring")]
        if let Ok(keyring) = &self.keyring {
            is_removed |= keyring.remove(name)?;
        }
        Ok(is_removed)
    }

    /// The names of all secrets, sorted.
    pub fn names(&self) -> Result<Vec<String>, SecretError> {
        let mut names = self.files.names()?;
        #[cfg(feature = "keyring")]
        if let Ok(keyring) = &self.keyring {
            names.extend(keyring.names()?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }
}

impl SecretSource for SecretStore {
    fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        self.get(name).map_err(|it| it.message)
    }
}

fn check_name(name: &str) -> Result<(), SecretError> {
    if is_secret_name(name) {
        return Ok(());
    }
    let message = "the name of a secret is 1 to 64 letters, digits, `_` or `-`, and begins with no `-`";
    Err(SecretError::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(folder: &Path) -> SecretStore {
        SecretStore::open(folder.join("secrets"), KeyringUse::Off)
    }

    // RPT-302
    #[test]
    fn secrets_without_a_keyring_are_in_private_files() {
        let target = tempfile::tempdir().unwrap();
        let store = store(target.path());
        assert_eq!((store.names(), store.get("A")), (Ok(Vec::new()), Ok(None)));
        let place = store.set("B", &Secret::new("one")).unwrap();
        assert!(
            matches!(&place, SecretPlace::File { reason, .. } if reason.contains("turned off")),
            "{place:?}"
        );
        store.set("B", &Secret::new("two")).unwrap();
        store.set("A-1_x", &Secret::new("three\nlines")).unwrap();
        assert_eq!(store.get("B"), Ok(Some(Secret::new("two"))));
        assert_eq!(store.names(), Ok(vec!["A-1_x".to_owned(), "B".to_owned()]));
        assert_eq!((store.remove("B"), store.remove("B"), store.get("B")), (Ok(true), Ok(false), Ok(None)));
        assert!(!format!("{store:?}").contains("three"));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_reads_the_files_of_secrets() {
        use std::os::unix::fs::PermissionsExt;

        let target = tempfile::tempdir().unwrap();
        let store = store(target.path());
        store.set("A", &Secret::new("one")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let modes = (mode(&store.folder().join("A.secret")), mode(store.folder()));
        assert_eq!(modes, (0o600, 0o700));
    }

    #[test]
    fn names_and_values_are_checked() {
        let target = tempfile::tempdir().unwrap();
        let store = store(target.path());
        for name in ["", "a b", "../a", "a/b", "-a", &"n".repeat(65)] {
            assert!(store.set(name, &Secret::new("x")).is_err() && store.get(name).is_err(), "{name}");
        }
        for value in [String::new(), "a\0b".to_owned(), "x".repeat((64 << 10) + 1)] {
            let error = store.set("A", &Secret::new(value.as_str())).unwrap_err();
            assert!(!error.to_string().contains(&value) || value.is_empty(), "{error}");
        }
        store.set("A", &Secret::new("x".repeat(64 << 10))).unwrap();
        assert_eq!(store.get("A").unwrap().unwrap().expose().len(), 64 << 10);
    }
}
