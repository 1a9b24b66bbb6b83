//! The installed suite, and the SDK's server that is installed with it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::suites::test_run::install;
use crate::tree;

use super::list::{self, Face, Scenarios};

/// The suite, with a Node of its own.
pub(super) struct Suite {
    modules: PathBuf,
    results: PathBuf,
}

impl Suite {
    /// The suite, installed if it was not.
    pub(super) fn installed() -> Result<Suite, Error> {
        let results = tree::root().join("target/conformance-results");
        Ok(Suite { modules: install::conformance_suite()?, results })
    }

    /// Its Node.
    fn node(&self) -> Command {
        Command::new(self.modules.join(if cfg!(windows) { ".bin/node.cmd" } else { ".bin/node" }))
    }

    fn command(&self) -> Command {
        let mut res = self.node();
        res.arg(self.modules.join("@modelcontextprotocol/conformance/dist/index.js")).stdin(Stdio::null());
        res
    }

    /// The server that has everything that the suite asks a server for.
    pub(super) fn everything(&self) -> Command {
        let mut res = self.node();
        res.arg(tree::root().join("tests/conformance/everything.mjs"));
        res.env(install::CONFORMANCE, &self.modules);
        res
    }

    /// What a revision requires of a face.
    pub(super) fn required(&self, revision: &str, face: Face) -> Result<Scenarios, Error> {
        let output = self.command().args(["list", "--requirements", revision]).output();
        let output = output.map_err(|it| Error::message(format!("could not start the suite: {it}")))?;
        if !output.status.success() {
            return Err(Error::message(format!("the suite has no requirements for {revision}")));
        }
        Ok(list::read(&String::from_utf8_lossy(&output.stdout), face))
    }

    /// An empty folder for what a run finds.
    pub(super) fn fresh(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.results.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|it| Error::message(format!("{}: {it}", folder.display())))?;
        }
        fs::create_dir_all(&folder).map_err(|it| Error::message(format!("{}: {it}", folder.display())))?;
        Ok(folder)
    }

    /// Runs all scenarios of a revision for a face; `who` is the option that says who is judged, and its value.
    pub(super) fn run(
        &self,
        face: Face,
        revision: &str,
        who: [&OsStr; 2],
        folder: &Path,
    ) -> Result<(), Error> {
        let log = |name: &str| {
            let path = folder.join(name);
            fs::File::create(&path).map_err(|it| Error::message(format!("{}: {it}", path.display())))
        };
        let mut command = self.command();
        command.args([face.word(), "--requirements", revision]).args(who).arg("-o").arg(folder);
        command.stdout(log("suite.stdout.txt")?).stderr(log("suite.stderr.txt")?);
        command.status().map_err(|it| Error::message(format!("could not start the suite: {it}")))?;
        Ok(())
    }
}
