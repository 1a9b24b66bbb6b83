//! Folders of releases, and the test helper.

use std::fs;
use std::path::PathBuf;

use schema_evolution::{ReleaseError, Releases, SchemaUser, check_release};
use serde_json::{Value, json};

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("schema-evolution-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn wide() -> Value {
    json!({ "type": ["string", "integer"] })
}

fn narrow() -> Value {
    json!({ "type": "string" })
}

#[test]
fn a_break_needs_a_version_that_may_break() {
    let folder = Folder::new("versions");
    let check = |version: &str, schema: &Value, freeze: bool| {
        check_release(&folder.0, version, schema, SchemaUser::Reader, freeze).err().unwrap_or_default()
    };
    let first = check("0.1.0", &wide(), false);
    assert!(first.starts_with("nothing was compared: "), "{first}");
    assert!(
        first.contains(" has no schema of a release up to version 0.1.0\nto store the current schema "),
        "{first}"
    );
    assert!(
        first.contains("run the test once with the environment variable SCHEMA_EVOLUTION=release"),
        "{first}"
    );
    assert_eq!(check("0.1.0", &wide(), true), "");
    assert_eq!(check("0.1.0", &wide(), true), "");
    let message = check("0.1.1", &narrow(), false);
    assert!(
        message.starts_with("the schema of version 0.1.1 is not compatible with the release 0.1.0\n"),
        "{message}"
    );
    assert!(message.contains("for example 1\n"), "{message}");
    assert!(
        message.ends_with("\nrevert the changes, or raise the version to 0.2.0 or later, which may break"),
        "{message}"
    );
    assert!(check("0.1.0", &json!({}), true).starts_with("0.1.0 is already released with another schema"));
    assert_eq!(check("0.2.0", &narrow(), true), "");
    // A later release is ignored.
    assert_eq!(check("0.1.1", &wide(), false), "");
    assert_eq!(check("0.2.1", &wide(), false), "");
    assert_eq!(check("1.0.0", &narrow(), true), "");
    let message = check("1.9.9", &json!({ "type": "integer" }), true);
    assert!(
        message.starts_with("the schema of version 1.9.9 is not compatible with the release 1.0.0"),
        "{message}"
    );
    assert!(message.ends_with("raise the version to 2.0.0 or later, which may break"), "{message}");
    let message = check("1.0.1", &json!({ "$ref": "https://a.example/b.json" }), false);
    assert!(
        message.starts_with("the schema of version 1.0.1 is not proven to be compatible with the release"),
        "{message}"
    );
    assert_eq!(check("2.0.0", &json!({ "type": "integer" }), false), "");
    for version in ["x", "1.2", "01.2.3", "1.2.3-rc.1"] {
        let want =
            format!("`{version}` is not a release version: write `major.minor.patch` without a suffix");
        assert_eq!(check(version, &wide(), false), want);
    }
}

#[test]
fn a_released_version_is_frozen() {
    let folder = Folder::new("frozen");
    let mut releases = Releases::open(&folder.0).unwrap();
    releases.store("0.1.0", "{}").unwrap();
    releases.store("0.1.0", "{}").unwrap();
    assert!(matches!(releases.store("0.1.0", "true").unwrap_err(), ReleaseError::AlreadyReleased { .. }));
    assert_eq!(Releases::open(&folder.0).unwrap().versions().count(), 1);
}

#[test]
fn released_files_are_protected_by_their_digests() {
    let folder = Folder::new("digests");
    let mut releases = Releases::open(&folder.0).unwrap();
    releases.store("0.1.0", "{}").unwrap();
    releases.store("0.2.0", "true").unwrap();
    let file = folder.0.join("0.1.0.json");
    let error = || Releases::open(&folder.0).err().map(|it| it.to_string()).unwrap_or_default();
    assert_eq!(error(), "");
    fs::write(&file, "true").unwrap();
    assert!(
        error().ends_with("0.1.0.json does not match its digest: restore it, released files never change"),
        "{}",
        error()
    );
    fs::remove_file(&file).unwrap();
    assert!(error().contains("0.1.0.json is missing, although it has a digest: restore it"));
    fs::write(&file, "{}").unwrap();
    assert_eq!(error(), "");
    fs::write(folder.0.join("0.3.0.json"), "{}").unwrap();
    assert!(error().contains("0.3.0.json has no digest: remove it"));
    fs::rename(folder.0.join("0.3.0.json"), folder.0.join("latest.json")).unwrap();
    assert!(error().contains("latest.json is invalid: it does not have the name of a version"));
    fs::remove_file(folder.0.join("latest.json")).unwrap();
    fs::write(folder.0.join("digests.txt"), "x").unwrap();
    assert!(error().contains("digests.txt is invalid"));
}

#[test]
fn the_macro_compares_with_a_folder_of_the_crate() {
    schema_evolution::assert_compatible!("tests/releases", "0.1.1", &wide(), SchemaUser::Reader);
    schema_evolution::assert_compatible!("tests/releases", "0.2.0", &narrow(), SchemaUser::Reader);
}

#[test]
#[should_panic(expected = "break: (root): `type` changes from")]
fn the_macro_panics_with_the_changes() {
    schema_evolution::assert_compatible!("tests/releases", "0.1.1", &narrow(), SchemaUser::Reader);
}
