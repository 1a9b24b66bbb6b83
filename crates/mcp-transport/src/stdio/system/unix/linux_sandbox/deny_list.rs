//! The system calls that a sandbox refuses, because Landlock does not restrict them.
//!
//! Other processes, the kernel, mounts, namespaces, keys, and sockets: Landlock knows only TCP, and a socket in a file
//! leads to services of the user that run programs, such as systemd and Docker. `io_uring` would make calls that no
//! filter sees.

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

/// Calls that the kernel seems not to have, so that programs use others: those of `io_uring`, and `clone3`, whose flags
/// a filter cannot read.
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

const INTERNET: [c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// The types of sockets other than TCP. The lowest four bits of the argument are the type.
const DATAGRAMS: [c_int; 4] = [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET];
const TYPE_BITS: u64 = 0xf;

/// The UDP port of names of hosts.
const NAMES_PORT: u16 = 53;

/// The filters of a sandbox, in the form of the kernel.
pub(super) fn filters(sandbox: &Sandbox) -> Result<Vec<BpfProgram>, SandboxError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|it| (*it, Vec::new())).collect();
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        clone.push(rule(&[has_bits(0, *flag)])?);
    }
    refused.insert(libc::SYS_clone, clone);
    // Limits of other processes. Zero is the process itself.
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
fn add_socket_rules(
    sandbox: &Sandbox,
    refused: &mut BTreeMap<i64, Vec<SeccompRule>>,
) -> Result<(), SandboxError> {
    let (has_tcp, has_udp, has_all) = match sandbox.preset {
        SandboxPreset::Project => (!sandbox.ports.is_empty(), sandbox.ports.contains(&NAMES_PORT), false),
        SandboxPreset::Network | SandboxPreset::Off => (true, true, true),
    };
    // The addresses of this machine, which programs read before they look up a name.
    let mut others = vec![differs(0, libc::AF_NETLINK)];
    if has_tcp {
        others.extend(INTERNET.map(|it| differs(0, it)));
    }
    let mut sockets =
        vec![rule(&others)?, rule(&[equals(0, libc::AF_NETLINK), differs(2, libc::NETLINK_ROUTE)])?];
    if has_tcp && !has_all {
        for family in INTERNET {
            for kind in DATAGRAMS.into_iter().filter(|it| !(has_udp && *it == libc::SOCK_DGRAM)) {
                sockets.push(rule(&[equals(0, family), is_type(kind)])?);
            }
            // Landlock restricts TCP only, and not MPTCP or SCTP.
            let is_stream = is_type(libc::SOCK_STREAM);
            let other_protocol = [differs(2, 0), differs(2, libc::IPPROTO_TCP)];
            sockets.push(rule(&[&[equals(0, family), is_stream], &other_protocol[..]].concat())?);
        }
        // Landlock checks `connect`, and not a first message that connects.
        for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            refused.insert(call, vec![rule(&[has_bits(argument, libc::MSG_FASTOPEN)])?]);
        }
        // Without an address, it listens at any port.
        refused.insert(libc::SYS_listen, Vec::new());
    }
    refused.insert(libc::SYS_socket, sockets);
    // Pairs of connected sockets reach nothing else. Of other families, none is needed.
    refused.insert(libc::SYS_socketpair, vec![rule(&[differs(0, libc::AF_UNIX)])?]);
    Ok(())
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: c_int) -> Result<BpfProgram, SandboxError> {
    let arch = TargetArch::try_from(ARCH).map_err(|_| SandboxError::NoSystem)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(refused)?;
    filter.try_into().map_err(refused)
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

fn rule(conditions: &[Condition]) -> Result<SeccompRule, SandboxError> {
    let conditions = conditions
        .iter()
        .map(|it| SeccompCondition::new(it.argument, SeccompCmpArgLen::Dword, it.operator.clone(), it.value));
    SeccompRule::new(conditions.collect::<Result<_, _>>().map_err(refused)?).map_err(refused)
}

/// A condition for an argument of a call. All arguments here are 32 bits wide.
#[derive(Clone)]
struct Condition {
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

fn has_bits(argument: u8, bits: c_int) -> Condition {
    let value = u64::from(bits.unsigned_abs());
    Condition { argument, operator: SeccompCmpOp::MaskedEq(value), value }
}

fn is_type(kind: c_int) -> Condition {
    let value = u64::from(kind.unsigned_abs());
    Condition { argument: 1, operator: SeccompCmpOp::MaskedEq(TYPE_BITS), value }
}

fn refused(error: seccompiler::BackendError) -> SandboxError {
    SandboxError::Refused(error.to_string())
}
