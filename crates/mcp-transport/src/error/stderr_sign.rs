//! Signs of known failures in what a server's process prints.
//!
//! Pure. A program reports these failures in words only, so the text is searched, unless its exit status names the
//! failure. A failure is named only if its sign is unambiguous. The first matching sign is used, so specific ones come
//! before general ones.

use crate::error::evidence::Evidence;
use crate::error::headline::find_headline;
use crate::error::windows::find_exit_sign;

/// A sign of a known failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StderrSign {
    /// A line of standard error that contains one of these shows the failure.
    patterns: &'static [&'static str],
    /// The failure, as the beginning of a sentence about the server.
    pub(crate) description: &'static str,
    /// What to do.
    pub(crate) help: &'static str,
}

/// The sign of text on standard output that is not MCP.
pub(crate) const NOISE: StderrSign = StderrSign {
    patterns: &[],
    description: "it writes text to its standard output that is not MCP",
    help: "a stdio server may write only MCP messages to its standard output; make it log to standard error",
};

const MISSING_PACKAGE_HELP: &str =
    "install its packages: `npm install` in its folder; if it is built, build it again";

/// The signs on standard error.
const SIGNS: &[StderrSign] = &[
    StderrSign {
        patterns: &["EADDRINUSE", "ddress already in use"],
        description: "the port that it listens on is already in use",
        help: "stop the process that uses the port (`ss -ltnp` shows it), or configure another port for the server",
    },
    StderrSign {
        patterns: &[
            "npm error code E404",
            "npm ERR! code E404",
            "npm error code ETARGET",
            "npm ERR! code ETARGET",
            "was not found in the package registry",
            "No solution found when resolving",
            "No matching distribution found",
        ],
        description: "the package registry does not have this package, or not this version",
        help: "check the name and the version of the package; for a private package, configure its registry and log in",
    },
    StderrSign {
        patterns: &[
            "could not determine executable to run",
            "is not provided by package",
            "executables are available",
        ],
        description: "the package has no program with that name",
        help: "give the package and the program: `npx -y --package PACKAGE PROGRAM`, `uvx --from PACKAGE PROGRAM`",
    },
    StderrSign {
        patterns: &[
            "npm error code ENOTFOUND",
            "npm error code EAI_AGAIN",
            "npm error code ECONNREFUSED",
            "npm error code ECONNRESET",
            "npm error code ETIMEDOUT",
            "error sending request for url",
        ],
        description: "the package registry cannot be reached",
        help: "check the network, the proxy (HTTPS_PROXY) and the configured registry (npm_config_registry, \
            UV_INDEX_URL); an installed package needs none of them",
    },
    StderrSign {
        patterns: &["Cannot connect to the Docker daemon", "docker daemon running", "docker.sock"],
        description: "the Docker daemon cannot be reached",
        help: "start Docker, and check that `docker ps` works for this user",
    },
    StderrSign {
        patterns: &["pull access denied", "manifest unknown", "manifest for "],
        description: "the image does not exist, or it is private",
        help: "check the image's name and tag; a private image needs `docker login`",
    },
    StderrSign {
        patterns: &[
            "SyntaxError: Unexpected token '?'",
            "SyntaxError: Unexpected token '??='",
            "SyntaxError: Unexpected token '||='",
            "SyntaxError: Unexpected token 'with'",
            "SyntaxError: Unexpected token '.'",
            "ReferenceError: fetch is not defined",
            "ReferenceError: File is not defined",
            "ReferenceError: Headers is not defined",
            "ReferenceError: ReadableStream is not defined",
            "ReferenceError: WebSocket is not defined",
            "ReferenceError: crypto is not defined",
            "ReferenceError: CustomEvent is not defined",
            "No such built-in module: node:",
            "ERR_UNKNOWN_BUILTIN_MODULE",
            "does not provide an export named 'styleText'",
            "ERR_REQUIRE_ESM",
            "Promise.withResolvers is not a function",
            "requires Node.js",
            "requires Node >=",
            "You are using Node.js ",
        ],
        description: "its Node.js is too old",
        help: "install a newer Node.js (the server's documentation names the version), and write its full path in \
            `command`, or its folder first in `PATH` of `env`",
    },
    StderrSign {
        patterns: &["' imported from "],
        description: "a file or package that it needs is missing",
        help: MISSING_PACKAGE_HELP,
    },
    StderrSign {
        patterns: &[
            "can't open file",
            "Cannot find module '/",
            "error: Module not found \"",
            "error: Script not found",
            "error: Failed to spawn: `",
            "Unable to access jarfile",
            ": 0: cannot open ",
            "Can't open perl script",
            "Could not open input file",
        ],
        description: "its script does not exist",
        help: "write its full path, or set `cwd` to the directory that it is in: a relative path starts in the \
            working directory",
    },
    StderrSign {
        patterns: &["Cannot find module", "ERR_MODULE_NOT_FOUND", "Cannot find package"],
        description: "a file or package that it needs is missing",
        help: MISSING_PACKAGE_HELP,
    },
    StderrSign {
        patterns: &["ModuleNotFoundError: No module named"],
        description: "a Python module that it needs is missing",
        help: "install it for the Python that runs the server; `uvx` and `uv run` install a package's dependencies",
    },
    StderrSign {
        patterns: &[": No module named "],
        description: "this Python does not have the module that `-m` names",
        help: "install its package for this Python (`PYTHON -m pip install PACKAGE`), or write the Python of its \
            virtual environment in `command`",
    },
    StderrSign {
        patterns: &[
            "env: \u{2018}",
            "env: '",
            "env: can't execute",
            "env: node: ",
            "env: python",
            ": command not found",
        ],
        description: "a program that its script starts is not on its PATH",
        help: "install that program, or add its folder to `PATH` of `env`; your shell may use another PATH than this \
            program",
    },
    // PowerShell translates its message, but not the name of the page.
    StderrSign {
        patterns: &["about_Execution_Policies"],
        description: "PowerShell does not run scripts on this machine",
        help: "write `-ExecutionPolicy`, `Bypass` before `-File` in the arguments; of npm's programs use the `.cmd` \
            file, such as `npx.cmd`, and not the `.ps1` file",
    },
    // What `wsl.exe` prints for a program that the distribution does not have.
    StderrSign {
        patterns: &["CreateProcessCommon:", "CreateProcessEntryCommon:"],
        description: "the Linux of WSL does not have this program or folder",
        help: "install the program in WSL, and write its full path there (`wsl which PROGRAM`): programs of Windows, \
            and those of a login shell, are not on that PATH",
    },
    StderrSign {
        patterns: &["'C:\\Program' is not recognized as an internal"],
        description: "a path was cut at a space",
        help: "write the program itself as the command, such as `npx` or the whole path, without `cmd /c` and quotes",
    },
    StderrSign {
        patterns: &["' is not recognized as an internal or external command"],
        description: "a program that it starts is not on its PATH",
        help: "install that program, or write its full path as the command; without `cmd /c` the error is more precise",
    },
    StderrSign {
        patterns: &["UnicodeEncodeError", "UnicodeDecodeError"],
        description: "it fails on text in another encoding",
        help: "make it use UTF-8: for Python, set PYTHONUTF8=1 in its `env`",
    },
    StderrSign {
        patterns: &["heap out of memory", "MemoryError", "Cannot allocate memory"],
        description: "it ran out of memory",
        help: "give it more memory, or less to do",
    },
    StderrSign {
        patterns: &["ENOSPC", "No space left on device"],
        description: "the disk is full, or the limit of watched files is reached",
        help: "free space on the disk; if the server watches files, raise fs.inotify.max_user_watches",
    },
    // Only a warning of npm, so a failure of another kind comes first.
    StderrSign {
        patterns: &["EBADENGINE"],
        description: "its package needs another Node.js",
        help: "install the Node.js that the warning requires, and write its full path in `command`, or its folder \
            first in `PATH` of `env`",
    },
    StderrSign {
        patterns: &["EACCES", "Permission denied", "permission denied"],
        description: "it lacks a permission that it needs",
        help: "check which file its last lines name, and give this user access to it",
    },
];

