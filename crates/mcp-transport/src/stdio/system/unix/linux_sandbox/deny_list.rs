//! The system calls that a sandbox refuses by seccomp, because Landlock restricts only files and TCP ports.
//!
//! They are calls that reach other processes, the kernel, mounts, namespaces and keys, and sockets other than TCP. Unix
//! sockets are refused too: they lead to services of the user that run programs, such as systemd and Docker.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use mcp_host_model::{Sandbox, SandboxPreset};
use nix::libc::{self, c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::error::sandbox_error::SandboxError;

/// Calls that are not permitted, with any arguments.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    // Memory and messages that the processes of a user share.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    // Keys of the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// Calls that fail as if the kernel did not have them, so that programs use others. `io_uring` would bypass the
/// filters, and the flags of `clone3` are in memory, where a filter cannot read them.
const MISSING: &[c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// Flags of `clone` for a new namespace.
const NAMESPACES: &[c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The socket families of IPv4 and IPv6.
const INTERNET: [c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// The types of sockets other than `SOCK_STREAM`.
const OTHER_TYPES: [c_int; 4] = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET];
/// The bits of the second argument of `socket` that are the type; the others are flags.
const TYPE_BITS: u64 = 0xf;

/// The port of DNS. A sandbox that permits it may use UDP.
const DNS_PORT: u16 = 53;

/// The refused calls by number, each with the rules of which one must match. Without rules it is always refused.
type RefusedCalls = BTreeMap<i64, Vec<SeccompRule>>;

/// The seccomp programs of a sandbox: the first fails calls with `EPERM`, the second with `ENOSYS`.
pub(super) fn filters(sandbox: &Sandbox) -> Result<Vec<BpfProgram>, SandboxError> {
    let mut refused: RefusedCalls = REFUSED.iter().map(|it| (*it, Vec::new())).collect();
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        clone.push(rule(&[has_bits(0, *flag)])?);
    }
    refused.insert(libc::SYS_clone, clone);
    // `prlimit64` changes limits of other processes; process 0 is the caller itself.
    refused.insert(libc::SYS_prlimit64, vec![rule(&[differs(0, 0)])?]);
    add_socket_rules(sandbox, &mut refused)?;
    let missing = MISSING.iter().map(|it| (*it, Vec::new())).collect();
    let mut refusing = compile(refused, libc::EPERM)?;
    if cfg!(target_arch = "x86_64") {
        refusing.splice(0..0, refuse_second_table());
    }
    Ok(vec![refusing, compile(missing, libc::ENOSYS)?])
}

/// Adds the rules for sockets: which families and types a process may create.
fn add_socket_rules(sandbox: &Sandbox, refused: &mut RefusedCalls) -> Result<(), SandboxError> {
    let is_limited = match sandbox.preset {
        SandboxPreset::Project => true,
        SandboxPreset::Network | SandboxPreset::Off => false,
    };
    let has_internet = !is_limited || !sandbox.ports.is_empty();
    // Netlink tells the addresses of this machine, which programs read before they look up a name.
    let mut other_families = vec![differs(0, libc::AF_NETLINK)];
    if has_internet {
        other_families.extend(INTERNET.map(|it| differs(0, it)));
    }
    let mut sockets =
        vec![rule(&other_families)?, rule(&[equals(0, libc::AF_NETLINK), differs(2, libc::NETLINK_ROUTE)])?];
    if has_internet && is_limited {
        let has_udp = sandbox.ports.contains(&DNS_PORT);
        for family in INTERNET {
            for kind in OTHER_TYPES.into_iter().filter(|it| !(has_udp && *it == libc::SOCK_DGRAM)) {
                sockets.push(rule(&[equals(0, family), is_type(kind)])?);
            }
            // Landlock does not restrict the other stream protocols, MPTCP and SCTP.
            let is_stream = is_type(libc::SOCK_STREAM);
            let other_protocol = [differs(2, 0), differs(2, libc::IPPROTO_TCP)];
            sockets.push(rule(&[&[equals(0, family), is_stream], &other_protocol[..]].concat())?);
        }
        // Landlock checks `connect`, and not a first message that connects (TCP Fast Open).
        for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            refused.insert(call, vec![rule(&[has_bits(argument, libc::MSG_FASTOPEN)])?]);
        }
        // `listen` without `bind` listens at a port that the kernel chooses, which Landlock does not check.
        refused.insert(libc::SYS_listen, Vec::new());
    }
    refused.insert(libc::SYS_socket, sockets);
    // A pair of Unix sockets reaches nothing but itself. Programs need no pairs of other families.
    refused.insert(libc::SYS_socketpair, vec![rule(&[differs(0, libc::AF_UNIX)])?]);
    Ok(())
}

/// The seccomp program that fails the calls with `errno` and allows all others.
fn compile(calls: RefusedCalls, errno: c_int) -> Result<BpfProgram, SandboxError> {
    let arch = TargetArch::try_from(ARCH).map_err(|_| SandboxError::NoSystem)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, arch).map_err(to_error)?;
    filter.try_into().map_err(to_error)
}

/// Instructions that refuse the numbers of the x32 table, which are other names for the same calls.
fn refuse_second_table() -> [seccompiler::sock_filter; 3] {
    const FIRST_OF_X32: u32 = 0x4000_0000;
    let [load, compare, end] = [
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    ]
    .map(|it| u16::try_from(it).unwrap_or_default());
    let action = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    [
        seccompiler::sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        seccompiler::sock_filter { code: compare, jt: 0, jf: 1, k: FIRST_OF_X32 },
        seccompiler::sock_filter { code: end, jt: 0, jf: 0, k: action },
    ]
}

/// A rule that matches a call if all conditions hold.
fn rule(conditions: &[Condition]) -> Result<SeccompRule, SandboxError> {
    let conditions = conditions
        .iter()
        .map(|it| SeccompCondition::new(it.argument, SeccompCmpArgLen::Dword, it.operator.clone(), it.value));
    SeccompRule::new(conditions.collect::<Result<_, _>>().map_err(to_error)?).map_err(to_error)
}

/// A condition for an argument of a call. All arguments here are 32 bits wide.
#[derive(Clone)]
struct Condition {
    /// The index of the argument, from 0.
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
}

fn equals(argument: u8, value: c_int) -> Condition {
    Condition { argument, operator: SeccompCmpOp::Eq, value: u64::from(value.unsigned_abs()) }
}

fn differs(argument: u8, value: c_int) -> Condition {
    Condition { argument, operator: SeccompCmpOp::Ne, value: u64::from(value.unsigned_abs()) }
}

/// The argument has all of these bits.
fn has_bits(argument: u8, bits: c_int) -> Condition {
    let value = u64::from(bits.unsigned_abs());
    Condition { argument, operator: SeccompCmpOp::MaskedEq(value), value }
}

/// A call of `socket` is for a socket of this type.
fn is_type(kind: c_int) -> Condition {
    let value = u64::from(kind.unsigned_abs());
    Condition { argument: 1, operator: SeccompCmpOp::MaskedEq(TYPE_BITS), value }
}

fn to_error(error: seccompiler::BackendError) -> SandboxError {
    SandboxError::Refused(error.to_string())
}
