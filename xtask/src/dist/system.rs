//! What other tools write: Debian packages, the bill of materials, and the folder that a container image is built from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::dist::build::BuildSettings;
use crate::dist::target::Program;
use crate::error::Error;
use crate::gates::tool::Tool;
use crate::suites::test_run::install::{copy_file, io_error};
use crate::tree;

const CARGO_DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0" };
const CARGO_CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9" };

/// Where systems keep the certificates of authorities. An image without them reaches no `https` server.
const CERTIFICATES: &[&str] = &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Writes a Debian package for each target that has an architecture there.
///
/// The programs are static, so that the packages depend on nothing.
pub(super) fn write_debian_packages(
    programs: &[Program],
    settings: &BuildSettings,
    output: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let mut res = Vec::new();
    for Program { target, path: _ } in programs {
        let Some(architecture) = target.deb else { continue };
        let file = output.join(format!("mcp-host-{architecture}.deb"));
        let mut command = Command::new(CARGO_DEB.install()?);
        command.current_dir(tree::root()).args(["--package", "mcp-host-cli", "--no-build", "--no-strip"]);
        command.args(["--target", target.triple, "--profile", &settings.profile, "--output"]).arg(&file);
        run_command(command.env("SOURCE_DATE_EPOCH", &settings.commit_time))?;
        res.push(file);
    }
    Ok(res)
}

/// Writes the bill of materials of the program, in CycloneDX's JSON.
///
/// The tool writes one file beside each manifest of a workspace, so it runs in a copy of the tree.
pub(super) fn write_bill_of_materials(
    version: &str,
    settings: &BuildSettings,
    output: &Path,
) -> Result<PathBuf, Error> {
    let copy = output.join("staging/tree");
    let prefix = format!("--prefix={}/", copy.display());
    run_command(Command::new("git").current_dir(tree::root()).args(["checkout-index", "--all", &prefix]))?;
    let mut command = Command::new(CARGO_CYCLONEDX.install()?);
    command.current_dir(&copy).args(["cyclonedx", "--format", "json", "--override-filename", "bom"]);
    command.env("CARGO", cargo().get_program()).env("SOURCE_DATE_EPOCH", &settings.commit_time);
    run_command(&mut command)?;
    let file = output.join(format!("mcp-host-{version}.cdx.json"));
    copy_file(&copy.join("crates/mcp-cli/bom.json"), &file)?;
    fs::remove_dir_all(&copy).map_err(|error| io_error("remove", &copy, error))?;
    Ok(file)
}

/// Writes the folder `container` for each architecture: the static program, certificates, and the Containerfile.
pub(super) fn write_container_folder(programs: &[Program], output: &Path) -> Result<(), Error> {
    let certificates = CERTIFICATES.iter().map(Path::new).find(|path| path.is_file());
    for Program { target, path } in programs {
        let (Some(architecture), Some(certificates)) = (target.deb, certificates) else { continue };
        let folder = output.join("container").join(architecture);
        copy_file(path, &folder.join("mcp-host"))?;
        copy_file(certificates, &folder.join("ca-certificates.crt"))?;
        copy_file(&tree::root().join("packaging/Containerfile"), &folder.join("Containerfile"))?;
    }
    Ok(())
}
