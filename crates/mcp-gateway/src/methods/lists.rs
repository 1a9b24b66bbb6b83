//! The list methods. Their results are prepared in advance.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_host_model::{Era, RpcError, code};

use crate::lists::definitions::CatalogList;
use crate::lists::listing::StaleCursor;
use crate::methods::LIST_TTL_MS;
use crate::methods::context::RequestContext;
use crate::protocol::result_body::HandledResult;

impl RequestContext<'_> {
    /// A page of a list.
    pub(super) fn list(&self, kind: CatalogList) -> HandledResult {
        let cursor = self.cursor()?;
        let mut result = match self.caller.era() {
            Era::Legacy => b"{".to_vec(),
            Era::Modern => {
                format!(r#"{{"resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"private","#).into()
            }
        };
        self.listing().write(kind, cursor.as_deref(), &mut result).map_err(|StaleCursor| stale_cursor())?;
        result.push(b'}');
        Ok(Bytes::from(result).into())
    }

    /// The cursor of the requested page; `None` for the first page.
    pub(super) fn cursor(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        let cursor = self.request.params.get("cursor").filter(|cursor| cursor.as_str() != "null");
        cursor.map(|_| self.text("cursor")).transpose()
    }
}

/// The error for a cursor of another list, or of an earlier version of this list.
pub(super) fn stale_cursor() -> RpcError {
    let message = "the cursor does not belong to this list, which may have changed: list again without one";
    RpcError::new(code::INVALID_PARAMS, message)
}
