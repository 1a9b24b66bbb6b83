//! A store of OAuth grants in a private folder: one file of mode 0600 per grant.
//!
//! Files are replaced atomically. Their names are hashes, because a URL may contain a secret. Empty lock files
//! serialize token refreshes. The files are never removed: the system releases a lock when its process ends.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs4::{FileExt, TryLockError};
use mcp_host_oauth::{Grant, RefreshLock, TokenStore, TokenStoreError};
use mcp_host_transport::{open_lock_file, open_regular_file};
use serde_json::{Value, json};
use url::Url;

use crate::fs::atomic_write::replace_private_file;
use crate::fs::system;

/// The maximum number of bytes read from a file. A longer file counts as invalid.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// The maximum number of files considered in the folder; others are ignored.
const MAX_FILES: usize = 4096;

/// A store of grants in a folder.
#[derive(Debug, Clone)]
pub struct FileTokenStore {
    folder: PathBuf,
}

impl FileTokenStore {
    /// Creates a store in this folder. The folder is created when the first grant or lock is.
    pub fn new(folder: impl Into<PathBuf>) -> FileTokenStore {
        FileTokenStore { folder: folder.into() }
    }

    /// Returns the path of the file for a grant.
    fn path(&self, resource: &Url, issuer: &str) -> PathBuf {
        self.folder.join(format!("{}-{}.json", short_hash(resource.as_str()), short_hash(issuer)))
    }

    /// Lists the files with the grants of a resource.
    fn files(&self, resource: &Url) -> Result<Vec<PathBuf>, TokenStoreError> {
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(store_error("read", &self.folder, &error)),
        };
        let start = format!("{}-", short_hash(resource.as_str()));
        let names = listed.take(MAX_FILES).filter_map(Result::ok).map(|it| it.path());
        let ours = names.filter(|it| {
            let name = it.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
            name.starts_with(&start) && name.ends_with(".json")
        });
        Ok(ours.collect())
    }

    /// Returns the grants of a resource with the times at which they were saved.
    pub(crate) fn entries(&self, resource: &Url) -> Result<Vec<(u64, Grant)>, TokenStoreError> {
        let mut found = Vec::new();
        for path in self.files(resource)? {
            found.extend(read(&path)?.filter(|(_, it)| it.resource == *resource));
        }
        Ok(found)
    }

    /// Stores a grant with the time at which it was saved.
    pub(crate) fn save_at(&self, saved: u64, grant: &Grant) -> Result<(), TokenStoreError> {
        let path = self.path(&grant.resource, &grant.issuer);
        replace_private_file(&path, text(saved, grant).as_bytes())
            .map_err(|it| store_error("write", &path, &it))
    }

    /// Opens the lock file of a resource, and creates it if needed. Does not lock it.
    fn open_lock_file(&self, resource: &Url) -> Result<File, TokenStoreError> {
        let path = self.folder.join(format!("{}.lock", short_hash(resource.as_str())));
        system::private_folder_builder()
            .create(&self.folder)
            .map_err(|it| store_error("create", &self.folder, &it))?;
        open_lock_file(&path).map_err(|it| store_error("open", &path, &it))
    }
}

impl TokenStore for FileTokenStore {
    fn latest(&self, resource: &Url) -> Result<Option<Grant>, TokenStoreError> {
        let found = self.entries(resource)?;
        Ok(found.into_iter().max_by_key(|(saved, _)| *saved).map(|(_, grant)| grant))
    }

    fn get(&self, resource: &Url, issuer: &str) -> Result<Option<Grant>, TokenStoreError> {
        let found = read(&self.path(resource, issuer))?;
        Ok(found.map(|(_, it)| it).filter(|it| it.resource == *resource && it.issuer == issuer))
    }

    fn save(&self, grant: &Grant) -> Result<(), TokenStoreError> {
        let files = self.files(&grant.resource).unwrap_or_default();
        let kept = files.iter().filter_map(|it| read(it).ok().flatten());
        self.save_at(next_save_time(kept.map(|(saved, _)| saved)), grant)
    }

