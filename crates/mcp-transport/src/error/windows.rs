//! Failures of Windows, by their numbers and by the form of a command.
//!
//! Pure, and the same on all systems, so that it is tested on all. No text of an error is read: Windows translates it.

use std::fmt;

use crate::error::evidence::{Evidence, ProcessExit};

/// Why Windows refused to start a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowsRefusal {
    /// A virus scanner blocked or removed the file.
    VirusScanner,
    /// A policy of the machine does not allow the file.
    Policy,
    /// The program must be started by an administrator.
    NeedsAdministrator,
    /// The file is no program, or one for another processor.
    WrongFormat,
    /// The command line or the path is too long.
    TooLong,
    /// The link belongs to an app of the Microsoft Store that is not installed, or not for this user.
    StoreLink,
    /// An argument cannot be passed to a batch file safely.
    BatchArguments,
}

impl WindowsRefusal {
    /// The refusal with this error number of Windows.
    pub fn from_error_number(number: i32) -> Option<WindowsRefusal> {
        Some(match number {
            // ERROR_VIRUS_INFECTED, ERROR_VIRUS_DELETED
            225 | 226 => WindowsRefusal::VirusScanner,
            // ERROR_INVALID_IMAGE_HASH, ERROR_ACCESS_DISABLED_BY_POLICY, ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION
            577 | 1260 | 4551 => WindowsRefusal::Policy,
            // ERROR_ELEVATION_REQUIRED
            740 => WindowsRefusal::NeedsAdministrator,
            // ERROR_BAD_EXE_FORMAT, ERROR_EXE_MACHINE_TYPE_MISMATCH
            193 | 216 => WindowsRefusal::WrongFormat,
            // ERROR_FILENAME_EXCED_RANGE
            206 => WindowsRefusal::TooLong,
            // ERROR_CANT_ACCESS_FILE
            1920 => WindowsRefusal::StoreLink,
            _ => return None,
        })
    }

    /// What the user can try.
    pub(crate) fn help(self) -> &'static str {
        match self {
            WindowsRefusal::VirusScanner => {
                "if you trust the file, allow it in the virus scanner (Windows Security, Protection history), and \
                install it again"
            }
            WindowsRefusal::Policy => {
                "ask the administrator to allow this file (AppLocker, App Control, Smart App Control), or install it \
                in a folder from which programs may be started"
            }
            WindowsRefusal::NeedsAdministrator => {
                "use a server that needs no administrator, or start this program as administrator"
            }
            WindowsRefusal::WrongFormat => {
                "install the program for the processor of this machine; write the interpreter of a script as the \
                command and the script as its argument"
            }
            WindowsRefusal::TooLong => {
                "shorten the arguments or the path: move the server into a shorter folder"
            }
            WindowsRefusal::StoreLink => {
                "install the app from the Microsoft Store for this user, or write the full path of another program"
            }
            WindowsRefusal::BatchArguments => {
                "remove line breaks and quotes from the arguments, or write the program that the batch file starts as \
                the command, such as `node` with the script"
            }
        }
    }
}

impl fmt::Display for WindowsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowsRefusal::VirusScanner => "a virus scanner blocks the program",
            WindowsRefusal::Policy => "a policy of this machine does not allow the program",
            WindowsRefusal::NeedsAdministrator => "the program must be started by an administrator",
            WindowsRefusal::WrongFormat => "the file is not a program for this machine",
            WindowsRefusal::TooLong => "the command line or the path is too long",
            WindowsRefusal::StoreLink => {
                "the app of the Microsoft Store that this link belongs to is not installed"
            }
            WindowsRefusal::BatchArguments => "an argument cannot be passed to a batch file safely",
        })
    }
}

/// A failure that the exit status of a process names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitSign {
    status: u32,
    /// The failure, as the beginning of a sentence about the server.
    pub(crate) description: &'static str,
    /// What to do.
    pub(crate) help: &'static str,
}

