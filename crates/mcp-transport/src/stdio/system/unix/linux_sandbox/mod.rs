//! The sandbox of a process on Linux: Landlock for files and TCP, and a filter of system calls for the rest.
//!
//! Both are prepared before the process exists, because only system calls may run between clone and exec.
//! `linux_launcher` applies them. They hold for all processes that the server starts.

mod deny_list;
mod folders;

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use mcp_host_model::{Sandbox, SandboxPreset};
use nix::libc;
use nix::sys::stat::{SFlag, fstat};
use seccompiler::BpfProgram;

use crate::error::sandbox_error::SandboxError;
use crate::stdio::lookup::{ProgramSearch, ProgramSearchResult, find_program};
use crate::stdio::program::ChildCommand;
use crate::stdio::system::DEFAULT_PATH;
use folders::{Location, ProcessPaths};

/// The first version of Landlock that restricts files, truncation and TCP: that of Linux 6.7.
const REQUIRED: ABI = ABI::V4;

/// The last version whose further restrictions are used if the kernel has them: abstract sockets and signals (Linux
/// 6.12), sockets in files.
const BEST: ABI = ABI::V9;

/// A sandbox that is ready to be applied in a child.
pub(super) struct PreparedSandbox {
    ruleset: OwnedFd,
    filters: Vec<BpfProgram>,
}

impl PreparedSandbox {
    /// Prepares a sandbox for a program. Fails if the kernel cannot apply it as a whole.
    pub(super) fn new(sandbox: &Sandbox, program: &ChildCommand) -> Result<PreparedSandbox, SandboxError> {
        Ok(PreparedSandbox {
            ruleset: create_ruleset(sandbox, program)?,
            filters: deny_list::filters(sandbox)?,
        })
    }

    /// The descriptor of the Landlock ruleset.
    pub(super) fn ruleset(&self) -> RawFd {
        self.ruleset.as_raw_fd()
    }

    /// The filters of system calls, in the form of the kernel.
    pub(super) fn programs(&self) -> Vec<libc::sock_fprog> {
        let program = |filter: &BpfProgram| libc::sock_fprog {
            // The compiler limits a filter to 4096 instructions.
            len: filter.len().try_into().unwrap_or(u16::MAX),
            // The kernel only reads it, and both structs are the kernel's `sock_filter`.
            filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
        };
        self.filters.iter().map(program).collect()
    }
}

/// Creates the ruleset of Landlock: everything is refused, except for the locations and ports of the sandbox.
fn create_ruleset(sandbox: &Sandbox, program: &ChildCommand) -> Result<OwnedFd, SandboxError> {
    let no_landlock = |error: RulesetError| SandboxError::NoLandlock(error.to_string());
    let mut attributes = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))
        .map_err(no_landlock)?;
    if sandbox.preset == SandboxPreset::Project {
        attributes =
            attributes.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp).map_err(no_landlock)?;
    }
    let attributes = attributes
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(BEST))
        .and_then(|it| it.scope(Scope::from_all(BEST)))
        .map_err(no_landlock)?;
    let mut ruleset = attributes.create().map_err(no_landlock)?;
    let refused = |error: RulesetError| SandboxError::Refused(error.to_string());
    let read = AccessFs::from_read(BEST);
    let write = AccessFs::from_all(BEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    for path in folders::DEVICES {
        ruleset = allow(ruleset, Path::new(path), devices).map_err(refused)?;
    }
    for path in sandbox.read.iter().chain(&sandbox.write).filter(|it| !Path::new(it).exists()) {
        tracing::warn!("the sandbox of {} lists {path}, which does not exist", program.command);
    }
    for Location { path, is_writable } in folders::locations(sandbox, &process_paths(program))? {
        let access = if is_writable { write } else { read };
        ruleset = allow(ruleset, &path, access).map_err(refused)?;
    }
    if sandbox.preset == SandboxPreset::Project {
        for port in &sandbox.ports {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(refused)?;
        }
    }
    Option::<OwnedFd>::from(ruleset).ok_or_else(|| SandboxError::NoLandlock("it has no Landlock".to_owned()))
}

/// Allows access to a path. A path that cannot be opened is skipped: there is nothing to reach.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(ruleset) };
    let is_folder = is_folder(opened.as_fd());
    let access = if is_folder { access } else { access & AccessFs::from_file(BEST) };
    ruleset.add_rule(PathBeneath::new(opened, access))
}

fn is_folder(descriptor: BorrowedFd<'_>) -> bool {
    fstat(descriptor).is_ok_and(|it| SFlag::from_bits_truncate(it.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

/// The paths that belong to a process: its program, its folders and the user's home.
fn process_paths(program: &ChildCommand) -> ProcessPaths {
    let directory = program.cwd.clone().or_else(|| env::current_dir().ok()).unwrap_or_default();
    let path = program.env.get(OsStr::new("PATH")).and_then(|it| it.to_str()).unwrap_or(DEFAULT_PATH);
    let found = match find_program(&program.command, ProgramSearch { path, directory: &directory }) {
        ProgramSearchResult::Found(file) => Some(file),
        _ => None,
    };
    ProcessPaths {
        program: found,
        directory,
        // Not the home of the server's environment, which its configuration can change.
        home: env::var_os("HOME").map(PathBuf::from).filter(|it| it.is_absolute()),
        temporary: program.env.get(OsStr::new("TMPDIR")).map(PathBuf::from),
    }
}

impl From<SandboxError> for io::Error {
    fn from(error: SandboxError) -> io::Error {
        io::Error::other(error)
    }
}
