//! `resources --read`: prints a resource, or writes it to a file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_host_model::{ResourceContent, ResourceResult, ServerId};
use mcp_host_runtime::{Host, RequestOptions};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::args::{Format, ServerArgs};
use crate::config::context::Context;
use crate::host::{open_servers, report_with_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, json, sanitize};
use crate::render::call_result::resource_text;
use crate::render::status::failure_with_servers;
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::Signals;

/// The file for a resource.
#[derive(Debug, Clone)]
pub(crate) struct SaveTarget {
    pub(crate) path: PathBuf,
    /// Whether an existing file is replaced.
    pub(crate) overwrite: bool,
}

/// Starts the servers and reads one resource.
pub(crate) async fn run(
    context: &Context,
    servers: &ServerArgs,
    uri: &str,
    target: Option<SaveTarget>,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    if let Some(SaveTarget { path, overwrite: false }) = target.clone()
        && run_blocking(move || fs::symlink_metadata(path).is_ok()).await
    {
        return Err(file_exists_failure(&target.expect("it was checked").path));
    }
    let ServerArgs { file, server, target: _ } = servers;
    let (desired, approval) = open_servers(context, file.as_deref(), server.as_deref(), signals).await?;
    let exit = report_with_servers(context, desired, approval, signals, async |host| {
        read_resource(context, host, servers, uri, target).await
    });
    Ok(exit.await)
}

/// Reads the resource, and writes it to the target or reports its text.
async fn read_resource(
    context: &Context,
    host: &Host,
    servers: &ServerArgs,
    uri: &str,
    target: Option<SaveTarget>,
) -> Result<Report, Failure> {
    let server = servers.server.as_deref().and_then(|name| ServerId::parse(name).ok());
    let mut options = RequestOptions::default();
    options.server = server;
    let read = host.read_resource(uri, options).await.map_err(|error| {
        failure_with_servers(Failure::from_request_error(&error), &host.snapshot(), &context.console)
    })?;
    let Some(SaveTarget { path, overwrite }) = target else {
        return Ok(Report::out(match context.format {
            Format::Json => json::document(&read.raw),
            Format::Text => read.contents.iter().map(resource_text).collect(),
        }));
    };
    let content = single_content(&read, uri)?;
    let bytes = content.body.to_bytes();
    let bytes = bytes.map_err(|error| Failure::new(format!("the resource has invalid base64: {error}")))?;
    let (size, target) = (bytes.len(), path.clone());
    let saved = run_blocking(move || save(&bytes, &target, overwrite)).await;
    let shown = path.display().to_string();
    saved.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => file_exists_failure(&path),
        _ => Failure::new(format!("cannot write {shown}: {error}")),
    })?;
    let media_type = content.mime_type.as_deref();
    Ok(Report::out(match context.format {
        Format::Json => json::document(&json!({"path": shown, "mime_type": media_type, "bytes": size})),
        Format::Text => {
            let media_type = media_type.map(|it| format!("{}, ", sanitize::line(it))).unwrap_or_default();
            format!("wrote {} ({media_type}{})\n", sanitize::line(&shown), count(size, "byte"))
        }
    }))
}

/// The only content of a resource, or the only one with its URI: a folder, for example, has several.
fn single_content<'a>(read: &'a ResourceResult, uri: &str) -> Result<&'a ResourceContent, Failure> {
    if let [only] = &*read.contents {
        return Ok(only);
    }
    let mut named = read.contents.iter().filter(|content| content.uri == uri);
    match (named.next(), named.next()) {
        (Some(content), None) => Ok(content),
        _ => {
            let message = format!("the resource has {} contents, so it is not one file", read.contents.len());
            Err(Failure::new(message).help(Some("without `--save`, they are printed")))
        }
    }
}

fn file_exists_failure(path: &Path) -> Failure {
    Failure::new(format!("{} exists", path.display())).help(Some("`--overwrite` replaces it"))
}

/// Writes the file completely or not at all. Blocks.
fn save(bytes: &[u8], path: &Path, overwrite: bool) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    if overwrite {
        file.persist(path)?
    } else {
        file.persist_noclobber(path)?
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use mcp_host_model::RawJson;

    use super::*;

    #[test]
    fn file_is_replaced_only_on_demand() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        save(b"one", &path, false).unwrap();
        assert_eq!(save(b"two", &path, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        save(b"two", &path, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(save(b"", &folder.path().join("no/a"), false).is_err());
        assert!(save(b"", folder.path(), true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn one_content_is_saved() {
        let check = |uris: &[&str], want: Option<usize>| {
            let contents: Vec<_> =
                uris.iter().map(|uri| serde_json::json!({"uri": uri, "text": ""})).collect();
            let raw = RawJson::from_value(&serde_json::json!({"contents": contents})).unwrap();
            let read = mcp_host_model::read_resource_result(&raw).unwrap();
            let found = single_content(&read, "a:1").ok();
            let at = found.map(|found| read.contents.iter().position(|it| std::ptr::eq(it, found)).unwrap());
            assert_eq!(at, want, "{uris:?}");
        };
        check(&["a:1"], Some(0));
        check(&["a:2"], Some(0));
        check(&["a:2", "a:1"], Some(1));
        check(&["a:1", "a:1"], None);
        check(&["a:2", "a:3"], None);
        check(&[], None);
    }
}
