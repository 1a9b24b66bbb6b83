//! The files and folders that a sandbox allows.
//!
//! Everything is listed, so that a new secret of the user is closed unless it is put into an allowed folder. The home
//! folder is closed except for the packages of package managers.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_host_model::Sandbox;

use crate::error::sandbox_error::SandboxError;

/// How many entries of folders are allowed one by one, because a part of the folder is forbidden.
const MAX_ENTRIES: usize = 4096;

/// Devices without data of others.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What programs of the system read. Of `/etc`, only what has no secret; of `/proc`, nothing of a process.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/python3.14",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/terminfo",
    "/etc/timezone",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system/sw",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Packages, interpreters and their caches in the home folder, and settings of git.
const OF_HOME: &[&str] = &[
    ".asdf",
    ".bun",
    ".cache/deno",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/pip",
    ".cache/puppeteer",
    ".cache/uv",
    ".cargo/bin",
    ".config/git",
    ".deno/bin",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".npm",
    ".nvm",
    ".pyenv",
    ".volta",
];

/// Folders of the home folder that have programs and much else.
const MIXED: &[&str] = &[".local", ".config", ".cache"];

/// The paths that belong to a process.
pub(super) struct ProcessPaths {
    /// The file of its program, if it was found.
    pub(super) program: Option<PathBuf>,
    /// The working directory.
    pub(super) directory: PathBuf,
    /// The home folder of the user.
    pub(super) home: Option<PathBuf>,
    /// The temporary folder of the process.
    pub(super) temporary: Option<PathBuf>,
}

/// A file or folder that a sandbox allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    /// Whether it may also be written.
    pub(super) is_writable: bool,
}

/// The locations that a sandbox allows to a process.
pub(super) fn locations(sandbox: &Sandbox, paths: &ProcessPaths) -> Result<Vec<Location>, SandboxError> {
    let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    if let Some(home) = &paths.home {
        readable.extend(OF_HOME.iter().map(|it| home.join(it)));
    }
    if let Some(program) = &paths.program {
        let real = fs::canonicalize(program).unwrap_or_else(|_| program.clone());
        for file in [program, &real] {
            readable.push(file.clone());
            readable.extend(installation(file, paths.home.as_deref()));
        }
    }
    let directory = canonical(&paths.directory);
    if !contains_home(&directory, paths.home.as_deref()) {
        readable.push(directory);
    }
    readable.extend(sandbox.read.iter().map(PathBuf::from));
    let writable = sandbox.write.iter().map(PathBuf::from).chain(paths.temporary.clone());
    let unreadable: Vec<PathBuf> = sandbox.deny_read.iter().map(|it| canonical(it.as_ref())).collect();
    let mut unwritable = unreadable.clone();
    unwritable.extend(sandbox.deny_write.iter().map(|it| canonical(it.as_ref())));
    let mut res = Vec::new();
    for path in writable {
        add_allowed(Location { path: canonical(&path), is_writable: true }, &unwritable, &mut res)?;
        // Where only writing is forbidden, reading is allowed.
        readable.push(path);
    }
    for path in readable {
        let path = if unreadable.is_empty() { path } else { canonical(&path) };
        add_allowed(Location { path, is_writable: false }, &unreadable, &mut res)?;
    }
    Ok(res)
}

/// Adds a location, or its entries one by one if a part of it is forbidden. The rules of Landlock only allow, so an
/// entry that is created later in such a folder stays closed.
fn add_allowed(location: Location, denied: &[PathBuf], res: &mut Vec<Location>) -> Result<(), SandboxError> {
    if denied.iter().any(|it| location.path.starts_with(it)) {
        return Ok(());
    }
    if !denied.iter().any(|it| it.starts_with(&location.path)) {
        res.push(location);
        return Ok(());
    }
    for entry in fs::read_dir(&location.path).into_iter().flatten().flatten() {
        // The real path of a link is allowed or denied by itself.
        if entry.file_type().is_ok_and(|it| it.is_symlink()) {
            continue;
        }
        if res.len() >= MAX_ENTRIES {
            return Err(SandboxError::TooManyEntries(location.path.display().to_string()));
        }
        add_allowed(Location { path: entry.path(), ..location }, denied, res)?;
    }
    Ok(())
}

