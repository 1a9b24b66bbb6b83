//! Starts processes on Linux without forking the host.
//!
//! A child must ask the kernel for SIGKILL on its parent's death (`PR_SET_PDEATHSIG`) after it is created and before
//! its program runs. `std::process::Command` forks to run such code, and a fork copies the page tables of the whole
//! host and makes it copy each page that it writes next, so a start costs more in a larger host (docs/performance.md
//! has the measurement). Here the child shares our memory until its program runs, and the starting thread waits
//! meanwhile (`CLONE_VM | CLONE_VFORK`), as in `posix_spawn`, which cannot set the signal.
//!
//! This is the only file for Unix with `unsafe`. Before its program, a child only runs
//! [`ChildPlan::run_in_child`]: system calls on prepared data, without allocation, locks or unwinding.

#![expect(unsafe_code, reason = "between clone and exec there can be nothing but system calls")]

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::{mem, ptr};

use nix::errno::Errno;
use nix::libc::{self, c_char, c_int};
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::child_status::ChildStatus;
use super::descriptor_limit::{DescriptorLimit, original_limit};
use super::files::DEFAULT_PATH;
use super::linux_sandbox::PreparedSandbox;
use crate::error::sandbox_error::SandboxError;
use crate::stdio::program::ChildCommand;

/// Stack size for [`ChildPlan::run_in_child`], which needs a few hundred bytes, with room for unoptimized builds.
const STACK_BYTES: usize = 64 << 10;

/// The shell, which runs a script without an interpreter line, as in `execvp`.
const SHELL: &CStr = c"/bin/sh";

/// A child process that was not waited for yet.
#[derive(Debug)]
pub(super) struct UnreapedChild(Pid);

impl UnreapedChild {
    pub(super) fn id(&self) -> u32 {
        self.0.as_raw().unsigned_abs()
    }

    /// Checks whether the child has exited, and waits for it if so. Afterwards its process id may be reused.
    pub(super) fn try_wait(&mut self) -> ChildStatus {
        let mut status = 0;
        // SAFETY: `status` is a local that outlives the call.
        match unsafe { libc::waitpid(self.0.as_raw(), &raw mut status, libc::WNOHANG) } {
            0 => ChildStatus::Running,
            -1 if Errno::last() == Errno::EINTR => ChildStatus::Running,
            -1 => ChildStatus::Exited(None),
            _ => ChildStatus::Exited(Some(ExitStatus::from_raw(status))),
        }
    }

    /// A pidfd, readable when the process has exited, registered with this runtime. `None` where the system has none.
    pub(super) fn pidfd(&self) -> Option<AsyncFd<OwnedFd>> {
        // SAFETY: the process was not waited for, so its id is not reused. The new descriptor is closed on
        // exec, and the `OwnedFd` is its only owner.
        unsafe {
            let opened = libc::syscall(libc::SYS_pidfd_open, self.0.as_raw(), 0);
            let opened = c_int::try_from(opened).ok().filter(|it| *it >= 0)?;
            AsyncFd::register_with_interest(OwnedFd::from_raw_fd(opened), Interest::READABLE).ok()
        }
    }
}

