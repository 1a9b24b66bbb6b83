//! Tests of overflow files, each in its own folder.

use std::fs;

use mcp_host_model::{Content, RawJson};

use super::*;

fn store(directory: &Path, max_bytes: u64) -> SpillStore {
    SpillStore::new(Some(SpillPolicy { max_bytes, ..SpillPolicy::in_directory(directory) }))
}

fn text(text: &str) -> SpillPart {
    SpillPart::Text(text.to_owned())
}

/// Writes one part.
fn write(spills: &SpillStore, it: &str) -> Result<PathBuf, SpillError> {
    spills.files.write_all(&[text(it)]).remove(0)
}

/// Returns the contents of the files below `directory`.
fn contents(directory: &Path) -> Vec<String> {
    let folders = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    let files = folders.flat_map(|it| fs::read_dir(it).unwrap()).map(|it| it.unwrap().path());
    let mut res: Vec<String> = files.map(|it| fs::read_to_string(it).unwrap()).collect();
    res.sort();
    res
}

#[cfg(unix)]
#[test]
fn hd_133_files_are_private_and_removed_with_the_host() {
    use std::os::unix::fs::PermissionsExt;
    let target = tempfile::tempdir().unwrap();
    let directory = target.path().join("deep/results");
    let spills = store(&directory, 100);
    assert!(!directory.exists(), "nothing is made before it is needed");
    let path = write(&spills, "é").unwrap();
    let mode = |it: &Path| fs::metadata(it).unwrap().permissions().mode() & 0o777;
    let folder = path.parent().unwrap();
    assert_eq!((mode(&path), mode(folder), mode(&directory)), (0o600, 0o700, 0o700));
    assert_eq!(fs::read_to_string(&path).unwrap(), "é");
    assert!(path.is_absolute() && folder.parent() == Some(directory.as_path()));
    let other = write(&spills, "é").unwrap();
    assert_ne!(path, other);
    // Long enough to be unique.
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.len() == "result-.txt".len() + 16 && name.ends_with(".txt"), "{name}");
    spills.close_blocking();
    assert!(!folder.exists() && directory.exists());
    assert!(matches!(write(&spills, "late"), Err(SpillError::Disabled)) && !spills.is_enabled());
}

#[cfg(unix)]
#[test]
fn hd_133_shared_folder_is_refused_and_links_are_resolved() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let target = tempfile::tempdir().unwrap();
    let real = target.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = target.path().join("link");
    symlink(&real, &link).unwrap();
    let mode = |it: u32| fs::set_permissions(&real, fs::Permissions::from_mode(it)).unwrap();
    let nested = real.join("nested");
    fs::create_dir(&nested).unwrap();
    for (bits, is_taken) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
        mode(bits);
        let written = write(&store(&link, 10), "a");
        assert_eq!(written.is_ok(), is_taken, "{bits:o}: {written:?}");
        // A user that can rename a folder can replace it.
        assert_eq!(write(&store(&nested, 10), "a").is_ok(), is_taken, "{bits:o}");
        if let Ok(path) = written {
            assert!(path.starts_with(real.canonicalize().unwrap()), "{}", path.display());
        }
    }
    mode(0o777);
    let error = write(&store(&nested, 10), "a").unwrap_err().to_string();
    let real = real.canonicalize().unwrap();
    let want = format!("other users may replace what is in {} (its mode is 777)", real.display());
    assert!(error.ends_with(&want), "{error}");
    assert_eq!(fs::read_dir(&nested).unwrap().count(), 0, "nothing is left of what was refused");
    // A dangling link is not followed.
    let dangling = target.path().join("dangling");
    symlink(target.path().join("elsewhere"), &dangling).unwrap();
    assert!(write(&store(&dangling, 10), "a").is_err());
    assert!(!target.path().join("elsewhere").exists());
}

#[test]
fn hd_133_oldest_files_are_evicted_and_large_parts_refused() {
    let target = tempfile::tempdir().unwrap();
    let spills = store(target.path(), 10);
    for it in ["aaaa", "bbbb", "cc"] {
        write(&spills, it).unwrap();
    }
    assert_eq!(contents(target.path()), ["aaaa", "bbbb", "cc"]);
    write(&spills, "ddddd").unwrap();
    assert_eq!(contents(target.path()), ["cc", "ddddd"]);
    let error = write(&spills, "too long by far").unwrap_err();
    assert_eq!(error.to_string(), "it has 15 bytes; all files of this host are limited to 10 bytes");
    assert_eq!(contents(target.path()), ["cc", "ddddd"]);
}

#[test]
fn hd_133_unusable_folder_is_reported_and_removed_folder_recreated() {
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write(&store(&file.join("x"), 10), "a").unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}/x: ", file.display())), "{error}");

    let directory = target.path().join("results");
    let spills = store(&directory, 10);
    write(&spills, "a").unwrap();
    fs::remove_dir_all(&directory).unwrap();
    write(&spills, "b").unwrap();
    assert_eq!(contents(&directory), ["b"]);
}

#[track_caller]
fn check(whole: &SpillPart, want: (&[u8], &str)) {
    let (bytes, extension) = whole.file_content();
    assert_eq!((&*bytes, extension), want);
}

