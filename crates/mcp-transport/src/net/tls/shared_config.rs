//! TLS configurations that the connections of a process share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::sync::OnceCell;

use super::authorities::Authorities;
use crate::error::net_failure::NetFailure;

/// How long the authorities of the system are used before they are read again.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// Maximum number of configurations. A program has one, or a few with authorities of their own.
const MAX_CONFIGS: usize = 16;

/// Configurations by their additional authorities.
pub(super) struct SharedConfigs {
    entries: Mutex<Vec<Arc<ConfigEntry>>>,
    /// Reads the authorities of the system. Blocks.
    load: fn(&Authorities) -> Result<ClientConfig, NetFailure>,
}

/// One configuration, which is loaded by the first connection that needs it.
struct ConfigEntry {
    authorities: Authorities,
    created_at: Instant,
    config: OnceCell<ClientConfig>,
}

impl SharedConfigs {
    pub(super) const fn new(load: fn(&Authorities) -> Result<ClientConfig, NetFailure>) -> SharedConfigs {
        SharedConfigs { entries: Mutex::new(Vec::new()), load }
    }

    /// Returns the configuration with these authorities. Loads it on a blocking thread if there is none; callers at the
    /// same time wait for one load. A failure is not kept. Cancel-safe.
    pub(super) async fn get(&self, authorities: &Authorities) -> Result<ClientConfig, NetFailure> {
        let entry = self.entry(authorities, Instant::now());
        let load = self.load;
        let loading = async || {
            let authorities = authorities.clone();
            let stopped = || NetFailure::Other("the certificate authorities were not read".to_owned());
            tokio::task::spawn_blocking(move || load(&authorities)).await.map_err(|_| stopped())?
        };
        entry.config.get_or_try_init(loading).await.cloned()
    }

    /// The entry of these authorities, a new one if there is none that is young enough.
    fn entry(&self, authorities: &Authorities, now: Instant) -> Arc<ConfigEntry> {
        let mut entries = self.entries.lock();
        entries.retain(|entry| now.saturating_duration_since(entry.created_at) < MAX_AGE);
        if let Some(entry) = entries.iter().find(|entry| entry.authorities == *authorities) {
            return Arc::clone(entry);
        }
        if entries.len() >= MAX_CONFIGS {
            entries.remove(0);
        }
        let (authorities, config) = (authorities.clone(), OnceCell::new());
        let entry = Arc::new(ConfigEntry { authorities, created_at: now, config });
        entries.push(Arc::clone(&entry));
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    static LOADS: AtomicUsize = AtomicUsize::new(0);

    fn counted(_: &Authorities) -> Result<ClientConfig, NetFailure> {
        if LOADS.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(NetFailure::Other("not yet".to_owned()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    }

    fn authorities(name: &str) -> Authorities {
        let certificate = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem();
        Authorities::from_pem(certificate.as_bytes()).unwrap()
    }

    // RPT-066
    #[tokio::test]
    async fn hundred_connections_load_the_authorities_once() {
        let configs = SharedConfigs::new(counted);
        let own = authorities("a.example");
        // A failure is not kept.
        assert!(configs.get(&own).await.is_err());
        let loaded = join_all((0..100).map(|_| configs.get(&own))).await;
        assert!(loaded.iter().all(Result::is_ok));
        assert_eq!(LOADS.load(Ordering::SeqCst), 2);
        // Other authorities are another configuration.
        configs.get(&authorities("b.example")).await.unwrap();
        configs.get(&own).await.unwrap();
        assert_eq!(LOADS.load(Ordering::SeqCst), 3);
    }

    // RPT-066
    #[test]
    fn configurations_are_renewed_and_bounded() {
        let configs = SharedConfigs::new(counted);
        let (own, now) = (authorities("a.example"), Instant::now());
        let first = configs.entry(&own, now);
        assert!(Arc::ptr_eq(&first, &configs.entry(&own, now + MAX_AGE / 2)));
        assert!(!Arc::ptr_eq(&first, &configs.entry(&own, now + MAX_AGE)));
        for number in 0..2 * MAX_CONFIGS {
            configs.entry(&authorities(&format!("{number}.example")), now + MAX_AGE);
        }
        assert_eq!(configs.entries.lock().len(), MAX_CONFIGS);
    }
}