/// Starts the program as the leader of a process group of its own, with these descriptors as standard input, output and
/// error; none of them may be below 3. The process dies with the calling thread.
///
/// Fails if no process can be created or the program cannot be executed; no process is left then.
pub(super) fn launch(program: &ChildCommand, streams: &[OwnedFd; 3]) -> io::Result<UnreapedChild> {
    let texts = ExecStrings::new(program)?;
    let sandbox = program.sandbox.as_ref().map(|it| PreparedSandbox::new(it, program)).transpose()?;
    let arguments = null_terminated(&texts.arguments);
    let plan = ChildPlan {
        texts: &texts,
        shell_arguments: [SHELL.as_ptr(), ptr::null()]
            .into_iter()
            .chain(arguments.iter().copied().skip(1))
            .map(Cell::new)
            .collect(),
        arguments,
        environment: null_terminated(&texts.environment),
        streams: streams.each_ref().map(AsRawFd::as_raw_fd),
        parent: nix::unistd::getpid().as_raw(),
        descriptor_limit: original_limit(),
        restriction: sandbox.as_ref().map(Restriction::new),
        failure: Cell::new(0),
        restriction_failed: Cell::new(false),
    };
    let mut stack = vec![0; STACK_BYTES];
    // One of our signal handlers must not run in the child, where it would modify our memory.
    let mut previous_mask = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut previous_mask))?;
    let enter = Box::new(|| {
        plan.failure.set(plan.run_in_child());
        127
    });
    // SAFETY: the child only runs `ChildPlan::run_in_child`, on a stack that is large enough for it. The stack and the
    // plan live until this call returns. It returns when the child has executed its program or has ended; until then
    // this thread is suspended. The code in the child neither unwinds nor drops anything.
    let cloned = unsafe {
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        nix::sched::clone(enter, &mut stack, flags, Some(libc::SIGCHLD))
    };
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&previous_mask), None)?;
    let process = UnreapedChild(cloned?);
    match plan.failure.get() {
        0 => Ok(process),
        errno => {
            // It is about to exit, and only this thread waits for it.
            while nix::sys::wait::waitpid(process.0, None) == Err(Errno::EINTR) {}
            let error = io::Error::from_raw_os_error(errno);
            Err(if plan.restriction_failed.get() {
                SandboxError::Refused(error.to_string()).into()
            } else {
                error
            })
        }
    }
}

/// The strings for `execve`.
struct ExecStrings {
    /// Candidate paths of the program, in order.
    programs: Vec<CString>,
    /// The program's name comes first.
    arguments: Vec<CString>,
    environment: Vec<CString>,
    cwd: Option<CString>,
}

impl ExecStrings {
    fn new(program: &ChildCommand) -> io::Result<ExecStrings> {
        let ChildCommand { command, args, env, cwd, sandbox: _ } = program;
        let path = env.get(OsStr::new("PATH")).map(|it| it.as_bytes());
        let arguments = [command].into_iter().chain(args).map(|it| it.clone().into_bytes());
        let environment = env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(ExecStrings {
            programs: c_strings(candidate_paths(command.as_bytes(), path).into_iter())?,
            arguments: c_strings(arguments)?,
            environment: c_strings(environment)?,
            cwd: cwd.as_ref().map(|it| CString::new(it.as_os_str().as_bytes())).transpose()?,
        })
    }
}

fn c_strings(byte_strings: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    Ok(byte_strings.map(CString::new).collect::<Result<_, _>>()?)
}

/// Candidate paths of a command: its own path, or one for each cwd of `PATH`; an empty cwd is the working
/// directory.
fn candidate_paths(command: &[u8], path: Option<&[u8]>) -> Vec<Vec<u8>> {
    if command.is_empty() || command.contains(&b'/') {
        return vec![command.to_vec()];
    }
    let folders = path.unwrap_or(DEFAULT_PATH.as_bytes()).split(|it| *it == b':');
    folders.map(|it| if it.is_empty() { command.to_vec() } else { [it, b"/", command].concat() }).collect()
}

/// The pointers with a terminating null.
fn null_terminated(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|it| it.as_ptr()).chain([ptr::null()]).collect()
}

/// What a child does before its program runs.
struct ChildPlan<'a> {
    texts: &'a ExecStrings,
    arguments: Vec<*const c_char>,
    /// The arguments if the shell runs the program: its name, a slot for the script, then the program's arguments.
    shell_arguments: Vec<Cell<*const c_char>>,
    environment: Vec<*const c_char>,
    streams: [c_int; 3],
    parent: c_int,
    /// The limit of open files of the program, if it is not that of the host.
    descriptor_limit: Option<DescriptorLimit>,
    restriction: Option<Restriction>,
    /// The errno of the step that failed, for the parent.
    failure: Cell<c_int>,
    /// Whether that step was the sandbox.
    restriction_failed: Cell<bool>,
}

