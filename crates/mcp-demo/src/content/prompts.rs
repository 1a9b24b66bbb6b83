//! The two prompts, one without and one with arguments.

use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
    },
};

const HELLO: &str = "hello";
const SUMMARISE: &str = "summarise";

/// The prompts, in a fixed order.
pub(crate) fn list() -> Vec<Prompt> {
    let text = PromptArgument::new("text").with_description("What to summarise").with_required(true);
    let words = PromptArgument::new("words")
        .with_description("How long at most, 50 unless given")
        .with_required(false);
    vec![
        Prompt::new(HELLO, Some("Says hello to the model"), None),
        Prompt::new(SUMMARISE, Some("Asks for a summary of a text"), Some(vec![text, words])),
    ]
}

/// The messages of one prompt.
pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let text = match request.name.as_str() {
        HELLO => "Hello! Which tools do you have, and what are they good for?".to_owned(),
        SUMMARISE => summarise(request.arguments.as_ref())?,
        other => return Err(ErrorData::invalid_params(format!("there is no prompt `{other}`"), None)),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn summarise(arguments: Option<&JsonObject>) -> Result<String, ErrorData> {
    let argument = |name: &str| arguments?.get(name)?.as_str();
    let Some(text) = argument("text") else {
        return Err(ErrorData::invalid_params("the prompt `summarise` needs the argument `text`", None));
    };
    let words = argument("words").unwrap_or("50");
    Ok(format!("Summarise the following text in at most {words} words.\n\n{text}"))
}
