//! What there is at the place of a session's folder (ACPX-02). mcp-acp looks at no disk; this does.

use std::fs;
use std::io::ErrorKind;

use mcp_acp::Folder;

/// Looks at a folder, for [`mcp_acp::Agent::folder`]. Reads its list, and nothing that is in it.
pub fn folder(path: &str) -> Folder {
    let refused = |kind: ErrorKind| match kind {
        ErrorKind::NotFound => Folder::Missing,
        ErrorKind::NotADirectory => Folder::NotAFolder,
        _ => Folder::Forbidden,
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Folder::NotAFolder,
        Ok(_) => fs::read_dir(path).map_or_else(|error| refused(error.kind()), |_| Folder::Usable),
        Err(error) => refused(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acpx_02_what_is_no_folder_is_none() {
        let temporary = tempfile::tempdir().unwrap();
        let check = |path: &str, want| assert_eq!(folder(path), want, "{path}");
        let path = temporary.path().to_str().unwrap();
        check(path, Folder::Usable);
        check(&format!("{path}/none"), Folder::Missing);
        fs::write(temporary.path().join("file"), "").unwrap();
        check(&format!("{path}/file"), Folder::NotAFolder);
        check(&format!("{path}/file/below"), Folder::NotAFolder);
        check("/a\0b", Folder::Forbidden);
    }
}
