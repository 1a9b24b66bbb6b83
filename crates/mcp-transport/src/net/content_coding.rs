//! Content codings of responses: gzip, deflate and br are decoded, although none is requested.
//!
//! A decoded body comes in small chunks, so that a reader's limit also bounds a body that expands. Not here: codings of
//! requests, and zstd, which no server is known to send without a request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder};
use bytes::Bytes;
use futures_util::Stream;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::StreamReader;

use super::http1::{is_early_close, net_failure};

/// Maximum size of a decoded chunk.
const CHUNK_BYTES: usize = 16 << 10;

/// Maximum length of the name of a coding in a message.
const MAX_NAME_BYTES: usize = 40;

/// The coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Gzip,
    /// The zlib format, or what some servers send instead: deflate without its header.
    Deflate,
    Brotli,
}

/// Why a body cannot be read further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The connection failed.
    #[error("{}", net_failure(.0))]
    Connection(#[from] hyper::Error),
    /// The body does not have the form of its coding.
    #[error("its content coding {coding} cannot be decoded: {message}")]
    Undecodable {
        /// The coding.
        coding: &'static str,
        /// The error of the decoder.
        message: String,
    },
    /// The body has this coding.
    #[error("it has the content coding {0:?}, which was not requested and is not supported")]
    UnknownCoding(String),
}

impl BodyError {
    /// Whether the server closed the connection before the end of the body.
    #[cfg(feature = "sse")]
    pub(crate) fn is_early_close(&self) -> bool {
        match self {
            BodyError::Connection(error) => is_early_close(error),
            BodyError::Undecodable { .. } | BodyError::UnknownCoding(_) => false,
        }
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> io::Error {
        io::Error::other(error)
    }
}

/// The chunks of a body as it is sent.
pub(super) trait BodyChunks: Stream<Item = Result<Bytes, BodyError>> + Send + Unpin {}

impl<S: Stream<Item = Result<Bytes, BodyError>> + Send + Unpin> BodyChunks for S {}

/// A body that is decoded as it is read.
pub(super) struct DecodedBody<B> {
    coding: ContentCoding,
    decoder: Decoder<B>,
    /// Receives decoded bytes.
    buffer: Box<[u8]>,
}

/// The decoder of a body.
enum Decoder<B> {
    Gzip(GzipDecoder<EncodedReader<B>>),
    Zlib(ZlibDecoder<EncodedReader<B>>),
    Deflate(DeflateDecoder<EncodedReader<B>>),
    Brotli(Box<BrotliDecoder<EncodedReader<B>>>),
    /// Nothing was read. An empty body is not encoded, and the form of `deflate` is not known before its first byte.
    Unread(EncodedReader<B>),
    /// The body ended or failed.
    Finished,
}

/// Reads an encoded body.
type EncodedReader<B> = StreamReader<B, Bytes>;

impl ContentCoding {
    /// The coding that a response declares. Fails with the name of a coding that cannot be decoded.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<ContentCoding>, BodyError> {
        let mut res = None;
        // A search through the few headers costs less than a lookup.
        for (_, value) in headers.iter().filter(|(name, _)| *name == CONTENT_ENCODING) {
            for name in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                let coding = match name.to_ascii_lowercase().as_slice() {
                    b"" | b"identity" => continue,
                    b"gzip" | b"x-gzip" => Some(ContentCoding::Gzip),
                    b"deflate" => Some(ContentCoding::Deflate),
                    b"br" => Some(ContentCoding::Brotli),
                    _ => None,
                };
                if coding.is_none() || res.is_some() {
                    let text = String::from_utf8_lossy(value.as_bytes());
                    return Err(BodyError::UnknownCoding(text.chars().take(MAX_NAME_BYTES).collect()));
                }
                res = coding;
            }
        }
        Ok(res)
    }

    fn name(self) -> &'static str {
        match self {
            ContentCoding::Gzip => "gzip",
            ContentCoding::Deflate => "deflate",
            ContentCoding::Brotli => "br",
        }
    }
}

