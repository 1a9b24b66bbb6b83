//! Files of large results, each test in a folder of its own.

use super::*;

fn spills(directory: &Path, most_bytes: u64) -> Spills {
    Spills::new(Some(SpillPolicy { directory: directory.to_owned(), most_bytes }))
}

fn text(text: &str) -> Whole {
    Whole::Text(text.to_owned())
}

/// What is in the folders of `directory`, by content.
fn contents(directory: &Path) -> Vec<String> {
    let folders = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    let files = folders.flat_map(|it| fs::read_dir(it).unwrap()).map(|it| it.unwrap().path());
    let mut res: Vec<String> = files.map(|it| fs::read_to_string(it).unwrap()).collect();
    res.sort();
    res
}

#[cfg(unix)]
#[test]
fn hd_133_a_file_is_its_owners_alone_and_goes_with_the_host() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("deep/results");
    let spills = spills(&directory, 100);
    assert!(!directory.exists(), "nothing is made before it is needed");
    let path = spills.write(&text("é")).unwrap();
    let mode = |it: &Path| fs::metadata(it).unwrap().permissions().mode() & 0o777;
    let folder = path.parent().unwrap();
    assert_eq!((mode(&path), mode(folder), mode(&directory)), (0o600, 0o700, 0o700));
    assert_eq!(fs::read_to_string(&path).unwrap(), "é");
    assert!(path.is_absolute() && folder.parent() == Some(directory.as_path()));
    let other = spills.write(&text("é")).unwrap();
    assert_ne!(path, other);
    // Long enough that nobody makes it first.
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.len() == "result-.txt".len() + 16 && name.ends_with(".txt"), "{name}");
    spills.close();
    assert!(!folder.exists() && directory.exists());
    assert!(matches!(spills.write(&text("late")), Err(SpillError::Off)) && !spills.is_on());
}

#[cfg(unix)]
#[test]
fn hd_133_a_folder_that_others_may_write_in_is_refused_and_a_link_is_looked_behind() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = tempfile::tempdir().unwrap();
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = place.path().join("link");
    symlink(&real, &link).unwrap();
    let mode = |it: u32| fs::set_permissions(&real, fs::Permissions::from_mode(it)).unwrap();
    for (bits, is_taken) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
        mode(bits);
        let written = spills(&link, 10).write(&text("a"));
        assert_eq!(written.is_ok(), is_taken, "{bits:o}: {written:?}");
        if let Ok(path) = written {
            assert!(path.starts_with(real.canonicalize().unwrap()), "{}", path.display());
        }
    }
    // A link that leads nowhere is not followed to make something there.
    let dangling = place.path().join("dangling");
    symlink(place.path().join("elsewhere"), &dangling).unwrap();
    assert!(spills(&dangling, 10).write(&text("a")).is_err());
    assert!(!place.path().join("elsewhere").exists());
}

#[test]
fn hd_133_the_oldest_make_room_and_what_is_too_large_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let spills = spills(place.path(), 10);
    for it in ["aaaa", "bbbb", "cc"] {
        spills.write(&text(it)).unwrap();
    }
    assert_eq!(contents(place.path()), ["aaaa", "bbbb", "cc"]);
    spills.write(&text("ddddd")).unwrap();
    assert_eq!(contents(place.path()), ["cc", "ddddd"]);
    let error = spills.write(&text("too long by far")).unwrap_err();
    assert_eq!(error.to_string(), "it has 15 bytes, and the files of this host may have 10 together");
    assert_eq!(contents(place.path()), ["cc", "ddddd"]);
}

#[test]
fn hd_133_a_folder_that_cannot_be_made_is_told_and_one_that_was_removed_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = spills(&file.join("x"), 10).write(&text("a")).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}/x: ", file.display())), "{error}");

    let directory = place.path().join("results");
    let spills = spills(&directory, 10);
    spills.write(&text("a")).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    spills.write(&text("b")).unwrap();
    assert_eq!(contents(&directory), ["b"]);
}

#[track_caller]
fn check(whole: &Whole, want: (&[u8], &str)) {
    let (bytes, extension) = whole.file();
    assert_eq!((&*bytes, extension), want);
}

#[test]
fn hd_133_a_file_holds_what_the_block_stands_for() {
    let image = |data: &str, mime: &str| {
        Whole::Block(Content::Image { data: data.to_owned(), mime_type: mime.to_owned() })
    };
    check(&text("a"), (b"a", "txt"));
    check(&image("AQID", "image/png"), (&[1, 2, 3], "png"));
    check(&image("AQID", "../../evil"), (&[1, 2, 3], "bin"));
    check(&image("AQ!", "image/png"), (b"AQ!", "base64"));
    let raw = || RawJson::parse("{\"a\":1}".into()).unwrap();
    check(&Whole::Structured(raw()), (b"{\"a\":1}", "json"));
    check(&Whole::Block(Content::Unknown(raw())), (b"{\"a\":1}", "json"));
    let binary = |data: &str, text: Option<&str>| {
        let (data, text) = (data.to_owned(), text.map(str::to_owned));
        Whole::Block(Content::Binary { data, mime_type: None, uri: None, text })
    };
    check(&binary("AQID", Some("t")), (&[1, 2, 3], "bin"));
    check(&binary("", Some("t")), (b"t", "txt"));
    check(&binary("", None), (b"", "bin"));
}