/// The statuses that only Windows has: on other systems they are below 256.
const EXIT_SIGNS: [ExitSign; 5] = [
    // MSG_DIR_BAD_COMMAND_OR_FILE, of cmd.exe and of the links to the Store that Windows has in place of Python.
    ExitSign {
        status: 9009,
        description: "a program that it needs is not installed",
        help: "if the command is `python`, it is a link of Windows to the Microsoft Store: install Python from \
            python.org, or write `py`, and switch the link off (Settings, Apps, App execution aliases); otherwise \
            install the program that the batch file starts",
    },
    // STATUS_DLL_NOT_FOUND
    ExitSign {
        status: 0xC000_0135,
        description: "a DLL that it needs is missing",
        help: "install what the program requires, such as the Visual C++ Redistributable of Microsoft",
    },
    // STATUS_INVALID_IMAGE_FORMAT
    ExitSign {
        status: 0xC000_007B,
        description: "a DLL that it needs is for another processor",
        help: "install the program, and what it requires, for the same processor (64 bits)",
    },
    // STATUS_ACCESS_VIOLATION
    ExitSign {
        status: 0xC000_0005,
        description: "it crashed with an access violation",
        help: "update the server; a crash is a bug of the server, or of a program that changes others, such as a virus \
            scanner",
    },
    // STATUS_CONTROL_C_EXIT
    ExitSign {
        status: 0xC000_013A,
        description: "it was ended with Ctrl-C, or its console was closed",
        help: "start it again",
    },
];

/// Finds the failure that the exit status names.
pub(crate) fn find_exit_sign(evidence: &Evidence) -> Option<ExitSign> {
    let Some(ProcessExit::Status(status)) = evidence.exit else { return None };
    EXIT_SIGNS.into_iter().find(|sign| sign.status == status.cast_unsigned())
}

/// Whether the path is one of Unix: of WSL, or copied from another machine.
pub(crate) fn is_unix_path(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//")
}

/// The path on Windows of a file that WSL has under `/mnt`.
fn mounted_path(path: &str) -> Option<String> {
    let (drive, rest) = path.strip_prefix("/mnt/")?.split_once('/').unwrap_or((&path[5..], ""));
    let is_drive = drive.len() == 1 && drive.chars().all(|it| it.is_ascii_alphabetic());
    is_drive.then(|| format!("{}:\\{}", drive.to_ascii_uppercase(), rest.replace('/', "\\")))
}

/// Help for a working directory that does not exist on Windows.
pub(crate) fn missing_directory_help(directory: &str) -> String {
    match (mounted_path(directory), is_unix_path(directory)) {
        (Some(path), _) => format!("this is a path of WSL: write {path} in `cwd`"),
        (None, true) => "this is a path of Linux: write one of Windows in `cwd`".to_owned(),
        (None, false) => "create the directory, or correct `cwd`".to_owned(),
    }
}

/// Help for a command that was not found on Windows.
pub(crate) fn missing_command_help(command: &str) -> String {
    const OLD_PATH: &str =
        "a program that was started before an installation has the old PATH: start it again";
    if let Some(path) = mounted_path(command) {
        return format!("this is a path of WSL: write {path}");
    }
    if is_unix_path(command) {
        return "this is a path of Linux: for a program in WSL write `wsl` as the command, and this path as its first \
                argument"
            .to_owned();
    }
    if command.contains('"') {
        return "remove the quotes: the command is one value, which may have spaces".to_owned();
    }
    if command.contains('%') || command.starts_with("$env:") {
        return "variables are not replaced in this form: write the whole path".to_owned();
    }
    if command.starts_with('~') {
        return "`~` is not replaced here: write the path of the folder".to_owned();
    }
    let lower = command.to_ascii_lowercase().replace('/', "\\");
    if lower.ends_with("\\program") {
        return "the path was cut at a space: write the whole path (`C:\\Program Files\\…`) in `command`, without \
                quotes"
            .to_owned();
    }
    if lower.contains('\\') {
        return "correct the path, or install the program".to_owned();
    }
    let install = match lower.trim_end_matches(".exe").trim_end_matches(".cmd") {
        "npx" | "npm" | "node" => "install Node.js, which includes it",
        "bunx" | "bun" => "install Bun, which includes it",
        "deno" => "install Deno",
        "uvx" | "uv" => "install uv, which includes it",
        "python3" => "write `python` or `py`, which Windows has instead",
        "python" | "py" | "pip" | "pipx" => "install Python from python.org",
        "docker" => "install Docker Desktop",
        "podman" => "install Podman",
        "dotnet" => "install .NET",
        "sh" | "bash" | "zsh" => {
            return "this is a shell of Unix: write the program itself as the command, or `wsl` with the shell as its \
                    first argument"
                .to_owned();
        }
        _ => "install it",
    };
    format!("{install}, or write its full path; {OLD_PATH}")
}

