//! SIGKILL at random moments: the next start ends all child processes, and a written file has its old or its new
//! content.
//!
//! The moments come from fixed seeds, which a failure prints. The properties hold at every moment, so the test does
//! not depend on timing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use mcp_host_model::Secret;
use mcp_host_oauth::{Grant, RegisteredClient, TokenStore};
use mcp_host_registry::{LockFile, ServerSnapshot};
use mcp_host_runtime::{FileTokenStore, lock_path, read_lock, replace_private, save};
use mcp_testkit::process::wait_until_dead;
use mcp_testkit::program::{Run, binary};
use mcp_testkit::random::Random;
use mcp_testkit::wait::block_until;

/// The variable of a process that writes one kind of file until it is killed.
const WRITER: &str = "MCP_TEST_WRITER";
/// The variable with its folder.
const FOLDER: &str = "MCP_TEST_FOLDER";

fn kill(child: &mut Child) {
    // The process may have exited before.
    let _ = child.kill();
    child.wait().unwrap();
}

/// Servers in `folder`: each is a shell with a background grandchild that has a child itself. All write their process
/// ids first.
fn configuration(folder: &Path, servers: usize) {
    let script = format!(
        "echo $$ >> pids; sh -c 'echo $$ >> pids; sleep 1000 & echo $! >> pids; wait' & exec '{}' demo-server",
        binary().display()
    );
    let mut text = "version: 1\nservers:\n".to_owned();
    for number in 0..servers {
        text.push_str(&format!(
            "  s{number}:\n    transport: stdio\n    truely-stateless: true\n    command: sh\n    args: ['-c', \
            \"{script}\"]\n"
        ));
    }
    fs::create_dir_all(folder.join(".minds")).unwrap();
    fs::write(folder.join(".minds/mcp.yaml"), text).unwrap();
}

