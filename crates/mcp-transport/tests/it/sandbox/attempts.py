"""Attempts to leave a sandbox. Writes what each got as JSON: `refused ERRNO`, or what it reached.

Arguments: the folder with a secret, the folder that may be written, the name of an abstract socket, a TCP port that may
be connected to, another TCP port, and a UDP port. The working directory has links to the secret.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import socket
import subprocess
import sys

outside, writable, abstract_name, open_port, closed_port, udp_port = sys.argv[1:7]
open_port, closed_port, udp_port = int(open_port), int(closed_port), int(udp_port)
results_file = os.path.join(writable, "results.json")
if os.path.exists(results_file):
    # A client starts a server again that ended without an answer. The first run has changed the files.
    sys.exit("the attempts are over")
secret = os.path.join(outside, "secret.txt")
parent = os.getppid()
library = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == "x86_64"


def call(number, *arguments):
    """A system call; `None` for one that this machine does not have."""
    if number is None:
        raise OSError(errno.ENOSYS, "no such call")
    arguments = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    if library.syscall(ctypes.c_long(number), *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"


def on_x86(number, otherwise):
    return number if is_x86 else otherwise


def read(path):
    with open(path, "rb") as file:
        return repr(file.read(20))


def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("x")
    return "written"


def link_and_read(make):
    path = os.path.join(writable, "link")
    make(secret, path)
    try:
        return read(path)
    finally:
        os.unlink(path)


def run(*command):
    """The output of another program; its failure counts as a refusal."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(errno.EACCES, done.stderr)
    return done.stdout


