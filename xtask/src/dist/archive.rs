//! Archives whose bytes depend only on the names, modes and contents of their files.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use zip::DateTime;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::error::Error;
use crate::suites::test_run::install::io_error;

/// The mode of a program.
pub(super) const EXECUTABLE: u32 = 0o755;

/// The mode of every other file.
pub(super) const READABLE: u32 = 0o644;

/// A file of a package.
#[derive(Debug, Clone)]
pub(super) struct PackageFile {
    /// The path in the package, with forward slashes.
    pub(super) name: String,
    /// Where its content is.
    pub(super) source: PathBuf,
    pub(super) mode: u32,
}

/// Writes a `.tar.gz`. Times and owners are zero.
pub(super) fn write_tar_gz(path: &Path, folder: &str, files: &[PackageFile]) -> Result<(), Error> {
    let failed = |error| io_error("write", path, error);
    let output = BufWriter::new(File::create(path).map_err(failed)?);
    let gzip: GzEncoder<_> = GzBuilder::new().mtime(0).write(output, Compression::best());
    let mut archive = tar::Builder::new(gzip);
    for PackageFile { name, source, mode } in files {
        let content = fs::read(source).map_err(|error| io_error("read", source, error))?;
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, format!("{folder}/{name}"), content.as_slice()).map_err(failed)?;
    }
    let gzip = archive.into_inner().map_err(failed)?;
    gzip.finish().and_then(|mut output| output.flush()).map_err(failed)
}

/// Writes a `.zip`. All times are the oldest of the format.
pub(super) fn write_zip(path: &Path, folder: &str, files: &[PackageFile]) -> Result<(), Error> {
    let failed = |error| io_error("write", path, error);
    let output = BufWriter::new(File::create(path).map_err(failed)?);
    let mut archive = ZipWriter::new(output);
    for PackageFile { name, source, mode } in files {
        let content = fs::read(source).map_err(|error| io_error("read", source, error))?;
        let options =
            SimpleFileOptions::default().last_modified_time(DateTime::default()).unix_permissions(*mode);
        archive.start_file(format!("{folder}/{name}"), options).map_err(|error| failed(error.into()))?;
        archive.write_all(&content).map_err(failed)?;
    }
    archive.finish().map_err(|error| failed(error.into()))?.flush().map_err(failed)
}