#[test]
fn hd_133_file_contains_decoded_block() {
    let image = |data: &str, mime: &str| {
        SpillPart::Block(Content::Image { data: data.to_owned(), mime_type: mime.to_owned() })
    };
    check(&text("a"), (b"a", "txt"));
    check(&image("AQID", "image/png"), (&[1, 2, 3], "png"));
    check(&image("AQID", "../../evil"), (&[1, 2, 3], "bin"));
    check(&image("AQ!", "image/png"), (b"AQ!", "base64"));
    let raw = || RawJson::parse("{\"a\":1}".into()).unwrap();
    check(&SpillPart::Structured(raw()), (b"{\"a\":1}", "json"));
    check(&SpillPart::Block(Content::Unknown(raw())), (b"{\"a\":1}", "json"));
    let binary = |data: &str, text: Option<&str>| {
        let (data, text) = (data.to_owned(), text.map(str::to_owned));
        SpillPart::Block(Content::Binary { data, mime_type: None, uri: None, text })
    };
    check(&binary("AQID", Some("t")), (&[1, 2, 3], "bin"));
    check(&binary("", Some("t")), (b"t", "txt"));
    check(&binary("", None), (b"", "bin"));
}

#[test]
fn hd_133_files_of_one_result_do_not_evict_each_other() {
    let target = tempfile::tempdir().unwrap();
    let spills = store(target.path(), 10);
    write(&spills, "old").unwrap();
    let parts = ["aaaaaa", "bbbbbb", "cccc"].map(text);
    let written = spills.files.write_all(&parts);
    assert!(written[0].is_ok() && written[2].is_ok());
    let error = written[1].as_ref().unwrap_err().to_string();
    assert_eq!(error, "it has 6 bytes; the files that are being written leave room for 4 bytes");
    assert_eq!(contents(target.path()), ["aaaaaa", "cccc"]);
    // This is another result.
    write(&spills, "ddddd").unwrap();
    assert_eq!(contents(target.path()), ["cccc", "ddddd"]);
}

/// A disk that writes `hang` only when the sender is dropped.
#[derive(Debug)]
struct HangingDisk(Mutex<mpsc::Receiver<()>>);

impl Disk for HangingDisk {
    fn create_folder(&self, directory: &Path, lifetime: SpillLifetime) -> io::Result<TempDir> {
        LocalDisk.create_folder(directory, lifetime)
    }

    fn write(&self, folder: &Path, bytes: &[u8], extension: &str) -> io::Result<PathBuf> {
        if bytes == b"hang" {
            let _ = self.0.lock().recv();
        }
        LocalDisk.write(folder, bytes, extension)
    }

    fn remove_file(&self, file: &Path) {
        LocalDisk.remove_file(file);
    }

    fn remove_folder(&self, folder: TempDir) -> io::Result<()> {
        LocalDisk.remove_folder(folder)
    }
}

/// Creates a store on a hanging disk, and the sender that releases it.
fn hanging_store(directory: &Path, timeout: Duration) -> (SpillStore, mpsc::Sender<()>) {
    let (release, stalled) = mpsc::channel();
    let policy = SpillPolicy { max_bytes: 100, ..SpillPolicy::in_directory(directory) };
    (SpillStore::with_disk(Box::new(HangingDisk(Mutex::new(stalled))), timeout, Some(policy)), release)
}

#[tokio::test]
async fn hd_133_stalled_disk_costs_its_timeout_and_stalls_are_limited() {
    let target = tempfile::tempdir().unwrap();
    let (spills, release) = hanging_store(target.path(), Duration::from_millis(20));
    let write = async |it: &str| spills.write(vec![text(it)]).await.map(|it| it.len());
    for _ in 0..MAX_CONCURRENT_WRITES {
        let error = write("hang").await.unwrap_err().to_string();
        let want = format!("{}: the disk did not respond within 0.02 s", target.path().display());
        assert_eq!(error, want);
    }
    assert_eq!(spills.write_permits.available_permits(), 0);
    assert!(matches!(write("more").await, Err(SpillError::Slow { .. })));
    assert_eq!(contents(target.path()), [""; 0], "it was not started");
    drop(release);
    while spills.write_permits.available_permits() < MAX_CONCURRENT_WRITES {
        tokio::task::yield_now().await;
    }
    let timeout = Duration::from_secs(600);
    let spills = SpillStore { timeout, pool: BlockingPool::new(timeout, MAX_CONCURRENT_WRITES), ..spills };
    assert_eq!(spills.write(vec![text("more")]).await.map(|it| it.len()).ok(), Some(1));
    // The timed-out write finished and is counted.
    assert_eq!(contents(target.path()).len(), MAX_CONCURRENT_WRITES + 1);
    assert_eq!(spills.files.state.lock().bytes, 4 * (MAX_CONCURRENT_WRITES as u64 + 1));
}

#[tokio::test]
async fn hd_133_stalled_write_delays_neither_others_nor_shutdown() {
    let target = tempfile::tempdir().unwrap();
    let (spills, release) = hanging_store(target.path(), Duration::from_secs(600));
    let mut hung = Box::pin(spills.write(vec![text("hang"), text("late")]));
    assert!(once(&mut hung).await.is_none());
    while spills.files.state.lock().bytes == 0 {
        tokio::task::yield_now().await;
    }
    let written = spills.write(vec![text("a")]).await.unwrap().remove(0).unwrap();
    assert_eq!(fs::read_to_string(written).unwrap(), "a");
    assert!(spills.is_enabled());
    spills.close().await;
    assert!(!spills.is_enabled());
    // A stalled write that ends later leaves no file.
    drop(release);
    let written = hung.await.unwrap();
    assert!(matches!(written[..], [Err(SpillError::Disabled), Err(SpillError::Disabled)]), "{written:?}");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    assert_eq!(spills.files.state.lock().bytes, 0);
}

/// Polls once.
async fn once<T>(it: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *it).poll(context) {
            std::task::Poll::Ready(it) => Some(it),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