/// The folder in which a program is installed with its libraries: that above `bin`. `None` if the folder has other
/// things too.
fn installation(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let bin = program.parent()?;
    if !matches!(bin.file_name()?.to_str()?, "bin" | "shims" | "sbin") {
        return None;
    }
    let folder = bin.parent()?;
    let is_mixed = home.is_some_and(|home| MIXED.iter().any(|it| home.join(it) == folder));
    if is_mixed || contains_home(folder, home) {
        return Some(bin.to_owned());
    }
    Some(folder.to_owned())
}

/// Whether a folder is the home folder, one above it, or unknown.
fn contains_home(folder: &Path, home: Option<&Path>) -> bool {
    match home {
        Some(home) => canonical(home).starts_with(folder) || home.starts_with(folder),
        None => folder.parent().is_none(),
    }
}

/// The path without links, as far as it exists.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_installation(program: &str, expected: Option<&str>) {
        let found = installation(Path::new(program), Some(Path::new("/home/u")));
        assert_eq!(found.as_deref(), expected.map(Path::new), "{program}");
    }

    #[test]
    fn program_brings_its_installation_and_never_the_home_folder() {
        check_installation("/home/u/venv/bin/python", Some("/home/u/venv"));
        check_installation("/srv/node/bin/node", Some("/srv/node"));
        check_installation("/home/u/bin/tool", Some("/home/u/bin"));
        check_installation("/home/u/.local/bin/uvx", Some("/home/u/.local/bin"));
        check_installation("/home/bin/tool", Some("/home/bin"));
        check_installation("/bin/sh", Some("/bin"));
        check_installation("/home/u/tool/run", None);
    }

    /// What is allowed under this folder, without the folder's own path; `+` marks what may be written.
    fn allowed(root: &Path, edit: impl Fn(&mut Sandbox)) -> Vec<String> {
        let mut sandbox = Sandbox::new(mcp_host_model::SandboxPreset::Project);
        edit(&mut sandbox);
        let home = root.join("home");
        let paths =
            ProcessPaths { program: None, directory: home.clone(), home: Some(home), temporary: None };
        let found = locations(&sandbox, &paths).unwrap();
        let mut res: Vec<String> = found
            .iter()
            .filter_map(|it| {
                let path = it.path.strip_prefix(root).ok()?.display().to_string();
                Some(if it.is_writable { format!("+{path}") } else { path })
            })
            .filter(|it| !it.starts_with("home/."))
            .collect();
        res.sort();
        res
    }

    #[test]
    fn forbidden_part_of_a_folder_leaves_its_other_entries() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for file in ["home/x", "w/a/1", "w/a/2", "w/b", "w/.env"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let path = |name: &str| root.join(name).display().to_string();
        assert_eq!(
            allowed(&root, |_| {}),
            Vec::<String>::new(),
            "the home folder is not opened by being cwd"
        );
        assert_eq!(allowed(&root, |it| it.write = vec![path("w")]), ["+w", "w"]);
        let edit = |it: &mut Sandbox| {
            (it.read, it.deny_read) = (vec![path("w")], vec![path("w/.env"), path("w/a/2")]);
        };
        assert_eq!(allowed(&root, edit), ["w/a/1", "w/b"]);
        let edit = |it: &mut Sandbox| (it.write, it.deny_write) = (vec![path("w")], vec![path("w/b")]);
        assert_eq!(allowed(&root, edit), ["+w/.env", "+w/a", "w"]);
        let edit = |it: &mut Sandbox| (it.write, it.deny_read) = (vec![path("w")], vec![path("w")]);
        assert_eq!(allowed(&root, edit), Vec::<String>::new());
    }
}
