//! Why a sandbox could not be applied to a server, which is not started then.

/// Why a server was not started in its sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This operating system has no such sandbox.
    #[error("this system has no sandbox for processes")]
    NoSystem,
    /// Landlock is missing in the kernel, too old, or switched off. Contains which.
    #[error("the kernel cannot apply its sandbox: {0}")]
    NoLandlock(String),
    /// The kernel refused a part of the sandbox.
    #[error("its sandbox could not be applied: {0}")]
    Refused(String),
    /// A folder with a forbidden file has too many entries to allow the others one by one.
    #[error("its sandbox forbids a part of {0}, which has too many entries to allow the others")]
    TooManyEntries(String),
    /// The program lies outside of the sandbox.
    #[error("its sandbox ({sandbox}) does not let it run {program}")]
    ProgramOutside {
        /// The path of the program.
        program: String,
        /// The sandbox as text.
        sandbox: String,
    },
}

impl SandboxError {
    /// What the user can try.
    pub fn help(&self) -> &'static str {
        match self {
            SandboxError::NoSystem => {
                "only Linux has one here: write `sandbox: off` to start the server without, or start it in a container"
            }
            SandboxError::NoLandlock(_) => {
                "it needs Linux 6.7 or later with `landlock` in `/sys/kernel/security/lsm`; `sandbox: off` starts the \
                server without"
            }
            SandboxError::Refused(_) => "correct the key `sandbox`; `sandbox: off` starts the server without",
            SandboxError::TooManyEntries(_) => {
                "allow smaller folders, or remove the rule that forbids a part of this one"
            }
            SandboxError::ProgramOutside { .. } => "add the folder of the program to `read` of its `sandbox`",
        }
    }
}