impl<B: BodyChunks> DecodedBody<B> {
    pub(super) fn new(body: B, coding: ContentCoding) -> DecodedBody<B> {
        let decoder = Decoder::Unread(StreamReader::new(body));
        DecodedBody { coding, decoder, buffer: vec![0; CHUNK_BYTES].into() }
    }

    /// Returns the next decoded chunk; `None` at the end, and after an error.
    pub(super) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read = match ready!(self.decoder.poll_read(self.coding, cx, &mut buffer)) {
            Ok(()) if !buffer.filled().is_empty() => {
                return Poll::Ready(Ok(Some(Bytes::copy_from_slice(buffer.filled()))));
            }
            Ok(()) => ready!(self.decoder.poll_rest(cx)),
            Err(error) => Err(error),
        };
        self.decoder = Decoder::Finished;
        Poll::Ready(match read {
            Ok(()) => Ok(None),
            Err(error) => Err(match error.downcast::<BodyError>() {
                Ok(error) => error,
                Err(error) => {
                    BodyError::Undecodable { coding: self.coding.name(), message: error.to_string() }
                }
            }),
        })
    }
}

impl<B: BodyChunks> Decoder<B> {
    /// The decoder of a body that begins with this byte.
    fn new(coding: ContentCoding, first: u8, reader: EncodedReader<B>) -> Decoder<B> {
        match coding {
            ContentCoding::Gzip => {
                let mut decoder = GzipDecoder::new(reader);
                decoder.multiple_members(true);
                Decoder::Gzip(decoder)
            }
            // The method of zlib is 8 with a window of up to 32 KB. A deflate block does not begin so.
            ContentCoding::Deflate if first & 0x8f == 8 => Decoder::Zlib(ZlibDecoder::new(reader)),
            ContentCoding::Deflate => Decoder::Deflate(DeflateDecoder::new(reader)),
            ContentCoding::Brotli => Decoder::Brotli(Box::new(BrotliDecoder::new(reader))),
        }
    }

    /// Reads decoded bytes. The first call creates the decoder, for which it needs the first byte of the body.
    fn poll_read(
        &mut self,
        coding: ContentCoding,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Decoder::Unread(reader) = self {
            let first = ready!(Pin::new(&mut *reader).poll_fill_buf(cx))?.first().copied();
            if let (Some(first), Decoder::Unread(reader)) =
                (first, std::mem::replace(self, Decoder::Finished))
            {
                *self = Decoder::new(coding, first, reader);
            }
        }
        match self {
            Decoder::Gzip(decoder) => Pin::new(decoder).poll_read(cx, buffer),
            Decoder::Zlib(decoder) => Pin::new(decoder).poll_read(cx, buffer),
            Decoder::Deflate(decoder) => Pin::new(decoder).poll_read(cx, buffer),
            Decoder::Brotli(decoder) => Pin::new(&mut **decoder).poll_read(cx, buffer),
            Decoder::Unread(_) | Decoder::Finished => Poll::Ready(Ok(())),
        }
    }

