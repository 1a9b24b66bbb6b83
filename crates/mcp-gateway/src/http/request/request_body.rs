//! Reads the body of a request, within its size limit and the byte budget of its client.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::body::Body;

use crate::limits::byte_budget::{Account, BudgetExceeded, ByteBudget, MIN_COUNTED_BYTES, Reservation};

/// The reason why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    /// The connection or the framing is broken.
    Incomplete,
    /// The byte budget is used up.
    OverBudget,
}

/// Reads a body of at most `max_bytes`. The budget counts the bytes that were received, not `Content-Length`.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
    max_bytes: usize,
    (budget, account): (&Arc<ByteBudget>, &Account),
) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(BodyError::TooLarge);
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    let mut reservation: Option<Reservation> = None;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else {
            // Trailers are ignored.
            continue;
        };
        let received = first.len() + rest.len() + data.len();
        if received > max_bytes {
            return Err(BodyError::TooLarge);
        }
        if received >= MIN_COUNTED_BYTES {
            match &mut reservation {
                Some(reservation) => reservation.grow(received),
                None => budget.reserve(account, received).map(|reserved| reservation = Some(reserved)),
            }
            .map_err(|BudgetExceeded| BodyError::OverBudget)?;
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
