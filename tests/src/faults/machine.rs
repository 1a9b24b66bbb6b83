//! Faults of the machine that we run on: what is full, forbidden, used up, or not what it was.

/// One of them at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineRow {
    /// The fault.
    pub fault: &'static str,
    /// Where it strikes.
    pub place: &'static str,
    /// What comes of it.
    pub want: &'static str,
}

/// The disk is full.
pub const FULL: &str = "the disk is full";
/// Where a folder would have to be, none can be made.
pub const NO_FOLDER: &str = "the folder cannot be made";
/// One descriptor is left to the process.
pub const ONE_DESCRIPTOR: &str = "one descriptor is left";
/// None is.
pub const NO_DESCRIPTOR: &str = "no descriptor is left";
/// The process may open few files, from its beginning on.
pub const FEW_DESCRIPTORS: &str = "the process may open few files";
/// The wall's clock is put forward by ten years.
pub const FORWARD: &str = "the clock jumps ten years ahead";
/// It is put back.
pub const BACK: &str = "the clock jumps twenty years back";

/// A result that has no room.
pub const RESULTS: &str = "a large result's file";
/// A login.
pub const LOGINS: &str = "a login's file";
/// What says whose a process is.
pub const RECEIPTS: &str = "a process's receipt";
/// Calls and servers that run.
pub const RUNNING: &str = "a host with servers that run";
/// Which of two logins is the later one.
pub const LATEST: &str = "the later one of two logins";
/// What starts another server, on any wire.
pub const STARTING: &str = "starting a server, on each wire";
/// What starts another process.
pub const STARTING_PROCESS: &str = "starting a process";

/// The program `mcp-host`, with what it runs and what it writes.
pub const PROGRAM: &str = "the program `mcp-host`";

/// All of them.
pub fn machine() -> Vec<MachineRow> {
    let row = |fault, place, want| MachineRow { fault, place, want };
    vec![
        row(FULL, RESULTS, "the result comes cut, and says so; no part of a file is left"),
        row(
            FULL,
            LOGINS,
            "an error that names the file; the login before it is there; no part of a file is left",
        ),
        row(FULL, RECEIPTS, "the server starts without; no part of a file is left"),
        row(
            FULL,
            PROGRAM,
            "calls are answered; what cannot be written is told with its name, and is as it was",
        ),
        row(NO_FOLDER, RESULTS, "the result comes cut, and says so; no part of a file is left"),
        row(NO_FOLDER, LOGINS, "an error that names the file"),
        row(NO_FOLDER, RECEIPTS, "the server starts without; no part of a file is left"),
        row(ONE_DESCRIPTOR, RUNNING, "it answers"),
        row(ONE_DESCRIPTOR, STARTING_PROCESS, "MCPConnectionError"),
        row(NO_DESCRIPTOR, RUNNING, "it answers"),
        row(NO_DESCRIPTOR, STARTING, "MCPConnectionError; it is started again when there are more"),
        row(
            FEW_DESCRIPTORS,
            PROGRAM,
            "those servers are ready that can be started; each of the others says why not",
        ),
        row(FORWARD, RUNNING, "it answers, and is not started again"),
        row(BACK, RUNNING, "it answers, and is not started again"),
        row(FORWARD, LATEST, "the one that was kept last"),
        row(BACK, LATEST, "the one that was kept last"),
    ]
}