    /// Reads to the end of the encoded body, so that its connection can be reused.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let reader = match self {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zlib(decoder) => decoder.get_mut(),
            Decoder::Deflate(decoder) => decoder.get_mut(),
            Decoder::Brotli(decoder) => decoder.get_mut(),
            Decoder::Unread(_) | Decoder::Finished => return Poll::Ready(Ok(())),
        };
        if ready!(Pin::new(reader).poll_fill_buf(cx))?.is_empty() {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "there is data after its end")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder};
    use tokio::io::AsyncWriteExt as _;

    /// Chunks that arrive one after the other; nothing more arrives after `None`.
    struct Chunks(VecDeque<Option<Bytes>>);

    impl Stream for Chunks {
        type Item = Result<Bytes, BodyError>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            match self.0.pop_front() {
                Some(Some(chunk)) => Poll::Ready(Some(Ok(chunk))),
                Some(None) => {
                    self.0.push_front(None);
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        }
    }

    /// Encodes a text.
    macro_rules! encoded {
        ($encoder:ident, $text:expr) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all($text).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }

    /// Decodes an encoded body that arrives in pieces of `size` bytes. Returns the text and the longest chunk.
    async fn decode(coding: ContentCoding, encoded: &[u8], size: usize) -> Result<(Vec<u8>, usize), String> {
        let chunks = encoded.chunks(size).map(|piece| Some(Bytes::copy_from_slice(piece))).collect();
        let mut body = DecodedBody::new(Chunks(chunks), coding);
        let (mut text, mut longest) = (Vec::new(), 0);
        while let Some(chunk) = poll_fn(|cx| body.poll_chunk(cx)).await.map_err(|error| error.to_string())? {
            longest = longest.max(chunk.len());
            text.extend_from_slice(&chunk);
        }
        Ok((text, longest))
    }

    // RPT-050
    #[tokio::test]
    async fn body_is_decoded_from_any_pieces() {
        let text = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello hello"}]}}"#;
        for (coding, encoded) in [
            (ContentCoding::Gzip, encoded!(GzipEncoder, text)),
            (ContentCoding::Deflate, encoded!(ZlibEncoder, text)),
            (ContentCoding::Deflate, encoded!(DeflateEncoder, text)),
            (ContentCoding::Brotli, encoded!(BrotliEncoder, text)),
        ] {
            for size in [1, 7, 4096] {
                let (decoded, _) = decode(coding, &encoded, size).await.unwrap();
                assert_eq!(decoded, text, "{coding:?} in pieces of {size}");
            }
            assert!(decode(coding, &encoded[..encoded.len() - 3], 16).await.is_err(), "{coding:?}");
            let error = decode(coding, b"{\"jsonrpc\":\"2.0\"}", 64).await.unwrap_err();
            assert!(error.starts_with("its content coding "), "{error}");
        }
        assert_eq!(decode(ContentCoding::Gzip, b"", 1).await.map(|it| it.0), Ok(Vec::new()));
    }

    // RPT-051
    #[tokio::test]
    async fn expanding_body_comes_in_small_chunks() {
        let zeros = vec![0; 8 << 20];
        for (coding, encoded) in [
            (ContentCoding::Gzip, encoded!(GzipEncoder, &zeros)),
            (ContentCoding::Brotli, encoded!(BrotliEncoder, &zeros)),
        ] {
            assert!(encoded.len() < 64 << 10, "{coding:?}");
            let (decoded, longest) = decode(coding, &encoded, usize::MAX).await.unwrap();
            assert_eq!((decoded.len(), longest), (zeros.len(), CHUNK_BYTES), "{coding:?}");
        }
    }

    // RPT-050
    #[tokio::test]
    async fn flushed_part_of_an_open_stream_is_decoded() {
        let mut encoder = GzipEncoder::new(Vec::new());
        encoder.write_all(b"data: 1\n\n").await.unwrap();
        encoder.flush().await.unwrap();
        let part = Bytes::copy_from_slice(encoder.get_ref());
        let mut body = DecodedBody::new(Chunks([Some(part), None].into()), ContentCoding::Gzip);
        let chunk = poll_fn(|cx| body.poll_chunk(cx)).await.unwrap().unwrap();
        assert_eq!(chunk, "data: 1\n\n");
        let is_pending = |cx: &mut Context<'_>| Poll::Ready(body.poll_chunk(cx).is_pending());
        assert!(poll_fn(is_pending).await);
    }

    #[test]
    fn coding_is_read_from_the_headers() {
        #[track_caller]
        fn check(values: &[&'static str], want: Result<Option<ContentCoding>, &str>) {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, http::HeaderValue::from_static(value));
            }
            let got = ContentCoding::from_headers(&headers).map_err(|error| error.to_string());
            assert_eq!(got, want.map_err(str::to_owned), "{values:?}");
        }
        check(&[], Ok(None));
        check(&["identity"], Ok(None));
        check(&["X-GZip"], Ok(Some(ContentCoding::Gzip)));
        check(&["deflate, identity"], Ok(Some(ContentCoding::Deflate)));
        check(&["br"], Ok(Some(ContentCoding::Brotli)));
        let unknown = "it has the content coding \"zstd\", which was not requested and is not supported";
        check(&["zstd"], Err(unknown));
        let two = "it has the content coding \"gzip, br\", which was not requested and is not supported";
        check(&["gzip, br"], Err(two));
    }
}
