//! Process cleanup: after every kind of exit no child process is left.

use std::path::Path;
use std::process::{Child, Command};

use mcp_testkit::process::is_alive;
use mcp_testkit::program::{Run, binary};
use mcp_testkit::wait::block_until;

/// A folder with a configuration: the demo server, started by a shell that leaves a grandchild. Both write their
/// process ids.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "sleep 1000 & echo $! > grandchild; echo $$ > child; exec '{}' demo-server",
            binary().display()
        );
        let text = format!(
            "version: 1\nservers:\n  demo:\n    transport: stdio\n    truely-stateless: true\n    command: sh\n    \
            args: ['-c', \"{script}\"]\n"
        );
        std::fs::create_dir(folder.path().join(".minds")).unwrap();
        std::fs::write(folder.path().join(".minds/mcp.yaml"), text).unwrap();
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::new(self.path(), &self.path().join("state"), arguments)
    }

    /// Starts a call that lasts until something ends it.
    fn long_call(&self) -> Child {
        let child = self.run(&["call", ".minds/mcp.yaml", "sleep", r#"{"ms": 60000}"#]).start();
        block_until(|| {
            self.pid("child").is_some_and(is_alive) && self.pid("grandchild").is_some_and(is_alive)
        });
        child
    }

    fn pid(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.path().join(name)).ok()?.trim().parse().ok()
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        for name in ["child", "grandchild"] {
            let pid = self.pid(name).unwrap();
            block_until(|| !is_alive(pid));
        }
    }
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn hd_fr024_a_regular_exit_leaves_no_process() {
    let folder = Folder::new();
    let ran = folder.run(&["tools", ".minds/mcp.yaml", "--format", "json"]).finish();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    folder.assert_nothing_left();
    assert_eq!(std::fs::read_dir(folder.path().join("state/mcp-host/receipts")).unwrap().count(), 0);
}

#[test]
fn sigint_and_sighup_leave_no_process() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let folder = Folder::new();
        let mut child = folder.long_call();
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        folder.assert_nothing_left();
    }
}

#[test]
fn after_sigkill_the_next_start_ends_the_rest() {
    let folder = Folder::new();
    let mut child = folder.long_call();
    signal(&child, "-KILL");
    child.wait().unwrap();
    let (direct, grandchild) = (folder.pid("child").unwrap(), folder.pid("grandchild").unwrap());
    block_until(|| !is_alive(direct));
    assert!(is_alive(grandchild), "else there is nothing to reap, and this test shows nothing");

    let other = Folder::new();
    let ran = Run::new(other.path(), &folder.path().join("state"), &["tools", ".minds/mcp.yaml"]).finish();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    block_until(|| !is_alive(grandchild));
    assert_eq!(std::fs::read_dir(folder.path().join("state/mcp-host/receipts")).unwrap().count(), 0);
}

#[test]
fn a_panic_leaves_no_process() {
    let folder = Folder::new();
    let path = folder.path().join(".minds/mcp.yaml");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("> grandchild", "> '$D/grandchild'")
        .replace("> child", "> '$D/child'");
    std::fs::write(&path, text.replace("$D", &folder.path().display().to_string())).unwrap();
    let panicked = std::panic::catch_unwind(|| {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let host = mcp_host_runtime::Host::start(mcp_host_runtime::HostOptions::default());
            let request = mcp_host_runtime::LoadRequest::new(path.clone());
            host.apply(mcp_host_runtime::load(&request).unwrap().desired).await;
            host.wait_until_ready().await;
            assert!(!host.snapshot().catalog.tools().is_empty());
            block_until(|| folder.pid("grandchild").is_some_and(is_alive));
            panic!("in the middle");
        })
    });
    assert!(panicked.is_err());
    folder.assert_nothing_left();
}
