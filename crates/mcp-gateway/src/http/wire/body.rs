//! The body of a request, read as a whole, in the room that it has among those of all clients.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mcp_transport::{ChunkedBody, ChunkedPart, NotChunked};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Left, PART, Wire};
use crate::limits::byte_budget::{Budget, Held, NoRoom, SMALL};

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum NotWhole {
    TooLong,
    Broken,
    /// Too much of others is held.
    NoRoom,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// The request's body, of `most` bytes. What was received counts, and not what was announced. Where there is none, or
    /// nobody waits for it any more, no other request follows.
    pub(in crate::http) async fn body(
        &mut self,
        most: usize,
        budget: &Arc<Budget>,
    ) -> Result<Bytes, NotWhole> {
        let mut room = Room { budget, held: None };
        // Until it was read to its end nothing behind it can be.
        let body = match std::mem::replace(&mut self.left, Left::Unknown) {
            Left::Exact(0) => Bytes::new(),
            Left::Exact(bytes) => match usize::try_from(bytes) {
                Ok(bytes) if bytes <= most => self.exact(bytes, &mut room).await?,
                Ok(_) | Err(_) => return Err(NotWhole::TooLong),
            },
            Left::Chunks(chunks) => self.chunked(chunks, most, &mut room).await?,
            Left::Unknown => return Err(NotWhole::Broken),
        };
        self.left = Left::Exact(0);
        Ok(match room.held {
            Some(held) => held.keeps(body),
            None => body,
        })
    }

    async fn exact(&mut self, bytes: usize, room: &mut Room<'_>) -> Result<Bytes, NotWhole> {
        self.ask_for_it().await?;
        loop {
            room.make(self.input.len().min(bytes))?;
            let wanting = bytes.saturating_sub(self.input.len());
            if wanting == 0 {
                return Ok(self.take(bytes));
            }
            self.fill(wanting.min(PART.max(self.input.len()))).await?;
        }
    }

    async fn chunked(
        &mut self,
        mut chunks: ChunkedBody,
        most: usize,
        room: &mut Room<'_>,
    ) -> Result<Bytes, NotWhole> {
        self.ask_for_it().await?;
        let (mut first, mut rest, mut bytes) = (Bytes::new(), BytesMut::new(), 0);
        loop {
            match chunks.next(&mut self.input).map_err(|NotChunked| NotWhole::Broken)? {
                ChunkedPart::Piece(piece) => {
                    bytes += piece.len();
                    if bytes > most {
                        return Err(NotWhole::TooLong);
                    }
                    room.make(bytes)?;
                    // Most bodies come in one piece, which is not copied.
                    match first.is_empty() && rest.is_empty() {
                        true => first = piece,
                        false => {
                            rest.extend_from_slice(&std::mem::take(&mut first));
                            rest.extend_from_slice(&piece);
                        }
                    }
                }
                ChunkedPart::Wanting => self.fill(PART).await?,
                ChunkedPart::End => return Ok(if rest.is_empty() { first } else { rest.freeze() }),
            }
        }
    }

    /// Tells a client that waits for it that he shall send the body.
    async fn ask_for_it(&mut self) -> Result<(), NotWhole> {
        if self.expects && self.input.is_empty() {
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.write(Bytes::new()).await.map_err(|_| NotWhole::Broken)?;
        }
        Ok(())
    }

    async fn fill(&mut self, most: usize) -> Result<(), NotWhole> {
        match poll_fn(|cx| self.poll_fill(cx, most)).await {
            Ok(0) | Err(_) => Err(NotWhole::Broken),
            Ok(_) => Ok(()),
        }
    }
}

/// The room that a body has.
struct Room<'a> {
    budget: &'a Arc<Budget>,
    held: Option<Held>,
}

impl Room<'_> {
    fn make(&mut self, bytes: usize) -> Result<(), NotWhole> {
        if bytes < SMALL {
            return Ok(());
        }
        let made = match &mut self.held {
            Some(held) => held.grow(bytes),
            None => self.budget.reserve(bytes).map(|it| self.held = Some(it)),
        };
        made.map_err(|NoRoom| NotWhole::NoRoom)
    }
}
