//! The features of a client: its capabilities, parsed.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use mcp_host_model::{APPS_EXTENSION, RawJson, TASKS_EXTENSION};
use mcp_host_transport::ClientCapabilities;
use parking_lot::Mutex;

use crate::lists::listing::Audience;
use crate::protocol::json_splice;
use crate::session::supported_requests::SupportedRequests;

/// Maximum size of capabilities in bytes that are cached. A cache is thus bounded to some ten kilobytes.
const MAX_CACHED_BYTES: usize = 1024;

/// The number of cached features. Clients differ little in their capabilities.
const CACHED: NonZeroUsize = NonZeroUsize::new(64).expect("it is not zero");

/// A client's capabilities.
#[derive(Debug)]
pub(crate) struct ClientFeatures {
    /// The capabilities as the client sent them: an object.
    pub(crate) capabilities: RawJson,
    /// The server requests that the client supports.
    pub(crate) supported_requests: SupportedRequests,
    /// The capabilities that are declared to servers. The gateway forwards no tasks that the client of a legacy session
    /// runs.
    pub(crate) upstream_capabilities: Option<ClientCapabilities>,
    /// Whether the client declares the extension for tasks.
    pub(crate) supports_tasks: bool,
    /// The recipients of tools: apps are among them if the client declares the extension for apps.
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

/// The features of clients that send their capabilities with each request.
#[derive(Debug)]
pub(crate) struct FeaturesCache(Mutex<LruCache<RawJson, Arc<ClientFeatures>, ahash::RandomState>>);

impl Default for FeaturesCache {
    fn default() -> FeaturesCache {
        FeaturesCache(Mutex::new(LruCache::with_hasher(CACHED, ahash::RandomState::default())))
    }
}

impl FeaturesCache {
    /// The features with these capabilities.
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
