//! A folder with the schema of each released version.
//!
//! `<version>.json` is the schema of a release. `digests.txt` lists the SHA-256 of each, as `sha256sum` prints it. A
//! released file that was changed, removed or added without its digest is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use semver::Version;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::change::{Comparison, SchemaUser, Verdict};
use crate::compare::compare;
use crate::error::ReleaseError;
use crate::render::render_text;

/// The name of the file with the digests.
const DIGESTS: &str = "digests.txt";

/// The maximum size of a released file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The released schemas of a folder.
#[derive(Debug)]
pub struct Releases {
    folder: PathBuf,
    /// The text of each release.
    texts: BTreeMap<Version, String>,
}

/// The result of a comparison with the last release.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReleaseComparison {
    /// The release that was compared. `None` if there is none up to the current version.
    pub released: Option<Version>,
    /// The changes since then.
    pub comparison: Comparison,
    /// Whether the step of the version allows breaks: a new major version or, before 1.0.0, a new minor version.
    pub may_break: bool,
}

impl ReleaseComparison {
    /// Whether the current version may be released: each change is harmless, or the version allows breaks.
    pub fn is_allowed(&self, user: SchemaUser) -> bool {
        self.may_break || self.comparison.verdict(user) == Verdict::Harmless
    }
}

impl Releases {
    /// Reads a folder and checks the digests. A missing folder has no releases.
    ///
    /// # Errors
    ///
    /// A file cannot be read, has another name, or does not match its digest.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, ReleaseError> {
        let folder = folder.into();
        let digests = read_digests(&folder.join(DIGESTS))?;
        let mut texts = BTreeMap::new();
        for name in list_release_files(&folder)? {
            let path = folder.join(&name);
            let version = name.strip_suffix(".json").and_then(parse_version);
            let invalid = || ReleaseError::Invalid {
                path: path.clone(),
                message: "it does not have the name of a version".to_owned(),
            };
            let version = version.ok_or_else(invalid)?;
            let text = read_release(&path)?;
            match digests.get(&name) {
                None => return Err(ReleaseError::Unlisted { path }),
                Some(listed) if *listed != digest(&text) => return Err(ReleaseError::Changed { path }),
                Some(_) => {}
            }
            texts.insert(version, text);
        }
        let is_missing = |name: &&String| !texts.keys().any(|it| format!("{it}.json") == **name);
        if let Some(name) = digests.keys().find(is_missing) {
            return Err(ReleaseError::Missing { path: folder.join(name) });
        }
        Ok(Self { folder, texts })
    }

    /// The released versions, in order.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        self.texts.keys()
    }

    /// Compares a schema with the last release up to `version`. A later release is ignored.
    ///
    /// # Errors
    ///
    /// `version` is not `major.minor.patch`, the release is not JSON, or the schemas cannot be compared.
    pub fn compare(&self, version: &str, schema: &Value) -> Result<ReleaseComparison, ReleaseError> {
        let version = parse_version(version).ok_or_else(|| ReleaseError::Version(version.to_owned()))?;
        let Some((released, text)) = self.texts.range(..=&version).next_back() else {
            let comparison = Comparison { changes: Vec::new() };
            return Ok(ReleaseComparison { released: None, comparison, may_break: false });
        };
        let old: Value = serde_json::from_str(text).map_err(|error| ReleaseError::Invalid {
            path: self.folder.join(format!("{released}.json")),
            message: error.to_string(),
        })?;
        let comparison = compare(&old, schema)
            .map_err(|source| ReleaseError::Comparison { version: released.to_string(), source })?;
        let may_break = may_break(released, &version);
        Ok(ReleaseComparison { released: Some(released.clone()), comparison, may_break })
    }

    /// Stores a schema as the release of a version, with its digest. Writes nothing if the version is released with the
    /// same text.
    ///
    /// # Errors
    ///
    /// The version is released with another text, or a file cannot be written.
    pub fn store(&mut self, version: &str, text: &str) -> Result<(), ReleaseError> {
        let parsed = parse_version(version).ok_or_else(|| ReleaseError::Version(version.to_owned()))?;
        match self.texts.get(&parsed) {
            Some(released) if released == text => return Ok(()),
            Some(_) => return Err(ReleaseError::AlreadyReleased { version: version.to_owned() }),
            None => {}
        }
        let write = |name: &str, text: &str| {
            let path = self.folder.join(name);
            let done = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, text));
            done.map_err(|source| ReleaseError::Io { path, source })
        };
        write(&format!("{parsed}.json"), text)?;
        self.texts.insert(parsed, text.to_owned());
        let lines = self.texts.iter().map(|(version, text)| format!("{}  {version}.json\n", digest(text)));
        write(DIGESTS, &lines.collect::<String>())
    }
}

