//! `logging/setLevel`.

use std::time::Duration;

use mcp_host_model::{LogLevel, RawJson, RpcError, code};
use serde::Deserialize;

use crate::methods::context::RequestContext;

/// How long servers may take to accept a log level.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct SetLevelParams {
    level: String,
}

impl RequestContext<'_> {
    /// Sets the session's log level.
    pub(super) async fn set_log_level(&self) -> Result<RawJson, RpcError> {
        let SetLevelParams { level } = self.request.params.read()?;
        let level: LogLevel = level.parse().map_err(|_| {
            RpcError::new(
                code::INVALID_PARAMS,
                "`level` must be one of debug, info, notice, warning, error, critical, alert, emergency",
            )
        })?;
        if let Some(session) = &self.client.session {
            session.set_log_level(level);
            // Servers send at the lowest level of all sessions; the gateway filters for each session.
            let lowest = self.gateway.sessions.lowest_log_level().map_or(level, |lowest| lowest.min(level));
            let accepted = self.gateway.host.set_log_level(lowest);
            if tokio::time::timeout(LOG_LEVEL_TIMEOUT, accepted).await.is_err() {
                tracing::debug!("some servers did not accept the log level within {LOG_LEVEL_TIMEOUT:?}");
            }
        }
        Ok(RawJson::empty_object())
    }
}