/// Help for a file that Windows does not start by itself.
pub(crate) fn not_executable_help(path: &str) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "ps1" => {
            "write `powershell` as the command, and `-NoProfile`, `-ExecutionPolicy`, `Bypass`, `-File` and the file \
            as its first arguments"
        }
        "py" | "pyw" => "write `python` as the command and the file as its first argument",
        "js" | "mjs" | "cjs" => "write `node` as the command and the file as its first argument",
        "sh" => {
            "write `bash` of Git for Windows, or `wsl`, as the command and the file as its first argument"
        }
        "jar" => "write `java` as the command, and `-jar` and the file as its first arguments",
        _ => {
            "Windows starts `.exe`, `.com`, `.bat` and `.cmd` files only: write the interpreter of another file as \
            the command and the file as its argument"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RPT-341
    #[test]
    fn rpt_341_error_number_of_windows_names_the_refusal() {
        let check = |number: i32, want: Option<WindowsRefusal>| {
            assert_eq!(WindowsRefusal::from_error_number(number), want, "{number}");
        };
        check(225, Some(WindowsRefusal::VirusScanner));
        check(1260, Some(WindowsRefusal::Policy));
        check(4551, Some(WindowsRefusal::Policy));
        check(740, Some(WindowsRefusal::NeedsAdministrator));
        check(193, Some(WindowsRefusal::WrongFormat));
        check(206, Some(WindowsRefusal::TooLong));
        check(1920, Some(WindowsRefusal::StoreLink));
        check(2, None);
        check(5, None);
    }

    /// RPT-341
    #[test]
    fn rpt_341_exit_status_of_windows_names_the_failure() {
        let check = |exit: ProcessExit, want: Option<&str>| {
            let evidence = Evidence { exit: Some(exit), ..Evidence::default() };
            assert_eq!(find_exit_sign(&evidence).map(|it| it.description), want, "{exit}");
        };
        check(ProcessExit::Status(9009), Some("a program that it needs is not installed"));
        check(ProcessExit::Status(-1_073_741_515), Some("a DLL that it needs is missing"));
        check(ProcessExit::Status(-1_073_741_819), Some("it crashed with an access violation"));
        check(ProcessExit::Status(1), None);
        check(ProcessExit::Signal { number: 9, name: None }, None);
        assert_eq!(ProcessExit::Status(-1_073_741_515).to_string(), "exit status 0xC0000135");
    }

    /// RPT-341
    #[test]
    fn rpt_341_help_fits_commands_of_windows() {
        let check = |command: &str, want: &str| {
            let help = missing_command_help(command);
            assert!(help.starts_with(want), "{command}: {help}");
        };
        check("npx", "install Node.js");
        check("npx.cmd", "install Node.js");
        check("python3", "write `python` or `py`");
        check("/usr/local/bin/node", "this is a path of Linux: for a program in WSL write `wsl`");
        check("/mnt/c/tools/srv.exe", "this is a path of WSL: write C:\\tools\\srv.exe");
        check("\"C:\\Program Files\\nodejs\\node.exe\"", "remove the quotes");
        check("C:\\Program", "the path was cut at a space");
        check("C:/Program", "the path was cut at a space");
        check("%APPDATA%\\npm\\srv.cmd", "variables are not replaced in this form");
        check("$env:APPDATA\\npm\\srv.cmd", "variables are not replaced in this form");
        check("C:\\tools\\srv.exe", "correct the path");
        check("bash", "this is a shell of Unix");
        check("srv", "install it, or write its full path; a program that was started before");
        assert_eq!(missing_directory_help("/mnt/d/a b"), "this is a path of WSL: write D:\\a b in `cwd`");
        assert_eq!(missing_directory_help("/mnt/d"), "this is a path of WSL: write D:\\ in `cwd`");
        assert!(missing_directory_help("/home/me").starts_with("this is a path of Linux"));
        assert!(missing_directory_help("D:\\x").starts_with("create the directory"));
        assert!(not_executable_help("C:\\a\\Start.PS1").starts_with("write `powershell`"));
        assert!(not_executable_help("C:\\a\\server.py").starts_with("write `python`"));
        assert!(not_executable_help("C:\\a\\server").starts_with("Windows starts"));
    }
}
