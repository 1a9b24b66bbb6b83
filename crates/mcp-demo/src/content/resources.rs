//! The resources: a text, an image, a sound, and a template of numbers.

use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ReadResourceResult, Reference, Resource,
        ResourceContents, ResourceTemplate,
    },
};

use crate::content::media;

/// The URI of the text that the tool `mixed` embeds and links to.
pub(crate) const GREETING: &str = "demo://greeting";

/// The content of [`GREETING`].
pub(crate) const GREETING_TEXT: &str = "Hello from the demo server.\n";

const PICTURE: &str = "demo://picture";
const SOUND: &str = "demo://sound";
const NUMBERS: &str = "demo://numbers/";
const NUMBERS_TEMPLATE: &str = "demo://numbers/{count}";
const MAX_NUMBERS: u32 = 1000;

/// The greeting, the first resource of the list.
pub(crate) fn greeting() -> Resource {
    Resource::new(GREETING, "greeting").with_description("A line of text").with_mime_type("text/plain")
}

/// The resources, in a fixed order.
pub(crate) fn list() -> Vec<Resource> {
    vec![
        greeting(),
        Resource::new(PICTURE, "picture").with_description("Four pixels").with_mime_type("image/png"),
        Resource::new(SOUND, "sound")
            .with_description("Ten milliseconds of sound")
            .with_mime_type("audio/wav"),
    ]
}

/// The resource templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let numbers = ResourceTemplate::new(NUMBERS_TEMPLATE, "numbers")
        .with_description("The numbers from 1 to count, one a line; count is 1 to 1000")
        .with_mime_type("text/plain");
    vec![numbers]
}

/// The content of a resource.
pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        GREETING => ResourceContents::text(GREETING_TEXT, uri),
        PICTURE => ResourceContents::blob(media::picture(), uri).with_mime_type("image/png"),
        SOUND => ResourceContents::blob(media::sound(), uri).with_mime_type("audio/wav"),
        _ => match read_numbers(uri) {
            Some(text) => ResourceContents::text(text, uri),
            None => return Err(ErrorData::resource_not_found(format!("there is no resource `{uri}`"), None)),
        },
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Completes the argument of the template of numbers. There are no values for others.
pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let is_count = match &request.r#ref {
        Reference::Resource(template) => template.uri == NUMBERS_TEMPLATE && request.argument.name == "count",
        _ => false,
    };
    let counts: &[&str] = if is_count { &["1", "10", "100", "1000"] } else { &[] };
    let values = counts.iter().filter(|count| count.starts_with(&request.argument.value));
    CompletionInfo::with_all_values(values.map(|count| (*count).to_owned()).collect())
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

/// The numbers of a URI of [`NUMBERS_TEMPLATE`], one a line.
fn read_numbers(uri: &str) -> Option<String> {
    let count: u32 = uri.strip_prefix(NUMBERS)?.parse().ok()?;
    if !(1..=MAX_NUMBERS).contains(&count) {
        return None;
    }
    Some((1..=count).map(|number| format!("{number}\n")).collect())
}