/// Compares a schema with the last release in a folder; the function behind
/// [`assert_compatible!`](crate::assert_compatible).
///
/// With `store`, an allowed schema becomes the release of this version.
///
/// # Errors
///
/// A message for the developer: the changes that break or are unknown, and what to do.
#[doc(hidden)]
pub fn check_release(
    folder: &Path,
    version: &str,
    schema: &Value,
    user: SchemaUser,
    store: bool,
) -> Result<(), String> {
    let failed = |error: ReleaseError| {
        let cause = std::error::Error::source(&error).map(|it| format!(": {it}")).unwrap_or_default();
        format!("{error}{cause}")
    };
    let mut releases = Releases::open(folder).map_err(failed)?;
    let outcome = releases.compare(version, schema).map_err(failed)?;
    if let Some(released) = &outcome.released
        && !outcome.is_allowed(user)
    {
        let what = match outcome.comparison.verdict(user) {
            Verdict::Break => "is not compatible",
            Verdict::Unknown | Verdict::Harmless => "is not proven to be compatible",
        };
        return Err(format!(
            "the schema of version {version} {what} with the release {released}\n{}\
             revert the changes, or raise the version to {} or later, which may break",
            render_text(&outcome.comparison, user),
            next_breaking_version(released),
        ));
    }
    if store {
        let text = serde_json::to_string_pretty(schema).expect("a JSON value serializes") + "\n";
        return releases.store(version, &text).map_err(failed);
    }
    match outcome.released {
        Some(_) => Ok(()),
        None => Err(format!(
            "nothing was compared: {} has no schema of a release up to version {version}\n\
             to store the current schema as the release {version}, run the test once with the environment variable \
             SCHEMA_EVOLUTION=release, and commit the folder; later runs compare with it",
            folder.display()
        )),
    }
}

/// Parses `major.minor.patch` without a suffix.
fn parse_version(text: &str) -> Option<Version> {
    Version::parse(text).ok().filter(|version| version.pre.is_empty() && version.build.is_empty())
}

/// Whether the step between two versions allows breaks.
fn may_break(older: &Version, newer: &Version) -> bool {
    if (older.major, newer.major) == (0, 0) { newer.minor > older.minor } else { newer.major > older.major }
}

/// The first version after `released` that may break.
fn next_breaking_version(released: &Version) -> Version {
    if released.major == 0 {
        Version::new(0, released.minor + 1, 0)
    } else {
        Version::new(released.major + 1, 0, 0)
    }
}

/// The SHA-256 of a text, in hexadecimal digits.
fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|it| format!("{it:02x}")).collect()
}

fn read_release(path: &Path) -> Result<String, ReleaseError> {
    let failed = |source| ReleaseError::Io { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(ReleaseError::Invalid { path: path.to_owned(), message: "it is too large".to_owned() });
    }
    fs::read_to_string(path).map_err(failed)
}

/// Lists the names of the files in a folder, without that of the digests, in order.
fn list_release_files(folder: &Path) -> Result<Vec<String>, ReleaseError> {
    let failed = |source| ReleaseError::Io { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut res = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name != DIGESTS {
            res.push(name);
        }
    }
    res.sort();
    Ok(res)
}

/// Reads the digests, by file name.
fn read_digests(path: &Path) -> Result<BTreeMap<String, String>, ReleaseError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(ReleaseError::Io { path: path.to_owned(), source }),
    };
    let one = |line: &str| line.split_once("  ").map(|(digest, name)| (name.to_owned(), digest.to_owned()));
    let res: Option<_> = text.lines().map(one).collect();
    let message = "a line is not `<digest>  <file>`".to_owned();
    res.ok_or_else(|| ReleaseError::Invalid { path: path.to_owned(), message })
}
