//! The sandbox of stdio servers: attempts to leave it, and real servers inside.

mod real_servers;

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use mcp_host_model::{EnvInheritance, Sandbox, SandboxPreset, Secret, StdioEndpoint};
use mcp_host_transport::{ConnectError, DisconnectReason, SandboxError, StartError};
use mcp_testkit::program::installed_program;
use mcp_testkit::servers::{shell_script, shell_server};

use crate::stdio::{call, connect};

/// What became of each attempt, by group and name: `refused ERRNO`, or `got` and what was reached.
type Outcomes = BTreeMap<String, BTreeMap<String, String>>;

/// Whether the kernel has what a sandbox needs. Without it, a test is skipped with a message.
pub(super) async fn kernel_has_sandbox() -> bool {
    let mut endpoint = shell_script("exit 0");
    endpoint.sandbox = Some(Sandbox::new(SandboxPreset::Project));
    match connect(endpoint).await {
        Err(ConnectError::Disconnected(ended)) => match &ended.reason {
            DisconnectReason::NotStarted(StartError::Sandbox(error @ SandboxError::NoLandlock(_))) => {
                skip(&error.to_string());
                false
            }
            _ => true,
        },
        _ => true,
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// A folder with secrets, a project in it with links to them, and what listens on this machine.
struct Surroundings {
    root: tempfile::TempDir,
    allowed: TcpListener,
    closed: TcpListener,
    udp: UdpSocket,
    abstract_name: String,
    _sockets: [UnixListener; 2],
}

impl Surroundings {
    fn new() -> Surroundings {
        // Not in the temporary folder of the system, in which other sandboxes have their own.
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for folder in [".ssh", "project/out"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        for file in ["secret.txt", ".ssh/id", "delete.txt", "move.txt", "project/own.txt"] {
            fs::write(path(file), "secret").unwrap();
        }
        fs::copy("/bin/true", path("tool")).unwrap();
        symlink(path("secret.txt"), path("project/link")).unwrap();
        symlink(root.path(), path("project/up")).unwrap();
        let abstract_name = root.path().file_name().unwrap().to_str().unwrap().to_owned();
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let in_file = UnixListener::bind(path("project/out/socket")).unwrap();
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        Surroundings {
            abstract_name,
            allowed: listener(),
            closed: listener(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _sockets: [UnixListener::bind_addr(&address).unwrap(), in_file],
            root,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn allowed_port(&self) -> u16 {
        self.allowed.local_addr().unwrap().port()
    }

    /// A sandbox whose server may write `project/out`.
    fn sandbox(&self, preset: SandboxPreset) -> Sandbox {
        let mut sandbox = Sandbox::new(preset);
        sandbox.write = vec![self.path("project/out").display().to_string()];
        sandbox
    }

    /// Runs the attempts of these groups in a process with or without a sandbox.
    async fn attempt(&self, sandbox: Option<Sandbox>, groups: &str) -> Outcomes {
        let mut endpoint = StdioEndpoint::new("python3");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sandbox/attempts.py");
        // The script itself is in the project, because nothing else of this repository is open.
        fs::copy(script, self.path("project/attempts.py")).unwrap();
        let closed = self.closed.local_addr().unwrap().port();
        endpoint.args = [
            "attempts.py".to_owned(),
            self.root.path().display().to_string(),
            self.path("project/out").display().to_string(),
            self.abstract_name.clone(),
            self.allowed_port().to_string(),
            closed.to_string(),
            self.udp.local_addr().unwrap().port().to_string(),
            groups.to_owned(),
        ]
        .map(Secret::new)
        .into();
        endpoint.cwd = Some(self.path("project"));
        endpoint.inherit = EnvInheritance::All;
        endpoint.sandbox = sandbox;
        let error = connect(endpoint).await.err().unwrap();
        assert!(error.to_string().contains("the attempts are over"), "{error}");
        let results = self.path("project/out/results.json");
        let text = fs::read_to_string(&results).unwrap();
        fs::remove_file(results).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// The attempts that a sandbox of the preset `project` refuses, and the errors that they get.
const REFUSALS: &[(&str, &str)] = &[
    ("read a file outside", "EACCES"),
    ("read a key in .ssh", "EACCES"),
    ("list the folder above", "EACCES"),
    ("list the home folder", "EACCES"),
    ("read over ..", "EACCES"),
    ("read a link to a file", "EACCES"),
    ("read over a link to a folder", "EACCES"),
    ("read over a new link", "EACCES"),
    ("read over a new hard link", "EACCES EXDEV"),
    ("write into the working directory", "EACCES"),
    ("overwrite a file outside", "EACCES"),
    ("append to a file outside", "EACCES"),
    ("truncate a file outside", "EACCES"),
    ("delete a file outside", "EACCES"),
    ("move a file in", "EACCES EXDEV"),
    ("create a folder outside", "EACCES"),
    ("create a link outside", "EACCES"),
    ("write into /tmp", "EACCES"),
    ("run a program outside", "EACCES"),
    ("read with a program that it starts", "EACCES"),
    ("read with a program of a new session", "EACCES"),
    ("read the passwords", "EACCES"),
    ("open the terminal", "EACCES ENXIO"),
    ("open the log of the kernel", "EACCES EPERM ENOENT"),
    ("create a device", "EACCES EPERM"),
    ("open a file by its handle", "EPERM"),
    ("read the environment of the host", "EACCES"),
    ("read the command line of the host", "EACCES"),
    ("read the memory of the host", "EACCES"),
    ("list the files of the host", "EACCES"),
    ("read over the root of the host", "EACCES"),
    ("read the environment of process 1", "EACCES"),
    ("list the processes", "EACCES"),
    ("trace the host", "EPERM"),
    ("trace over the second table of calls", "EPERM ENOSYS"),
    ("read the memory with process_vm_readv", "EPERM"),
    ("take a descriptor of the host", "EPERM"),
    ("read a limit of the host", "EPERM"),
    ("share memory", "EPERM"),
    ("open a message queue", "EPERM"),
    ("signal the host", "EPERM"),
    ("use an inherited descriptor", "EBADF"),
    ("read an inherited variable", "ENOENT"),
    ("write a core dump", "EPERM"),
    ("become another user", "EPERM"),
    ("mount", "EPERM"),
    ("unmount", "EPERM"),
    ("open a mount", "EPERM"),
    ("change the root", "EPERM"),
    ("unshare the user namespace", "EPERM"),
    ("clone into a user namespace", "EPERM"),
    ("enter a namespace", "EPERM"),
    ("load a BPF program", "EPERM"),
    ("open a performance counter", "EPERM"),
    ("handle page faults", "EPERM"),
    ("read a key of the kernel", "EPERM"),
    ("add a key to the kernel", "EPERM"),
    ("use io_uring", "ENOSYS"),
    ("load a module", "EPERM"),
    ("read the messages of the kernel", "EPERM"),
    ("connect over TCP", "EPERM"),
    ("connect over IPv6", "EPERM"),
    ("connect over MPTCP", "EPERM"),
    ("connect with the first message", "EPERM"),
    ("send over UDP", "EPERM"),
    ("send raw packets", "EPERM"),
    ("send frames", "EPERM"),
    ("connect to the hypervisor", "EPERM"),
    ("read the audit log", "EPERM"),
    ("listen at a port", "EPERM"),
    ("listen at any port", "EPERM"),
    ("connect to an abstract socket", "EPERM"),
    ("connect to a socket in a file", "EPERM"),
];

/// Attempts that succeed without a sandbox on every machine, so that the table proves something.
const SUCCESSES: &[&str] = &[
    "read a file outside",
    "read a key in .ssh",
    "list the folder above",
    "list the home folder",
    "read over ..",
    "read a link to a file",
    "read over a link to a folder",
    "read over a new link",
    "read over a new hard link",
    "write into the working directory",
    "overwrite a file outside",
    "append to a file outside",
    "truncate a file outside",
    "delete a file outside",
    "move a file in",
    "create a folder outside",
    "create a link outside",
    "write into /tmp",
    "run a program outside",
    "read with a program that it starts",
    "read with a program of a new session",
    "read the command line of the host",
    "list the processes",
    "signal the host",
    "read an inherited variable",
    "connect over TCP",
    "send over UDP",
    "listen at a port",
    "listen at any port",
    "connect to an abstract socket",
    "connect to a socket in a file",
];

#[track_caller]
fn assert_refused(outcomes: &Outcomes, attempt: &str, expected: &str) {
    let got = outcomes.values().find_map(|it| it.get(attempt)).unwrap();
    let errno = got.strip_prefix("refused ");
    assert!(errno.is_some_and(|it| expected.split(' ').any(|one| one == it)), "{attempt}: {got}");
}

#[track_caller]
fn assert_allowed(outcomes: &Outcomes, attempt: &str) {
    let got = outcomes.values().find_map(|it| it.get(attempt)).unwrap();
    assert!(got.starts_with("got "), "{attempt}: {got}");
}

const ALL_GROUPS: &str = "files,processes,kernel,network,allowed";

#[tokio::test]
async fn rpt_310_attempts_to_leave_the_sandbox_get_nothing() {
    if !installed_program("python3") || !kernel_has_sandbox().await {
        return;
    }
    let around = Surroundings::new();
    let outcomes = around.attempt(Some(around.sandbox(SandboxPreset::Project)), ALL_GROUPS).await;
    let attempts: usize =
        ["files", "processes", "kernel", "network"].iter().map(|it| outcomes[*it].len()).sum();
    assert_eq!(attempts, REFUSALS.len(), "each attempt has a row");
    for (attempt, expected) in REFUSALS {
        assert_refused(&outcomes, attempt, expected);
    }
    for attempt in outcomes["allowed"].keys().filter(|it| *it != "connect to a listed port") {
        assert_allowed(&outcomes, attempt);
    }
    assert_eq!(fs::read_to_string(around.path("secret.txt")).unwrap(), "secret");
}

#[tokio::test]
async fn attempts_succeed_without_a_sandbox() {
    if !installed_program("python3") {
        return;
    }
    let around = Surroundings::new();
    let outcomes = around.attempt(None, "files,processes,network,allowed").await;
    for attempt in SUCCESSES {
        assert_allowed(&outcomes, attempt);
    }
    let _ = fs::remove_file("/tmp/mcp-host-attempt");
}

#[tokio::test]
async fn rpt_311_listed_ports_are_open_and_no_others() {
    if !installed_program("python3") || !kernel_has_sandbox().await {
        return;
    }
    let around = Surroundings::new();
    let mut sandbox = around.sandbox(SandboxPreset::Project);
    sandbox.ports = vec![around.allowed_port()];
    let outcomes = around.attempt(Some(sandbox.clone()), "network,allowed").await;
    assert_allowed(&outcomes, "connect to a listed port");
    for (attempt, expected) in [
        ("connect over TCP", "EACCES"),
        ("connect over IPv6", "EACCES"),
        ("connect over MPTCP", "EPERM"),
        ("connect with the first message", "EPERM"),
        ("send over UDP", "EPERM"),
        ("send raw packets", "EPERM"),
        ("listen at a port", "EACCES"),
        ("listen at any port", "EPERM"),
        ("connect to an abstract socket", "EPERM"),
        ("connect to a socket in a file", "EPERM"),
    ] {
        assert_refused(&outcomes, attempt, expected);
    }
    sandbox.ports.push(53);
    let outcomes = around.attempt(Some(sandbox), "network,allowed").await;
    assert_allowed(&outcomes, "send over UDP");
    assert_refused(&outcomes, "connect over TCP", "EACCES");
    let outcomes = around.attempt(Some(around.sandbox(SandboxPreset::Network)), "files,network").await;
    assert_allowed(&outcomes, "connect over TCP");
    assert_allowed(&outcomes, "listen at a port");
    assert_refused(&outcomes, "connect to a socket in a file", "EPERM");
    assert_refused(&outcomes, "read a file outside", "EACCES");
}

#[tokio::test]
async fn rpt_312_failure_in_a_sandbox_names_the_sandbox() {
    if !kernel_has_sandbox().await {
        return;
    }
    let around = Surroundings::new();
    let mut outside = StdioEndpoint::new(around.path("tool").display().to_string());
    outside.cwd = Some(around.path("project"));
    outside.sandbox = Some(Sandbox::new(SandboxPreset::Project));
    // The program itself is allowed; the interpreter of a script may not be.
    let script = around.path("project/run");
    fs::write(&script, format!("#!{}\n", around.path("tool").display())).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    outside.command = script.display().to_string();
    let error = connect(outside).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "the server could not be started: its sandbox (project, has no network) does not let it run {}",
            script.display()
        )
    );
    assert!(error.help().unwrap().contains("`read`"), "{:?}", error.help());

    let mut endpoint = shell_script("cat ../secret.txt; exit 1");
    endpoint.cwd = Some(around.path("project"));
    endpoint.sandbox = Some(Sandbox::new(SandboxPreset::Project));
    let error = connect(endpoint).await.err().unwrap().to_string();
    assert!(error.ends_with("; it ran in a sandbox: project, has no network"), "{error}");
    assert!(error.contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn temporary_folder_ends_with_the_server() {
    if !kernel_has_sandbox().await {
        return;
    }
    let mut endpoint = shell_server(r#"echo x > "$TMPDIR/file" && text "$id" "$TMPDIR""#);
    endpoint.sandbox = Some(Sandbox::new(SandboxPreset::Project));
    let session = connect(endpoint).await.unwrap();
    let folder = call(&session, 10_000).await.unwrap();
    assert!(Path::new(&folder).join("file").is_file(), "{folder}");
    session.close(std::time::Duration::from_secs(2)).await;
    assert!(!Path::new(&folder).exists(), "{folder}");
}
