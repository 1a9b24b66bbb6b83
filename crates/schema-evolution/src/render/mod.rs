//! Renders a comparison.

mod json;
mod sarif;
mod text;

pub use json::render_json;
pub use sarif::render_sarif;
pub use text::render_text;