impl ChildPlan<'_> {
    /// Executes the program. Returns only the errno of a failure.
    fn run_in_child(&self) -> c_int {
        // SAFETY: system calls that may be made between fork and exec, with pointers to data that `launch` keeps alive.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                return Errno::last_raw();
            }
            // The parent may have died before the signal was requested.
            if libc::getppid() != self.parent {
                return libc::EPIPE;
            }
            if libc::setpgid(0, 0) == -1 {
                return Errno::last_raw();
            }
            for (ours, theirs) in self.streams.iter().zip(0..) {
                if libc::dup2(*ours, theirs) == -1 {
                    return Errno::last_raw();
                }
            }
            close_other_descriptors_on_exec();
            if let Some(DescriptorLimit { soft, hard }) = self.descriptor_limit {
                let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
                if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == -1 {
                    return Errno::last_raw();
                }
            }
            if let Some(cwd) = &self.texts.cwd
                && libc::chdir(cwd.as_ptr()) == -1
            {
                return Errno::last_raw();
            }
            reset_signals();
            if let Some(restriction) = &self.restriction
                && let Err(errno) = restriction.apply()
            {
                self.restriction_failed.set(true);
                return errno;
            }
            self.execute()
        }
    }

    /// Tries one candidate path after the other, as `execvp` does.
    unsafe fn execute(&self) -> c_int {
        let mut errno_of_search = libc::ENOENT;
        for program in &self.texts.programs {
            // SAFETY: all pointers refer to data of the plan, and each list ends with a null pointer.
            let errno = unsafe {
                libc::execve(program.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr());
                if Errno::last_raw() == libc::ENOEXEC {
                    self.shell_arguments[1].set(program.as_ptr());
                    let arguments = self.shell_arguments.as_ptr().cast::<*const c_char>();
                    libc::execve(SHELL.as_ptr(), arguments, self.environment.as_ptr());
                }
                Errno::last_raw()
            };
            match errno {
                libc::EACCES => errno_of_search = errno,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {
                    errno_of_search = if errno_of_search == libc::EACCES { errno_of_search } else { errno };
                }
                _ => return errno,
            }
        }
        errno_of_search
    }
}

/// A sandbox in the form of the kernel.
struct Restriction {
    /// The descriptor of the Landlock ruleset.
    ruleset: c_int,
    filters: Vec<libc::sock_fprog>,
}

impl Restriction {
    fn new(sandbox: &PreparedSandbox) -> Restriction {
        Restriction { ruleset: sandbox.ruleset(), filters: sandbox.programs() }
    }

    /// Restricts the child for good: no new privileges, no capabilities, no core dumps, Landlock, and the filters.
    /// Returns the errno of a failure.
    unsafe fn apply(&self) -> Result<(), c_int> {
        let check = |result: libc::c_long| if result == -1 { Err(Errno::last_raw()) } else { Ok(()) };
        // SAFETY: system calls with pointers to locals and to data that `launch` keeps alive.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            // The third version of the structs has two sets of three words.
            let header = [CAPABILITY_VERSION, 0];
            let none = [0_u32; 6];
            check(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            check(libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core).into())?;
            check(libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset, 0))?;
            for filter in &self.filters {
                let program = ptr::from_ref(filter);
                check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, program, 0, 0).into())?;
            }
        }
        Ok(())
    }
}

/// The version of the structs of `capset` (`_LINUX_CAPABILITY_VERSION_3`).
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Marks all descriptors but the standard streams, so that the new program does not get those that the host inherited.
unsafe fn close_other_descriptors_on_exec() {
    /// The first descriptor after the standard streams.
    const FIRST: c_int = 3;
    /// Descriptors below this are marked one by one, where the system cannot mark a range (before Linux 5.11).
    const SINGLE_MARKS_END: c_int = 1024;
    // SAFETY: the calls change the descriptor table of the child only, which it does not share with the host.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, FIRST, c_int::MAX, flags) == -1 {
            for descriptor in FIRST..SINGLE_MARKS_END {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Resets signal handlers and the signal mask for the new program. Ignored signals stay ignored, except SIGPIPE.
///
/// Uses the system call directly: for SIGABRT a C library may take a lock, which would be the host's.
unsafe fn reset_signals() {
    /// The kernel's `sigaction`: handler, flags, restorer, mask.
    type Action = [usize; 8];
    /// The size of the kernel's signal set in bytes.
    const SET: usize = 8;
    // SAFETY: an action of zeros is the default action, and the calls write to locals only.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            let mut action: Action = [0; 8];
            let result =
                libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<Action>(), &raw mut action, SET);
            let is_handled = !matches!(action[0], libc::SIG_DFL | libc::SIG_IGN);
            if result == 0 && (is_handled || signal == libc::SIGPIPE) {
                let default: Action = [0; 8];
                let none = ptr::null_mut::<Action>();
                libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, none, SET);
            }
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}
