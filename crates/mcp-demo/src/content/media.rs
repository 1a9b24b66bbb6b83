//! A minimal image and a minimal sound, part of the program so that it needs no files.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// A PNG image of two by two pixels, in base64.
pub(crate) fn picture() -> String {
    BASE64_STANDARD.encode(include_bytes!("picture.png"))
}

/// Ten milliseconds of a square wave: a WAV file in base64.
pub(crate) fn sound() -> String {
    BASE64_STANDARD.encode(include_bytes!("sound.wav"))
}
