//! From a program to a process, without copying ours.
//!
//! A child has to ask the kernel for SIGKILL when its parent dies, after it was made and before its program runs. The
//! standard library forks for that, and a fork copies the page tables of the whole host and has it copy each page that
//! it writes to next: what a start costs would grow with who asks for it. Here the child borrows our memory until its
//! program is there, and the thread that starts it stands still meanwhile: what `posix_spawn` does, which cannot ask.
//!
//! This is the one file of the workspace with `unsafe`. What a child does before its program is [`Plan::enter`]: system
//! calls on what was laid out before, no allocation, no lock, nothing that unwinds.

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

use super::program::{Life, Program};

/// Room for [`Plan::enter`], which needs a few hundred bytes, and for what an unoptimised build adds.
const STACK: usize = 64 << 10;

/// Where a program is looked for without `PATH`.
const NO_PATH: &[u8] = b"/bin:/usr/bin";

/// Who runs a text that names no interpreter, as with `execvp`.
const SHELL: &CStr = c"/bin/sh";

/// A child of this process that somebody has to wait for.
#[derive(Debug)]
pub(super) struct Process(Pid);

impl Process {
    pub(super) fn id(&self) -> u32 {
        self.0.as_raw().unsigned_abs()
    }

    /// Whether it has ended. Its number may be another's as soon as this has said so.
    pub(super) fn look(&mut self) -> Life {
        let mut status = 0;
        // SAFETY: it writes to a local.
        match unsafe { libc::waitpid(self.0.as_raw(), &raw mut status, libc::WNOHANG) } {
            0 => Life::Runs,
            -1 if Errno::last() == Errno::EINTR => Life::Runs,
            -1 => Life::Ended(None),
            _ => Life::Ended(Some(ExitStatus::from_raw(status))),
        }
    }

    /// What is readable when the process has ended, for this runtime to watch. `None` where the system has no such thing.
    pub(super) fn news(&self) -> Option<AsyncFd<OwnedFd>> {
        // SAFETY: the process was not waited for, so that its number is its own. What is opened is closed on exec by
        // itself and is nobody else's, and what owns it never gives another number.
        unsafe {
            let opened = libc::syscall(libc::SYS_pidfd_open, self.0.as_raw(), 0);
            let opened = c_int::try_from(opened).ok().filter(|it| *it >= 0)?;
            AsyncFd::register_with_interest(OwnedFd::from_raw_fd(opened), Interest::READABLE).ok()
        }
    }
}

