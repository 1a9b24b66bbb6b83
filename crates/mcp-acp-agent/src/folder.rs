//! Checks of a session's folders on the disk (ACPX-02), which mcp-acp does not access.
//!
//! A disk may hang, and a client may name a folder on it. Folders are therefore checked on a bounded number of
//! blocking threads, with a timeout: a hanging check blocks its thread, and no other request.

use std::fs;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::time::Duration;

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, FolderStatus, Policy, SessionRequest, ValidatedRequest, validate,
};
use tokio::sync::Semaphore;

use crate::error::SessionSetupError;

/// The timeout for the folders of one request, including the wait for a thread.
const FOLDER_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits concurrent checks in this process, because its connections share the threads.
static FOLDER_CHECKS: Semaphore = Semaphore::const_new(16);

/// Checks that a folder exists and can be listed, for [`mcp_host_acp::AgentProfile::check_folder`].
pub fn check_folder(path: &str) -> FolderStatus {
    let refused = |kind: ErrorKind| match kind {
        ErrorKind::NotFound => FolderStatus::Missing,
        ErrorKind::NotADirectory => FolderStatus::NotAFolder,
        _ => FolderStatus::Forbidden,
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => FolderStatus::NotAFolder,
        Ok(_) => fs::read_dir(path).map_or_else(|error| refused(error.kind()), |_| FolderStatus::Usable),
        Err(error) => refused(error.kind()),
    }
}

/// Validates a request with folder checks, without blocking the runtime.
///
/// If the check of the folders times out, other errors of the request are still returned.
pub(crate) async fn validate_request(
    request: SessionRequest,
    version: AcpVersion,
    capabilities: Capabilities,
    policy: Policy,
    check_folder: impl Fn(&str) -> FolderStatus + Send + 'static,
) -> Result<ValidatedRequest, SessionSetupError> {
    let checked = {
        let (request, capabilities) = (request.clone(), capabilities.clone());
        async move {
            let permit = FOLDER_CHECKS.acquire().await.expect("the semaphore is never closed");
            let blocking = tokio::task::spawn_blocking(move || {
                // Held until the thread is free, which may be long after the request.
                let _permit = permit;
                let mut agent = AgentProfile::new(version, &capabilities);
                agent.policy = policy;
                agent.check_folder = &check_folder;
                validate(&request, &agent)
            });
            blocking.await
        }
    };
    match tokio::time::timeout(FOLDER_CHECK_TIMEOUT, checked).await {
        Ok(Ok(validated)) => return Ok(validated?),
        Ok(Err(error)) => {
            if let Ok(panic) = error.try_into_panic() {
                resume_unwind(panic);
            }
        }
        Err(_) => {}
    }
    let mut unchecked = AgentProfile::new(version, &capabilities);
    unchecked.policy = policy;
    validate(&request, &unchecked)?;
    Err(SessionSetupError::FolderCheckTimeout { timeout: FOLDER_CHECK_TIMEOUT })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use mcp_host_acp::{SessionMethod, SessionRequestError};
    use mcp_host_model::{RawJson, RpcError};
    use serde_json::json;

    use super::*;

    /// Validates a request whose folders are on a hanging disk.
    async fn validation_error(cwd: &str, servers: serde_json::Value) -> SessionSetupError {
        let params = json!({ "cwd": cwd, "mcpServers": servers });
        let request = SessionRequest::new(SessionMethod::New, RawJson::from_value(&params).unwrap());
        let (release, released) = mpsc::channel::<()>();
        let (start, mut started) = tokio::sync::mpsc::unbounded_channel();
        let hang = move |_: &str| {
            let _ = start.send(());
            let _ = released.recv();
            FolderStatus::Usable
        };
        let validation =
            validate_request(request, AcpVersion::V1, Capabilities::STDIO, Policy::default(), hang);
        let validation = tokio::spawn(validation);
        // The runtime, which has only this thread, is not blocked.
        started.recv().await.unwrap();
        tokio::time::advance(FOLDER_CHECK_TIMEOUT).await;
        let error = validation.await.unwrap().unwrap_err();
        drop(release);
        error
    }

    #[tokio::test(start_paused = true)]
    async fn acpx_02_hanging_disk_fails_only_its_request() {
        let error = validation_error("/hangs", json!([])).await;
        assert_eq!(error, SessionSetupError::FolderCheckTimeout { timeout: FOLDER_CHECK_TIMEOUT });
        let error = serde_json::to_string(&RpcError::from(&error)).unwrap();
        insta::assert_snapshot!(error, @r#"{"code":-32603,"message":"the session's folders could not be checked within 10 s","data":{"afterMs":10000,"suggestion":"check that their disk responds"}}"#);
        // Errors of the text are still returned.
        let error = validation_error("/hangs", json!([7])).await;
        assert!(
            matches!(error, SessionSetupError::Refused(SessionRequestError::InvalidParams(_))),
            "{error}"
        );
    }

    #[test]
    fn acpx_02_folder_status_is_detected() {
        let temporary = tempfile::tempdir().unwrap();
        let check = |path: &str, want| assert_eq!(check_folder(path), want, "{path}");
        let path = temporary.path().to_str().unwrap();
        check(path, FolderStatus::Usable);
        check(&format!("{path}/none"), FolderStatus::Missing);
        fs::write(temporary.path().join("file"), "").unwrap();
        check(&format!("{path}/file"), FolderStatus::NotAFolder);
        check(&format!("{path}/file/below"), FolderStatus::NotAFolder);
        check("/a\0b", FolderStatus::Forbidden);
    }
}
