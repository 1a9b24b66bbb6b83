//! Files that cannot be written: full disks and folders that cannot be created.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_host_model::{Limits, RawJson, Secret};
use mcp_host_oauth::{Grant, RegisteredClient, TokenStore};
use mcp_host_runtime::{DesiredServers, FileTokenStore, Host, HostOptions, SpillPolicy, ToolCall};
use mcp_testkit::isolation::{Isolation, run_isolated_in};
use mcp_tests::faults::{FULL, LOGINS, NO_FOLDER, RECEIPTS, RESULTS, Transport};

use super::check;
use crate::host::resolved_server;
use crate::peer::Faulty;

/// The variable with the folder on the full disk.
const DISK_VARIABLE: &str = "MCP_TEST_PLACE";

/// A small tmpfs, if mounting is allowed; else a file size limit of 0.
fn full_disk(place: &Path) -> String {
    let mount = format!("mount -t tmpfs -o size=64k none '{}'", place.display());
    let may = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    match may.is_ok_and(|it| it.status.success()) {
        true => format!(
            "exec unshare -rm sh -c '{} && exec \"$0\" \"$@\"' \"$0\" \"$@\"",
            mount.replace('\'', "\"")
        ),
        false => "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"".to_owned(),
    }
}

#[test]
fn hd_133_a_full_disk_affects_only_files_on_it() {
    let name = "machine::disk::hd_133_a_full_disk_affects_only_files_on_it";
    let folder = tempfile::tempdir().unwrap();
    let variables = [(DISK_VARIABLE, folder.path().display().to_string())];
    if run_isolated_in(name, &full_disk(folder.path()), &variables) == Isolation::AlreadyRun {
        return;
    }
    let place = PathBuf::from(std::env::var_os(DISK_VARIABLE).unwrap());
    // A login is stored before the disk is full, if there is space.
    let logins = FileTokenStore::new(place.join("logins"));
    let kept = logins.save(&grant("before")).is_ok();
    fill(&place);
    check(FULL, RESULTS, &results(&place.join("results")));
    check(FULL, RECEIPTS, &receipts(&place.join("receipts")));
    let failed = logins.save(&grant(&"x".repeat(100_000))).unwrap_err().to_string();
    assert!(
        failed.contains("cannot write") && failed.contains(place.join("logins").to_str().unwrap()),
        "{failed}"
    );
    let latest = logins.latest(&"https://a.example/mcp".parse().unwrap()).unwrap();
    assert_eq!(latest.is_some(), kept, "the login before it");
    let left = files(&place.join("logins")).iter().filter(|name| !name.ends_with(".json")).count();
    assert_eq!(left, 0, "{:?}", files(&place));
    check(
        FULL,
        LOGINS,
        "an error that names the file; the previous login is unchanged; no partial file is left",
    );
}

#[test]
fn hd_133_an_uncreatable_folder_affects_only_its_files() {
    let name = "machine::disk::hd_133_an_uncreatable_folder_affects_only_its_files";
    if run_isolated_in(name, "exec \"$0\" \"$@\"", &[]) == Isolation::AlreadyRun {
        return;
    }
    // A file in place of the folder: not even root can create it.
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("file");
    fs::write(&place, "").unwrap();
    check(NO_FOLDER, RESULTS, &results(&place.join("results")));
    check(NO_FOLDER, RECEIPTS, &receipts(&place.join("receipts")));
    let failed = FileTokenStore::new(place.join("logins")).save(&grant("a")).unwrap_err().to_string();
    assert!(failed.contains("cannot write") && failed.contains(place.to_str().unwrap()), "{failed}");
    check(NO_FOLDER, LOGINS, "an error that names the file");
}

/// Fills the disk.
fn fill(place: &Path) {
    use std::io::Write;
    let Ok(mut file) = fs::File::create(place.join("filler")) else { return };
    while file.write_all(&[0; 512]).is_ok() {}
}

fn grant(token: &str) -> Grant {
    Grant::new(
        "https://a.example/mcp".parse().unwrap(),
        "https://b.example",
        RegisteredClient::new("c"),
        Secret::from(token),
    )
}

/// All files below a folder.
fn files(place: &Path) -> Vec<String> {
    let mut res = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => res.extend(files(&path)),
            path => res.push(path.display().to_string()),
        }
    }
    res
}

/// A call with a result that does not fit on the disk.
fn results(directory: &Path) -> String {
    let mut spill = SpillPolicy::in_directory(directory.to_owned());
    spill.max_bytes = 10 << 20;
    let mut options = HostOptions::default();
    options.spill = Some(spill);
    let mut limits = Limits::default();
    limits.result_bytes = 1000;
    let (result, left) = called(options, limits, "call=huge:500000", directory);
    assert!(result.contains("left out") && result.len() < 2000, "{} bytes", result.len());
    assert_eq!(left, Vec::<String>::new());
    "the result is truncated with a note; no partial file is left".to_owned()
}

/// A call to a server whose receipt cannot be written.
fn receipts(directory: &Path) -> String {
    let mut options = HostOptions::default();
    options.processes.receipts = Some(directory.to_owned());
    let (result, left) = called(options, Limits::default(), "start=well", directory);
    assert_eq!((result.as_str(), left), ("hello", Vec::new()));
    "the server starts without a receipt; no partial file is left".to_owned()
}

/// The result of a call, and the files in the folder while the host runs.
fn called(options: HostOptions, limits: Limits, script: &str, directory: &Path) -> (String, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let faulty = Faulty::start();
        let host = Host::start(options);
        let servers =
            vec![resolved_server("faulty", faulty.endpoint(Transport::Stdio, "disk", script), limits)];
        host.apply(DesiredServers::new(servers)).await;
        host.wait_until_ready().await;
        let result = host.call(ToolCall::new("faulty__first", RawJson::empty_object())).await;
        assert!(result.success, "{result:?}");
        let left = files(directory);
        host.shutdown().await;
        (result.text(), left)
    })
}