impl Evidence {
    /// The description of the known failure and the exception on standard error, as far as there are any.
    pub(crate) fn summary(&self) -> Option<String> {
        let known = find_sign(self).map(|sign| sign.description);
        match (known, find_headline(&self.stderr)) {
            (Some(known), Some(exception)) => Some(format!("{known} ({exception})")),
            (known, exception) => exception.or_else(|| known.map(str::to_owned)),
        }
    }
}

/// Finds the sign of a known failure in the evidence.
pub(crate) fn find_sign(evidence: &Evidence) -> Option<StderrSign> {
    if let Some(sign) = find_exit_sign(evidence) {
        return Some(StderrSign { patterns: &[], description: sign.description, help: sign.help });
    }
    let is_match = |sign: &&StderrSign| {
        // A syntax error in a JSON document looks like one in a script.
        let lines = || evidence.stderr.iter().filter(|line| !line.ends_with("is not valid JSON"));
        sign.patterns.iter().any(|pattern| lines().any(|line| line.contains(pattern)))
    };
    // Only a process has a standard output. If there is standard error too, it explains the failure better.
    let is_noise = evidence.noise_bytes > 0 && evidence.pid.is_some() && evidence.stderr.is_empty();
    SIGNS.iter().find(is_match).copied().or(is_noise.then_some(NOISE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stderr: &[&str], want: Option<&str>) {
        let stderr = stderr.iter().map(|it| (*it).to_owned()).collect();
        let evidence = Evidence { stderr, ..Evidence::default() };
        assert_eq!(find_sign(&evidence).map(|it| it.description), want);
    }

    #[test]
    fn hd_sc3_failures_are_recognized_in_standard_error() {
        let in_use = Some("the port that it listens on is already in use");
        check(&["node:events:502", "Error: listen EADDRINUSE: address already in use :::3000"], in_use);
        check(&["OSError: [Errno 98] Address already in use"], in_use);
        check(&["Error: Address already in use (os error 98)"], in_use);
        let package = Some("the package registry does not have this package, or not this version");
        check(&["npm error code E404", "npm error 404 Not Found - GET https://registry.example/x"], package);
        check(&["  × No solution found when resolving tool dependencies:"], package);
        check(
            &["  ╰─▶ Because x was not found in the package registry and you require x, we can conclude"],
            package,
        );
        check(
            &["npm error could not determine executable to run"],
            Some("the package has no program with that name"),
        );
        check(
            &["docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock."],
            Some("the Docker daemon cannot be reached"),
        );
        check(
            &["Error: Cannot find module '/srv/index.js'", "  code: 'MODULE_NOT_FOUND',"],
            Some("its script does not exist"),
        );
        let package = Some("a file or package that it needs is missing");
        check(&["Error: Cannot find module 'express'"], package);
        check(
            &["Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/srv/a' imported from /srv/b.js"],
            package,
        );
        check(
            &["python: can't open file '/srv/a.py': [Errno 2] No such file or directory"],
            Some("its script does not exist"),
        );
        check(
            &["/usr/bin/python3: No module named mcp_server_x"],
            Some("this Python does not have the module that `-m` names"),
        );
        check(
            &["ModuleNotFoundError: No module named 'x'"],
            Some("a Python module that it needs is missing"),
        );
        check(
            &["/usr/bin/env: \u{2018}node\u{2019}: No such file or directory"],
            Some("a program that its script starts is not on its PATH"),
        );
        let node = Some("its Node.js is too old");
        check(&["const a = b ?? c;", "SyntaxError: Unexpected token '?'", "Node.js v12.22.9"], node);
        check(&["SyntaxError: Unexpected token '?', \"???\" is not valid JSON", "    at JSON.parse"], None);
        check(&["Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite"], node);
        check(
            &["npm warn EBADENGINE Unsupported engine {", "npm error code E404"],
            Some("the package registry does not have this package, or not this version"),
        );
        check(&["npm warn EBADENGINE Unsupported engine {"], Some("its package needs another Node.js"));
        let check_windows = |line: &str, want: &str| check(&[line], Some(want)); // RPT-341
        check_windows(
            "Start.ps1 kann nicht geladen werden, siehe about_Execution_Policies (https://go.microsoft.com/fwlink/)",
            "PowerShell does not run scripts on this machine",
        );
        check_windows(
            "<3>WSL (9 - Relay) ERROR: CreateProcessCommon:800: execvpe(npx) failed: No such file or directory",
            "the Linux of WSL does not have this program or folder",
        );
        check_windows(
            "'C:\\Program' is not recognized as an internal or external command,",
            "a path was cut at a space",
        );
        check_windows(
            "'npx' is not recognized as an internal or external command,",
            "a program that it starts is not on its PATH",
        );
        check(&["the permission to speak was refused", "no licence"], None);
        check(&[], None);
    }

    #[test]
    fn noise_is_a_sign_without_standard_error() {
        let noisy = Evidence { noise_bytes: 7, pid: Some(1), ..Evidence::default() };
        assert_eq!(find_sign(&noisy), Some(NOISE));
        let stderr = vec!["listen EADDRINUSE".to_owned()];
        assert_ne!(find_sign(&Evidence { stderr, ..noisy.clone() }), Some(NOISE));
        let stderr = vec!["no licence".to_owned()];
        assert_eq!(find_sign(&Evidence { stderr, ..noisy.clone() }), None);
        assert_eq!(find_sign(&Evidence { pid: None, ..noisy }), None);
    }
}
