//! The private file that leads to the start page of a login.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use url::Url;

/// How the start page of a login is opened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StartPageLinks<'a> {
    /// A private file that leads to the start page. Its path may be an argument of a program.
    pub file: &'a Path,
    /// The secret address of the start page, for the user only: other users of the machine can see the arguments of
    /// programs.
    pub address: &'a Url,
    /// The login page, to which the start page leads. Its host must be shown.
    pub login_page: &'a Url,
}

/// Creates a page that only the user can read, and that leads to the address.
pub(crate) fn create_private_page(folder: &Path, address: &Url) -> io::Result<NamedTempFile> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let mut file = tempfile::Builder::new().prefix("login-").suffix(".html").tempfile_in(folder)?;
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>mcp-host</title>\
         <meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><a href=\"{address}\">Log in</a>"
    )?;
    file.flush()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::{LoopbackRedirect, UserAgent as _};

    // RPT-231
    #[tokio::test]
    async fn start_page_is_opened_by_a_private_file() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pages");
        let (sender, mut opened) = mpsc::unbounded_channel();
        let user = LoopbackRedirect::with_start_page(&folder, move |links| {
            sender.send((links.file.to_owned(), links.address.clone())).unwrap();
        });
        let login = user.start_login().await.unwrap();
        let page = Url::parse("https://login.example/?state=s1").unwrap();
        let authorizing = tokio::spawn(login.authorize(page));
        let (file, address) = opened.recv().await.unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
        assert!(std::fs::read_to_string(&file).unwrap().contains(&format!("url={address}\"")));
        assert!(!file.to_string_lossy().contains(address.path().rsplit('/').next().unwrap()));
        authorizing.abort();
        assert!(authorizing.await.unwrap_err().is_cancelled());
        assert!(!file.exists());
    }
}
