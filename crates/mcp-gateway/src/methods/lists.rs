//! `tools/list`, `prompts/list`, `resources/list` and `resources/templates/list`, from cached listings.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_host_model::{Era, RpcError, code};

use crate::lists::definitions::CatalogList;
use crate::lists::listing::StaleCursor;
use crate::methods::LIST_TTL_MS;
use crate::methods::context::RequestContext;
use crate::protocol::result_body::ResultBody;

impl RequestContext<'_> {
    /// Returns a page of a list.
    pub(super) fn list_page(&self, kind: CatalogList) -> Result<ResultBody, RpcError> {
        let cursor = self.cursor()?;
        let mut result = match self.client.era() {
            Era::Legacy => b"{".to_vec(),
            Era::Modern => {
                format!(r#"{{"resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"private","#).into()
            }
        };
        self.listing().write(kind, cursor.as_deref(), &mut result).map_err(|StaleCursor| cursor_error())?;
        result.push(b'}');
        Ok(Bytes::from(result).into())
    }

    /// The cursor of the requested page; `None` for the first page.
    pub(super) fn cursor(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        let cursor = self.request.params.get("cursor").filter(|cursor| cursor.as_str() != "null");
        cursor.map(|_| self.required_text("cursor")).transpose()
    }
}

/// The error for a cursor of another list, or of an earlier version of this list.
pub(super) fn cursor_error() -> RpcError {
    let message = "the cursor does not belong to this list, which may have changed: list again without one";
    RpcError::new(code::INVALID_PARAMS, message)
}
