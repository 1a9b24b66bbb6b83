//! Reads the body of a request, within its size limit and the byte budget of its client.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use mcp_host_model::RawJson;
use tokio::time::timeout;

use crate::limits::byte_budget::{Account, BudgetExceeded, ByteBudget, MIN_COUNTED_BYTES, Reservation};
use crate::protocol::oversized::RequestIdScanner;

/// How much of a refused body is read for the id of its request, in multiples of the maximum size.
const MAX_SCANNED_FACTOR: usize = 16;
/// How long the rest of a refused body is read for the id of its request.
const MAX_SCAN_TIME: Duration = Duration::from_secs(5);

/// The reason why a body could not be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BodyError {
    /// It is too large. The id of its request, if it has one.
    TooLarge(Option<RawJson>),
    /// The connection or the framing is broken.
    Incomplete,
    /// The byte budget is used up. The id of its request, if it has one.
    OverBudget(Option<RawJson>),
}

/// Reads a body of at most `max_bytes`. The budget counts the bytes that were received, not `Content-Length`.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
    max_bytes: usize,
    budget: &Arc<ByteBudget>,
    account: &Account,
) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(BodyError::TooLarge(find_id(&[], body, max_bytes).await));
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    let mut reservation: Option<Reservation> = None;
    while let Some(data) = next_part(&mut body).await {
        let data = data?;
        let received = first.len() + rest.len() + data.len();
        if received > max_bytes {
            return Err(BodyError::TooLarge(find_id(&[&first, &rest, &data], body, max_bytes).await));
        }
        if received >= MIN_COUNTED_BYTES {
            let reserved = match &mut reservation {
                Some(reservation) => reservation.grow(received),
                None => budget.reserve(account, received).map(|reserved| reservation = Some(reserved)),
            };
            if let Err(BudgetExceeded) = reserved {
                return Err(BodyError::OverBudget(find_id(&[&first, &rest, &data], body, max_bytes).await));
            }
        }
        // Most bodies arrive in one part, which is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&std::mem::take(&mut first));
            rest.extend_from_slice(&data);
        }
    }
    let whole = if rest.is_empty() { first } else { rest.freeze() };
    Ok(match reservation {
        Some(reservation) => reservation.attach(whole),
        None => whole,
    })
}

/// The next part of a body; `None` at its end. Trailers are skipped.
async fn next_part<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Result<Bytes, BodyError>> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            Ok(Err(_trailers)) => {}
            Err(_) => return Some(Err(BodyError::Incomplete)),
        }
    }
}

/// Finds the id of the request in a refused body: `received`, and what follows. Nothing is stored.
async fn find_id<B: Body<Data = Bytes> + Unpin>(
    received: &[&[u8]],
    mut body: B,
    max_bytes: usize,
) -> Option<RawJson> {
    let max_scanned = max_bytes.saturating_mul(MAX_SCANNED_FACTOR);
    if body.size_hint().lower() > max_scanned as u64 {
        return None;
    }
    let mut scanner = RequestIdScanner::default();
    received.iter().for_each(|part| scanner.scan(part));
    let mut scanned: usize = received.iter().map(|part| part.len()).sum();
    let scan_rest = async {
        while scanned <= max_scanned
            && let Some(Ok(part)) = next_part(&mut body).await
        {
            scanned += part.len();
            scanner.scan(&part);
        }
    };
    // A client that waits for the refusal sends no more.
    let _ = timeout(MAX_SCAN_TIME, scan_rest).await;
    scanner.finish()
}
