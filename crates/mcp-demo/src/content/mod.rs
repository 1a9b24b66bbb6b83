//! The fixed content of the server: prompts, resources, and the image and audio data.

pub(crate) mod media;
pub(crate) mod prompts;
pub(crate) mod resources;