fn pids(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("pids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn a_killed_host_leaves_no_grandchild_after_the_next_start() {
    const ROUNDS: u64 = 10;
    let state = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for seed in 1..=ROUNDS {
        let mut moments = Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        configuration(folder.path(), 3);
        let mut host = Run::new(folder.path(), state.path(), &["watch", ".", "--plain"]).start();
        // In half of the rounds the delay begins with the first process.
        let within = match seed % 2 {
            0 => {
                block_until(|| !pids(folder.path()).is_empty());
                400
            }
            _ => 1_500,
        };
        std::thread::sleep(moments.duration(Duration::from_millis(within)));
        kill(&mut host);
        seen.extend(pids(folder.path()).into_iter().map(|pid| (seed, pid)));
    }
    // By the start of another host, each process has written its id or exited.
    let other = tempfile::tempdir().unwrap();
    configuration(other.path(), 1);
    let ran = Run::new(other.path(), state.path(), &["tools", "."]).finish();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(seen.len() >= 9, "nothing was hit, and this test shows nothing: {seen:?}");
    for (seed, pid) in &seen {
        eprintln!("process {pid} of seed {seed}");
        wait_until_dead(&[*pid]);
    }
    assert_eq!(fs::read_dir(state.path().join("mcp-host/receipts")).unwrap().count(), 0);
}

/// The two alternating contents of a configuration.
fn texts() -> [String; 2] {
    ["a", "b"].map(|name| format!("version: 1\nservers: {{}}\n# {}\n", name.repeat(1 << 19)))
}

fn locks() -> [LockFile; 2] {
    [2_000, 3_000].map(|count| {
        let servers = (0..count).map(|it| (format!("server {it}"), ServerSnapshot::default()));
        let mut file = LockFile::default();
        file.servers = servers.collect();
        file
    })
}

fn grants() -> [Grant; 2] {
    ["a", "b"].map(|name| {
        let mut grant = Grant::new(
            "https://a.example/mcp".parse().unwrap(),
            "https://login.a.example",
            RegisteredClient::new("c"),
            Secret::new(name.repeat(100_000)),
        );
        grant.refresh_token = Some(Secret::new(name.repeat(100)));
        grant
    })
}

/// Writes until it is killed.
fn write(what: &str, folder: &Path) -> ! {
    let (file, tokens) = (folder.join("file"), FileTokenStore::new(folder.join("logins")));
    let (texts, grants) = (texts(), grants());
    let locks = locks().map(|it| it.to_text());
    loop {
        for at in [0, 1] {
            match what {
                "configuration" => save(&file, &texts[1 - at], &texts[at]).unwrap(),
                "recording" => replace_private(&file, &texts[at]).unwrap(),
                "lock" => save(&lock_path(&file), &locks[1 - at], &locks[at]).unwrap(),
                "login" => tokens.save(&grants[at]).unwrap(),
                other => panic!("{other} is nothing that is written"),
            }
            fs::write(folder.join("written"), "").unwrap();
        }
    }
}

/// Whether the file has one of the two contents.
fn is_whole(what: &str, folder: &Path) -> bool {
    let file = folder.join("file");
    match what {
        "configuration" | "recording" => texts().contains(&fs::read_to_string(file).unwrap()),
        "lock" => locks().contains(&read_lock(&lock_path(&file)).unwrap().unwrap().lock),
        "login" => {
            let tokens = FileTokenStore::new(folder.join("logins"));
            let grant = tokens.latest(&"https://a.example/mcp".parse().unwrap()).unwrap();
            grant.is_some_and(|it| grants().contains(&it))
        }
        other => panic!("{other} is nothing that is written"),
    }
}

#[test]
fn a_file_of_a_killed_writer_is_old_or_new() {
    const ROUNDS: u64 = 8;
    if let (Ok(what), Some(folder)) = (std::env::var(WRITER), std::env::var_os(FOLDER)) {
        write(&what, &PathBuf::from(folder));
    }
    let mut left = 0;
    for what in ["configuration", "recording", "lock", "login"] {
        for seed in 1..=ROUNDS {
            let mut moments = Random::new(seed);
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("file"), &texts()[1]).unwrap();
            fs::write(lock_path(&folder.path().join("file")), locks()[1].to_text()).unwrap();
            let mut writer = Command::new(std::env::current_exe().unwrap())
                .args(["sigkill::a_file_of_a_killed_writer_is_old_or_new", "--exact"])
                .env(WRITER, what)
                .env(FOLDER, folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            block_until(|| folder.path().join("written").exists());
            // A busy loop, because the moments must be close together.
            let (begun, wait) = (Instant::now(), moments.duration(Duration::from_millis(30)));
            while begun.elapsed() < wait {
                std::hint::spin_loop();
            }
            kill(&mut writer);
            assert!(is_whole(what, folder.path()), "{what} is half, with seed {seed}");
            // The next writer removes the temporary file once its writer has exited.
            let unfinished = unfinished(folder.path());
            left += unfinished.len();
            for path in &unfinished {
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(2 * 60 * 60)).unwrap();
            }
            replace_private(&folder.path().join("file"), "").unwrap();
            FileTokenStore::new(folder.path().join("logins")).save(&grants()[0]).unwrap();
            assert_eq!(self::unfinished(folder.path()), Vec::<PathBuf>::new(), "{what}, with seed {seed}");
        }
    }
    assert!(left > 0, "no process was killed while it wrote, so this test shows nothing");
}

/// Temporary files of unfinished writes.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let folders = [folder.to_owned(), folder.join("logins")];
    let entries = folders.iter().flat_map(|it| fs::read_dir(it).into_iter().flatten().flatten());
    let is_unfinished = |it: &fs::DirEntry| it.file_name().to_string_lossy().ends_with(".tmp");
    entries.filter(is_unfinished).map(|it| it.path()).collect()
}

#[test]
fn a_killed_edit_leaves_the_old_or_the_new_configuration() {
    const ROUNDS: u64 = 8;
    let mut before = "version: 1\nservers:\n".to_owned();
    for number in 0..60 {
        before
            .push_str(&format!("  s{number}: # the server {number}\n    transport: stdio\n    command: x\n"));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".minds/mcp.yaml");
    fs::create_dir(folder.path().join(".minds")).unwrap();
    let disable = |seed: u64, wait: Option<Duration>| {
        fs::write(&path, &before).unwrap();
        let begun = Instant::now();
        let mut edit = Run::new(folder.path(), folder.path(), &["disable", ".", &format!("s{seed}")]).start();
        match wait {
            Some(wait) => {
                std::thread::sleep(wait);
                kill(&mut edit);
            }
            None => assert!(edit.wait().unwrap().success()),
        }
        (fs::read_to_string(&path).unwrap(), begun.elapsed())
    };
    let took = disable(0, None).1;
    for seed in 1..=ROUNDS {
        let (wanted, _) = disable(seed, None);
        assert_ne!(wanted, before);
        // Near the end, when the command writes.
        let wait = took / 2 + Random::new(seed).duration(took / 2);
        let (left, _) = disable(seed, Some(wait));
        assert!(left == before || left == wanted, "half a configuration with seed {seed}");
    }
}