/// Starts the program as the leader of a process group of its own, with these as standard input, output and error; none
/// of them may be one of ours. The process dies with the thread that calls this.
///
/// Fails where no process can be made, and with what kept the program from being its own; then none is left.
pub(super) fn launch(program: &Program, streams: &[OwnedFd; 3]) -> io::Result<Process> {
    let texts = Texts::of(program)?;
    let arguments = pointers(&texts.arguments);
    let plan = Plan {
        texts: &texts,
        shell: [SHELL.as_ptr(), ptr::null()]
            .into_iter()
            .chain(arguments.iter().copied().skip(1))
            .map(Cell::new)
            .collect(),
        arguments,
        environment: pointers(&texts.environment),
        streams: streams.each_ref().map(AsRawFd::as_raw_fd),
        parent: nix::unistd::getpid().as_raw(),
        failure: Cell::new(0),
    };
    let mut stack = vec![0; STACK];
    // A handler of ours must not run in the child, where it would work on our memory.
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let enter = Box::new(|| {
        plan.failure.set(plan.enter());
        127
    });
    // SAFETY: the child runs `Plan::enter` alone, on a stack with more room than that takes. The stack and the plan live
    // until this call returns, and that is when the child has a program of its own or has ended: so long this thread
    // stands still. What the child calls neither unwinds nor drops anything.
    let cloned = unsafe {
        let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
        nix::sched::clone(enter, &mut stack, flags, Some(libc::SIGCHLD))
    };
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    let process = Process(cloned?);
    match plan.failure.get() {
        0 => Ok(process),
        errno => {
            // It is about to end, and nobody else waits for it.
            while nix::sys::wait::waitpid(process.0, None) == Err(Errno::EINTR) {}
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// All that a child needs, in the system's own form.
struct Texts {
    /// Where its program may be, in the order in which that is tried.
    programs: Vec<CString>,
    /// The program's name first.
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: Option<CString>,
}

impl Texts {
    fn of(program: &Program) -> io::Result<Texts> {
        let Program { command, args, env, cwd } = program;
        let path = env.get(OsStr::new("PATH")).map(|it| it.as_bytes());
        let arguments = [command].into_iter().chain(args).map(|it| it.clone().into_bytes());
        let environment = env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(Texts {
            programs: texts(places(command.as_bytes(), path).into_iter())?,
            arguments: texts(arguments)?,
            environment: texts(environment)?,
            folder: cwd.as_ref().map(|it| CString::new(it.as_os_str().as_bytes())).transpose()?,
        })
    }
}

fn texts(them: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    Ok(them.map(CString::new).collect::<Result<_, _>>()?)
}

/// Where a command may be: where it says, or in the folders of `PATH`, of which an empty one is the folder it runs in.
fn places(command: &[u8], path: Option<&[u8]>) -> Vec<Vec<u8>> {
    if command.is_empty() || command.contains(&b'/') {
        return vec![command.to_vec()];
    }
    let folders = path.unwrap_or(NO_PATH).split(|it| *it == b':');
    folders.map(|it| if it.is_empty() { command.to_vec() } else { [it, b"/", command].concat() }).collect()
}

/// With the null at their end.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|it| it.as_ptr()).chain([ptr::null()]).collect()
}

/// What a child does before its program.
struct Plan<'a> {
    texts: &'a Texts,
    arguments: Vec<*const c_char>,
    /// The same for the shell: its own name, room for the text that it runs, and what that is given.
    shell: Vec<Cell<*const c_char>>,
    environment: Vec<*const c_char>,
    streams: [c_int; 3],
    parent: c_int,
    /// The errno of what did not succeed, for the parent. Where VFORK copies all the same, as some emulators have it, a
    /// program that cannot be started is one that ends with 127.
    failure: Cell<c_int>,
}

impl Plan<'_> {
    /// Becomes the program. Comes back only with what kept it from that.
    fn enter(&self) -> c_int {
        // SAFETY: system calls that may be made between fork and exec, with pointers that `launch` keeps alive.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                return Errno::last_raw();
            }
            // The parent may have died before the kernel was asked.
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
            if let Some(folder) = &self.texts.folder
                && libc::chdir(folder.as_ptr()) == -1
            {
                return Errno::last_raw();
            }
            forget_handlers();
            self.execute()
        }
    }

    /// Tries one place after the other, as `execvp` does.
    ///
    /// # Safety
    ///
    /// What the plan points to is there, and this is a child that may become another program.
    unsafe fn execute(&self) -> c_int {
        let mut res = libc::ENOENT;
        for program in &self.texts.programs {
            // SAFETY: all pointers are to what the plan holds, and each list has its null.
            let errno = unsafe {
                libc::execve(program.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr());
                if Errno::last_raw() == libc::ENOEXEC {
                    self.shell[1].set(program.as_ptr());
                    let arguments = self.shell.as_ptr().cast::<*const c_char>();
                    libc::execve(SHELL.as_ptr(), arguments, self.environment.as_ptr());
                }
                Errno::last_raw()
            };
            match errno {
                libc::EACCES => res = errno,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {
                    res = if res == libc::EACCES { res } else { errno };
                }
                _ => return errno,
            }
        }
        res
    }
}

/// A program begins without a handler and with nothing held back. What is ignored stays so, but for a closed pipe.
///
/// The system is asked itself: for SIGABRT a C library may take a lock, which would be that of the host.
///
/// # Safety
///
/// This is a child with signal handlers of its own, that may become another program.
unsafe fn forget_handlers() {
    /// Room for what the system knows of a signal, which is the handler first, and flags, a restorer and a mask.
    type Action = [usize; 8];
    /// How many bytes a set of signals has.
    const SET: usize = 8;
    // SAFETY: an action of zeros is the default one, and what is written are locals.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            let mut action: Action = [0; 8];
            let known =
                libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<Action>(), &raw mut action, SET);
            let is_handled = !matches!(action[0], libc::SIG_DFL | libc::SIG_IGN);
            if known == 0 && (is_handled || signal == libc::SIGPIPE) {
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