    fn remove(&self, resource: &Url) -> Result<usize, TokenStoreError> {
        let files = self.files(resource)?;
        for path in &files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(store_error("remove", path, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(files.len())
    }

    fn lock_refresh(&self, resource: &Url) -> Result<Option<RefreshLock>, TokenStoreError> {
        let file = self.open_lock_file(resource)?;
        match FileExt::try_lock(&file) {
            Ok(()) => Ok(Some(RefreshLock::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(store_error("lock a file in", &self.folder, &error)),
        }
    }
}

/// Reads the save time, in nanoseconds since the Unix epoch, and the grant from a file. An invalid file counts as
/// absent: the next login replaces it.
fn read(path: &Path) -> Result<Option<(u64, Grant)>, TokenStoreError> {
    let file = match open_regular_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(store_error("read", path, &error)),
    };
    let mut text = String::new();
    if file.take(MAX_FILE_BYTES).read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    Ok(parse(&text))
}

/// Parses the content of a file into its save time and grant; `None` if it is invalid.
pub fn parse(text: &str) -> Option<(u64, Grant)> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let (Some(1), Some(saved)) = (value["version"].as_u64(), value["saved"].as_u64()) else { return None };
    Grant::from_json(&value["grant"]).map(|it| (saved, it))
}

/// Serializes a save time and a grant as the content of a file.
pub fn text(saved: u64, grant: &Grant) -> String {
    json!({"version": 1, "saved": saved, "grant": grant.to_json()}).to_string()
}

/// Returns the time of a save, in nanoseconds since the Unix epoch. It is the latest, even if the clock was set back
/// since an earlier save.
pub(crate) fn next_save_time(earlier: impl Iterator<Item = u64>) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    earlier.map(|saved| saved.saturating_add(1)).fold(now, u64::max)
}

/// Returns the first 32 hexadecimal digits (128 bits) of the text's hash.
pub(crate) fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// Creates the error of a file operation; `operation` is its verb.
fn store_error(operation: &str, path: &Path, error: &io::Error) -> TokenStoreError {
    TokenStoreError::new(format!(
        "cannot use the stored logins: cannot {operation} {}: {error}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use mcp_host_model::Secret;
    use mcp_host_oauth::RegisteredClient;

    use super::*;

    fn grant(resource: &str, issuer: &str, token: &str) -> Grant {
        Grant::new(
            resource.parse().unwrap(),
            issuer.to_owned(),
            RegisteredClient::new("c"),
            Secret::from(token),
        )
    }

    #[test]
    fn grants_are_stored_by_resource_and_issuer() {
        let target = tempfile::tempdir().unwrap();
        let store = FileTokenStore::new(target.path().join("logins"));
        let (a, b) = ("https://a.example/mcp", "https://b.example/mcp");
        let url = |it: &str| Url::parse(it).unwrap();
        assert_eq!(store.latest(&url(a)), Ok(None));
        for (resource, issuer, token) in
            [(a, "one", "t1"), (a, "two", "t2"), (b, "one", "t3"), (a, "one", "t4")]
        {
            store.save(&grant(resource, issuer, token)).unwrap();
        }
        assert_eq!(store.latest(&url(a)), Ok(Some(grant(a, "one", "t4"))));
        assert_eq!(store.get(&url(a), "two"), Ok(Some(grant(a, "two", "t2"))));
        assert_eq!(store.get(&url(b), "two"), Ok(None));
        assert_eq!(store.remove(&url(a)), Ok(2));
        assert_eq!((store.latest(&url(a)), store.remove(&url(a))), (Ok(None), Ok(0)));
        assert_eq!(store.latest(&url(b)), Ok(Some(grant(b, "one", "t3"))));
    }

    #[test]
    fn one_process_at_a_time_holds_the_lock_of_a_resource() {
        let target = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| FileTokenStore::new(target.path().join("logins")));
        let (a, b) =
            (Url::parse("https://a.example/mcp").unwrap(), Url::parse("https://b.example/mcp").unwrap());
        let turn = one.lock_refresh(&a).unwrap();
        assert!(
            turn.is_some()
                && other.lock_refresh(&a).unwrap().is_none()
                && one.lock_refresh(&a).unwrap().is_none()
        );
        assert!(other.lock_refresh(&b).unwrap().is_some(), "another resource has its own lock");
        drop(turn);
        assert!(other.lock_refresh(&a).unwrap().is_some());
        assert_eq!(one.latest(&a), Ok(None), "a lock is no grant");
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_and_names_reveal_nothing() {
        use std::os::unix::fs::PermissionsExt;

        let target = tempfile::tempdir().unwrap();
        let folder = target.path().join("logins");
        let store = FileTokenStore::new(&folder);
        store.save(&grant("https://a.example/mcp?key=secret", "one", "t1")).unwrap();
        let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file), mode(&folder)), (0o600, 0o700));
        assert!(!file.to_string_lossy().contains("secret"), "{file:?}");
    }

    #[test]
    fn invalid_files_count_as_absent() {
        let target = tempfile::tempdir().unwrap();
        let store = FileTokenStore::new(target.path());
        let url = Url::parse("https://a.example/mcp").unwrap();
        for text in [
            "",
            "no JSON",
            "{}",
            r#"{"version":2,"saved":1,"grant":{}}"#,
            r#"{"version":1,"saved":1,"grant":{}}"#,
        ] {
            fs::write(store.path(&url, "one"), text).unwrap();
            assert_eq!(store.latest(&url), Ok(None), "{text}");
        }
    }
}
