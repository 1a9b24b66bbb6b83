//! The installed suite and the test server on the SDK that is installed with it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::suites::test_run::install;
use crate::tree;

use super::requirements::{self, Scenarios, Side};

/// The suite, with its own Node.
pub(super) struct Suite {
    modules: PathBuf,
    results: PathBuf,
}

impl Suite {
    /// Installs the suite if necessary.
    pub(super) fn install() -> Result<Suite, Error> {
        let results = tree::root().join("target/conformance-results");
        Ok(Suite { modules: install::install_conformance_suite()?, results })
    }

    /// The command of the installed Node.
    fn node_command(&self) -> Command {
        Command::new(self.modules.join(if cfg!(windows) { ".bin/node.cmd" } else { ".bin/node" }))
    }

    /// The command of the suite.
    fn suite_command(&self) -> Command {
        let mut res = self.node_command();
        res.arg(self.modules.join("@modelcontextprotocol/conformance/dist/index.js")).stdin(Stdio::null());
        res
    }

    /// A server with everything that the suite tests in a server.
    pub(super) fn everything_server(&self) -> Command {
        let mut res = self.node_command();
        res.arg(tree::root().join("tests/conformance/everything.mjs"));
        res.env(install::CONFORMANCE_VARIABLE, &self.modules);
        res
    }

    /// The scenarios of a revision for one side.
    pub(super) fn required_scenarios(&self, revision: &str, side: Side) -> Result<Scenarios, Error> {
        let output = self.suite_command().args(["list", "--requirements", revision]).output();
        let output = output.map_err(|error| Error::message(format!("could not start the suite: {error}")))?;
        if !output.status.success() {
            return Err(Error::message(format!("the suite has no requirements for {revision}")));
        }
        Ok(requirements::parse_requirements(&String::from_utf8_lossy(&output.stdout), side))
    }

    /// Creates an empty folder for the results of a run.
    pub(super) fn create_results_folder(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.results.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|error| Error::message(format!("{}: {error}", folder.display())))?;
        }
        fs::create_dir_all(&folder)
            .map_err(|error| Error::message(format!("{}: {error}", folder.display())))?;
        Ok(folder)
    }

    /// Runs all scenarios of a revision. `subject` is the option that selects the program under test, and its value.
    pub(super) fn run(
        &self,
        side: Side,
        revision: &str,
        subject: [&OsStr; 2],
        folder: &Path,
    ) -> Result<(), Error> {
        let log = |name: &str| {
            let path = folder.join(name);
            fs::File::create(&path).map_err(|error| Error::message(format!("{}: {error}", path.display())))
        };
        let mut command = self.suite_command();
        command.args([side.name(), "--requirements", revision]).args(subject).arg("-o").arg(folder);
        command.stdout(log("suite.stdout.txt")?).stderr(log("suite.stderr.txt")?);
        command.status().map_err(|error| Error::message(format!("could not start the suite: {error}")))?;
        Ok(())
    }
}
