//! Faults of the machine: resources that are exhausted or forbidden, and clock changes.

/// A fault and the affected operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineRow {
    /// The fault.
    pub fault: &'static str,
    /// The affected operation.
    pub place: &'static str,
    /// The expected outcome.
    pub want: &'static str,
}

/// The disk is full.
pub const FULL: &str = "the disk is full";
/// A folder cannot be created.
pub const NO_FOLDER: &str = "the folder cannot be made";
/// One file descriptor is left.
pub const ONE_DESCRIPTOR: &str = "one descriptor is left";
/// No file descriptor is left.
pub const NO_DESCRIPTOR: &str = "no descriptor is left";
/// The process has a low limit of file descriptors.
pub const FEW_DESCRIPTORS: &str = "the process may open few files";
/// The wall clock jumps forward by ten years.
pub const FORWARD: &str = "the clock jumps ten years ahead";
/// The wall clock jumps back.
pub const BACK: &str = "the clock jumps twenty years back";

/// Writing a large result.
pub const RESULTS: &str = "a large result's file";
/// Storing a login.
pub const LOGINS: &str = "a login's file";
/// Writing a receipt.
pub const RECEIPTS: &str = "a process's receipt";
/// Calls and running servers.
pub const RUNNING: &str = "a host with servers that run";
/// The order of two logins.
pub const LATEST: &str = "the later one of two logins";
/// Starting another server, on any transport.
pub const STARTING: &str = "starting a server, on each transport";
/// Starting another process.
pub const STARTING_PROCESS: &str = "starting a process";

/// The program `mcp-host` with its servers and files.
pub const PROGRAM: &str = "the program `mcp-host`";

/// All machine faults.
pub fn machine() -> Vec<MachineRow> {
    let row = |fault, place, want| MachineRow { fault, place, want };
    vec![
        row(FULL, RESULTS, "the result is truncated with a note; no partial file is left"),
        row(
            FULL,
            LOGINS,
            "an error that names the file; the previous login is unchanged; no partial file is left",
        ),
        row(FULL, RECEIPTS, "the server starts without a receipt; no partial file is left"),
        row(FULL, PROGRAM, "calls work; an error names each file that cannot be written, which is unchanged"),
        row(NO_FOLDER, RESULTS, "the result is truncated with a note; no partial file is left"),
        row(NO_FOLDER, LOGINS, "an error that names the file"),
        row(NO_FOLDER, RECEIPTS, "the server starts without a receipt; no partial file is left"),
        row(ONE_DESCRIPTOR, RUNNING, "it responds"),
        row(ONE_DESCRIPTOR, STARTING_PROCESS, "MCPConnectionError"),
        row(NO_DESCRIPTOR, RUNNING, "it responds"),
        row(NO_DESCRIPTOR, STARTING, "MCPConnectionError; it is restarted when descriptors are free"),
        row(
            FEW_DESCRIPTORS,
            PROGRAM,
            "those servers are ready that can be started; each of the others gives the reason",
        ),
        row(FORWARD, RUNNING, "it responds and is not restarted"),
        row(BACK, RUNNING, "it responds and is not restarted"),
        row(FORWARD, LATEST, "the one that was stored last"),
        row(BACK, LATEST, "the one that was stored last"),
    ]
}
