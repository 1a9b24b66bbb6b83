//! Unix: sockets in a private folder; the kernel names the user of a peer.

use std::env;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs4::{FileExt, TryLockError};
use mcp_host_transport::open_lock_file;
use nix::unistd::geteuid;
use tokio::net::{UnixListener, UnixStream};

use crate::runtime::system::create_private_folder;

/// A connection.
pub(in crate::control) type ControlStream = UnixStream;

/// The end of the names of sockets. The name of one begins with the id of its process.
const SUFFIX: &str = ".sock";

/// The beginning of the names of sockets of shared hosts.
const SHARED_PREFIX: &str = "shared-";

/// The folder in which systemd has the runtime folder of each user.
const USER_FOLDERS: &str = "/run/user";

/// The maximum number of sockets that are looked at.
const MAX_SOCKETS: usize = 256;

/// A listening socket, which is removed when it is dropped.
pub(in crate::control) struct ControlListener {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlListener {
    /// Listens at the socket of this process.
    pub(in crate::control) fn bind() -> io::Result<ControlListener> {
        // There may be a socket of an ended process with the same id.
        let path = create_socket_folder()?.join(format!("{}{SUFFIX}", std::process::id()));
        Ok(ControlListener { listener: replace_socket(&path)?, path })
    }

    /// Accepts a connection of the same user. Others are closed.
    pub(in crate::control) async fn accept(&self) -> io::Result<ControlStream> {
        accept_same_user(&self.listener).await
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        // The folder may have been removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// A connection of a shared host.
pub(crate) type SharedStream = UnixStream;

/// A connection of a shim to a shared host.
pub(crate) type ShimStream = std::os::unix::net::UnixStream;

/// The socket of a shared host. It is removed when it is dropped.
pub(crate) struct SharedListener {
    listener: UnixListener,
    path: PathBuf,
    /// Locked for as long as the socket exists, so that one process listens. A killed process releases it.
    _lock: File,
}

impl SharedListener {
    /// Listens at the socket with this name. `None` if another process does.
    pub(crate) fn bind(name: &str) -> io::Result<Option<SharedListener>> {
        let folder = create_socket_folder()?;
        let lock = open_lock_file(&folder.join(format!("{SHARED_PREFIX}{name}.lock")))?;
        match FileExt::try_lock(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // There may be a socket of a killed process.
        let path = folder.join(format!("{SHARED_PREFIX}{name}{SUFFIX}"));
        Ok(Some(SharedListener { listener: replace_socket(&path)?, path, _lock: lock }))
    }

    /// Accepts a connection of the same user. Others are closed.
    pub(crate) async fn accept(&self) -> io::Result<SharedStream> {
        accept_same_user(&self.listener).await
    }
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        // The folder may have been removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// Connects to the shared host with this name. Blocks.
pub(crate) fn connect_shared(name: &str) -> io::Result<ShimStream> {
    let folder = create_socket_folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let stream = UnixStream::connect(folder.join(format!("{SHARED_PREFIX}{name}{SUFFIX}"))).await?;
        if !is_same_user(stream.peer_cred()?.uid(), geteuid().as_raw()) {
            return Err(io::Error::other("another user serves the socket of the shared host"));
        }
        stream.into_std()
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Accepts a connection of the same user. Others are closed.
async fn accept_same_user(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        let peer = stream.peer_cred()?.uid();
        if is_same_user(peer, geteuid().as_raw()) {
            return Ok(stream);
        }
        tracing::warn!(user = peer, "a connection of another user to a socket of this host was refused");
    }
}

/// Listens at a path. A socket that is there is replaced.
fn replace_socket(path: &Path) -> io::Result<UnixListener> {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Creates the folder of the sockets, and checks it.
fn create_socket_folder() -> io::Result<PathBuf> {
    let folder = socket_folder()?;
    create_private_folder(&folder)?;
    check_folder(&folder)?;
    Ok(folder)
}

/// Connects to the hosts of this user. Returns their process ids and connections. Removes the sockets of ended hosts.
pub(in crate::control) async fn connect_all() -> io::Result<Vec<(u32, ControlStream)>> {
    let folder = socket_folder()?;
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    check_folder(&folder)?;
    let names = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
    let processes = names.filter_map(|name| name.strip_suffix(SUFFIX)?.parse().ok());
    let mut processes: Vec<u32> = processes.take(MAX_SOCKETS).collect();
    processes.sort_unstable();
    let mut res = Vec::new();
    for process in processes {
        let path = folder.join(format!("{process}{SUFFIX}"));
        match UnixStream::connect(&path).await {
            Ok(stream) if is_same_user(stream.peer_cred()?.uid(), geteuid().as_raw()) => {
                res.push((process, stream));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(res)
}

/// The folder of the sockets: in the user's runtime folder, else in the state folder. Many clients do not pass the
/// variable of the runtime folder on, so its usual place counts too: then all processes of a user use one folder.
fn socket_folder() -> io::Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|it| it.is_absolute());
    let usual =
        || Some(Path::new(USER_FOLDERS).join(geteuid().to_string())).filter(|it| check_folder(it).is_ok());
    match runtime.or_else(usual) {
        Some(folder) => Ok(folder.join("mcp-host")),
        None => {
            mcp_host_runtime::state_path("mcp-host/run", &|name| env::var_os(name)).map_err(io::Error::other)
        }
    }
}

/// Fails if others could open or replace what is in the folder.
fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let is_private =
        metadata.is_dir() && metadata.mode() & 0o077 == 0 && is_same_user(metadata.uid(), geteuid().as_raw());
    if is_private {
        Ok(())
    } else {
        Err(io::Error::other(format!("other users can open {}; run `chmod 700` for it", folder.display())))
    }
}

/// Whether a peer is of the same user.
fn is_same_user(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_017_socket_belongs_to_one_user() {
        assert!(is_same_user(1000, 1000));
        // Root needs no socket to do what it wants.
        assert!(!is_same_user(0, 1000) && !is_same_user(1001, 1000));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let check = |mode: u32, want: bool| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_folder(&path).is_ok(), want, "{mode:o}");
        };
        fs::create_dir(&path).unwrap();
        check(0o700, true);
        check(0o750, false);
        check(0o701, false);
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(check_folder(&link).is_err());
    }
}
