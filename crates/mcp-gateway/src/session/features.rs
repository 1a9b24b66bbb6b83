//! The parsed capabilities of a client.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use mcp_host_model::{APPS_EXTENSION, RawJson, TASKS_EXTENSION};
use mcp_host_transport::ClientCapabilities;
use parking_lot::Mutex;

use crate::lists::listing::Audience;
use crate::protocol::json_splice;
use crate::session::supported_requests::SupportedRequests;

/// Maximum size of capabilities that are cached, in bytes. This bounds the cache.
const MAX_CACHED_BYTES: usize = 1024;

/// Maximum number of cached capabilities. Clients differ little in them.
const MAX_CACHED_FEATURES: NonZeroUsize = NonZeroUsize::new(64).expect("it is not zero");

/// The parsed capabilities of a client.
#[derive(Debug)]
pub(crate) struct ClientFeatures {
    /// The capabilities as the client sent them: an object.
    pub(crate) capabilities: RawJson,
    /// The server requests that the client supports.
    pub(crate) supported_requests: SupportedRequests,
    /// The capabilities that are declared to servers: those of the client without `tasks`, because the gateway forwards
    /// no tasks that a client runs.
    pub(crate) upstream_capabilities: Option<ClientCapabilities>,
    /// Whether the client declares the extension for tasks.
    pub(crate) supports_tasks: bool,
    /// The recipients of the listed tools. They include apps if the client declares the extension for apps.
    pub(crate) audience: Audience,
}

impl ClientFeatures {
    pub(crate) fn of(capabilities: RawJson) -> Arc<ClientFeatures> {
        let extensions = json_splice::member(&capabilities, "extensions");
        let declares = |extension: &str| {
            let declared = extensions.as_ref().and_then(|it| json_splice::member(it, extension));
            declared.is_some_and(|it| it.is_object())
        };
        let upstream = ClientCapabilities::new(capabilities.clone());
        Arc::new(ClientFeatures {
            supported_requests: SupportedRequests::of(&capabilities),
            upstream_capabilities: upstream.map(|capabilities| capabilities.without("tasks")),
            supports_tasks: declares(TASKS_EXTENSION),
            audience: match declares(APPS_EXTENSION) {
                true => Audience::ModelsAndApps,
                false => Audience::Models,
            },
            capabilities,
        })
    }
}

/// A cache of parsed capabilities, for clients that send them with each request.
#[derive(Debug)]
pub(crate) struct FeaturesCache(Mutex<LruCache<RawJson, Arc<ClientFeatures>, ahash::RandomState>>);

impl Default for FeaturesCache {
    fn default() -> FeaturesCache {
        FeaturesCache(Mutex::new(LruCache::with_hasher(MAX_CACHED_FEATURES, ahash::RandomState::default())))
    }
}

impl FeaturesCache {
    /// Returns the parsed capabilities.
    pub(crate) fn get(&self, capabilities: &RawJson) -> Arc<ClientFeatures> {
        if capabilities.as_bytes().len() > MAX_CACHED_BYTES {
            return ClientFeatures::of(capabilities.clone());
        }
        if let Some(features) = self.0.lock().get(capabilities) {
            return Arc::clone(features);
        }
        // A copy, because the slice of a message would keep all of it.
        let capabilities = RawJson::parse(capabilities.as_str().to_owned().into()).expect("it was JSON");
        let features = ClientFeatures::of(capabilities.clone());
        self.0.lock().put(capabilities, Arc::clone(&features));
        features
    }
}
