//! A request to read the followed files at once.

use std::sync::Arc;

use tokio::sync::Notify;

/// Makes a host read its followed files at once, also where no change of them was reported.
#[derive(Debug, Clone, Default)]
pub struct ReloadTrigger(Arc<Notify>);

impl ReloadTrigger {
    /// Reads the files again. Only a changed content has an effect.
    pub fn reload(&self) {
        self.0.notify_one();
    }

    /// Waits for the next request. Cancel-safe.
    pub(super) async fn requested(&self) {
        self.0.notified().await;
    }
}
