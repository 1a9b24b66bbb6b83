//! The authorization server of `serve --auth`.

use mcp_host_gateway::{ResourceServer, ScopeMap};

use crate::args::ServeArgs;
use crate::output::failure::Failure;
use crate::runtime::blocking;
use crate::runtime::bounded_read::read_file;

/// Maximum size of a file of scopes in bytes.
const MAX_SCOPE_MAP: u64 = 1024 * 1024;

/// The authorization server whose access tokens are accepted, if one is given.
pub(super) async fn resource_server(args: &ServeArgs) -> Result<Option<ResourceServer>, Failure> {
    let Some(issuer) = &args.auth else { return Ok(None) };
    let mut res = ResourceServer::new(issuer, args.resource.as_deref())
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(path) = args.scope_map.clone() {
        let shown = path.display().to_string();
        let failed = |why: String| Failure::new(format!("{shown}: {why}"));
        let text = blocking(move || read_file(&path, MAX_SCOPE_MAP)).await;
        let text = text.map_err(|error| failed(error.to_string()))?;
        res.scopes = ScopeMap::read(&text).map_err(|error| failed(error.to_string()))?;
    }
    Ok(Some(res))
}