def connect(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as it:
        it.connect(address)
        return "connected"


def send(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        return it.sendto(b"x", ("127.0.0.1", port))


def fast_open(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as it:
        return it.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", port))


def bind(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as it:
        it.bind(("127.0.0.1", port))
        return "bound"


def listen():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as it:
        it.listen()
        return "listens"


def create(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()
    return "created"


def inherited_variable():
    value = os.environ.get("CARGO_MANIFEST_DIR")
    if value is None:
        raise OSError(errno.ENOENT, "not inherited")
    return value


def open_descriptors():
    found = []
    for number in range(3, 256):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    return found


# Before an attempt opens one.
descriptors = open_descriptors()


def inherited_descriptors():
    if not descriptors:
        raise OSError(errno.EBADF, "none")
    return descriptors


def core_dump():
    import resource

    if resource.getrlimit(resource.RLIMIT_CORE) == (0, 0):
        raise OSError(errno.EPERM, "none")
    return "core dumps"


def clone_user_namespace():
    flags = 0x10000000 | signal.SIGCHLD
    result = library.syscall(ctypes.c_long(on_x86(56, 220)), ctypes.c_long(flags), 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    os.waitpid(result, 0)
    return "a namespace"


def process_vm_readv():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    return call(on_x86(310, 270), parent, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)


files = {
    "read a file outside": lambda: read(secret),
    "read a key in .ssh": lambda: read(os.path.join(outside, ".ssh", "id")),
    "list the folder above": lambda: os.listdir(outside),
    "list the home folder": lambda: os.listdir(os.path.expanduser("~")),
    "read over ..": lambda: read(os.path.join("..", "secret.txt")),
    "read a link to a file": lambda: read("link"),
    "read over a link to a folder": lambda: read(os.path.join("up", "secret.txt")),
    "read over a new link": lambda: link_and_read(os.symlink),
    "read over a new hard link": lambda: link_and_read(os.link),
    "write into the working directory": lambda: write("new.txt"),
    "overwrite a file outside": lambda: write(secret),
    "append to a file outside": lambda: write(secret, "a"),
    "truncate a file outside": lambda: os.truncate(secret, 0),
    "delete a file outside": lambda: os.unlink(os.path.join(outside, "delete.txt")),
    "move a file in": lambda: os.rename(os.path.join(outside, "move.txt"), os.path.join(writable, "m")),
    "create a folder outside": lambda: os.mkdir(os.path.join(outside, "new")),
    "create a link outside": lambda: os.symlink("x", os.path.join(outside, "new-link")),
    "write into /tmp": lambda: write("/tmp/mcp-host-attempt"),
    "run a program outside": lambda: run(os.path.join(outside, "tool")),
    "read with a program that it starts": lambda: run("cat", secret),
    "read with a program of a new session": lambda: run("setsid", "cat", secret),
    "read the passwords": lambda: read("/etc/shadow"),
    "open the terminal": lambda: read("/dev/tty"),
    "open the log of the kernel": lambda: read("/dev/kmsg"),
    "create a device": lambda: os.mknod(os.path.join(writable, "device"), 0o060600, os.makedev(8, 0)),
    "open a file by its handle": lambda: call(on_x86(304, 265), -100, 0, 0),
}
processes = {
    "read the environment of the host": lambda: read(f"/proc/{parent}/environ"),
    "read the command line of the host": lambda: read(f"/proc/{parent}/cmdline"),
    "read the memory of the host": lambda: read(f"/proc/{parent}/mem"),
    "list the files of the host": lambda: os.listdir(f"/proc/{parent}/fd"),
    "read over the root of the host": lambda: read(f"/proc/{parent}/root{secret}"),
    "read the environment of process 1": lambda: read("/proc/1/environ"),
    "list the processes": lambda: os.listdir("/proc"),
    "trace the host": lambda: call(on_x86(101, 117), 0x4206, parent, 0, 0),
    "trace over the second table of calls": lambda: call(on_x86(0x40000000 + 521, None), 0x4206, parent, 0, 0),
    "read the memory with process_vm_readv": process_vm_readv,
    "take a descriptor of the host": lambda: call(438, os.pidfd_open(parent), 0, 0),
    "read a limit of the host": lambda: call(on_x86(302, 261), parent, 7, 0, ctypes.create_string_buffer(16)),
    "share memory": lambda: call(on_x86(29, 194), 0, 4096, 0o1600),
    "open a message queue": lambda: call(on_x86(240, 180), b"mcp-host", 0o100, 0o600, 0),
    "signal the host": lambda: os.kill(parent, 0),
    "use an inherited descriptor": inherited_descriptors,
    "read an inherited variable": inherited_variable,
    "write a core dump": core_dump,
}
kernel = {
    "become another user": lambda: os.setuid(12345),
    "mount": lambda: call(on_x86(165, 40), b"none", b"/", b"tmpfs", 0, 0),
    "unmount": lambda: call(on_x86(166, 39), b"/no/such/mount", 0),
    "open a mount": lambda: call(428, -100, b"/", 1),
    "change the root": lambda: os.chroot(writable),
    "unshare the user namespace": lambda: call(on_x86(272, 97), 0x10000000),
    "clone into a user namespace": clone_user_namespace,
    "enter a namespace": lambda: call(on_x86(308, 268), -1, 0),
    "load a BPF program": lambda: call(on_x86(321, 280), 0, 0, 0),
    "open a performance counter": lambda: call(on_x86(298, 241), 0, 0, -1, -1, 0),
    "handle page faults": lambda: call(on_x86(323, 282), 0),
    "read a key of the kernel": lambda: call(on_x86(250, 219), 0, -4, 0),
    "add a key to the kernel": lambda: call(on_x86(248, 217), b"user", b"mcp-host", b"x", 1, -2),
    "use io_uring": lambda: call(425, 1, 0),
    "load a module": lambda: call(on_x86(175, 105), 0, 0, b""),
    "read the messages of the kernel": lambda: call(on_x86(103, 116), 10, 0, 0),
}
network = {
    "connect over TCP": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", closed_port)),
    "connect over IPv6": lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", closed_port)),
    "connect over MPTCP": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", closed_port), 262),
    "connect with the first message": lambda: fast_open(closed_port),
    "send over UDP": lambda: send(udp_port),
    "send raw packets": lambda: create(socket.AF_INET, socket.SOCK_RAW, 1),
    "send frames": lambda: create(17, socket.SOCK_RAW),
    "connect to the hypervisor": lambda: create(40, socket.SOCK_STREAM),
    "read the audit log": lambda: create(16, socket.SOCK_RAW, 9),
    "listen at a port": lambda: bind(0),
    "listen at any port": listen,
    "connect to an abstract socket": lambda: connect(1, socket.SOCK_STREAM, "\0" + abstract_name),
    "connect to a socket in a file": lambda: connect(1, socket.SOCK_STREAM, os.path.join(writable, "socket")),
}
# What must work, so that a refusal of everything is noticed.
allowed = {
    "read the working directory": lambda: read("own.txt"),
    "write where it may": lambda: write(os.path.join(writable, "new.txt")),
    "write a temporary file": lambda: write(os.path.join(os.environ.get("TMPDIR", "/tmp"), "x")),
    "run a program": lambda: run("true"),
    "use pairs of sockets": lambda: [it.close() for it in socket.socketpair()],
    "connect to a listed port": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", open_port)),
}


def outcome(attempt):
    try:
        return f"got {attempt()}"
    except OSError as error:
        return "refused " + errno.errorcode.get(error.errno, str(error.errno))


groups = {"files": files, "processes": processes, "kernel": kernel, "network": network, "allowed": allowed}
# The kernel group changes the process, so without a sandbox only a part is tried.
chosen = sys.argv[7].split(",")
results = {
    name: {attempt: outcome(function) for attempt, function in group.items()}
    for name, group in groups.items()
    if name in chosen
}
with open(results_file, "w") as file:
    json.dump(results, file)
print("the attempts are over", file=sys.stderr)
sys.exit(3)
