//! An estimate of the tokens of a tool's definition in a prompt. Providers do not document their encoding.

use crate::catalog::exposed_items::ExposedTool;

/// The estimated tokens that a provider adds around each definition.
const FRAME_TOKENS: usize = 8;
/// ASCII characters per token, in common English and JSON.
const ASCII_PER_TOKEN: usize = 4;

impl ExposedTool {
    /// Estimates the tokens of the definition: 8, plus one per four ASCII characters (rounded up) and one per other
    /// character of the exposed name, the description and the input schema. White space between the schema's tokens
    /// is not counted.
    pub fn estimated_tokens(&self) -> usize {
        let mut res = CharacterCount::default();
        self.name.as_str().chars().for_each(|it| res.add(it));
        self.tool.description_text().chars().for_each(|it| res.add(it));
        let (mut is_in_string, mut is_escaped) = (false, false);
        for character in self.tool.input_schema.as_str().chars() {
            if is_in_string || !character.is_ascii_whitespace() {
                res.add(character);
            }
            is_in_string ^= character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
        }
        FRAME_TOKENS + res.ascii.div_ceil(ASCII_PER_TOKEN) + res.other
    }
}

/// The number of characters of a text.
#[derive(Default)]
struct CharacterCount {
    ascii: usize,
    other: usize,
}

impl CharacterCount {
    fn add(&mut self, character: char) {
        if character.is_ascii() {
            self.ascii += 1;
        } else {
            self.other += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::{RawJson, ServerId, read_tools};

    use super::*;
    use crate::name::exposed_name::ExposedName;

    #[track_caller]
    fn check(description: &str, schema: &str, want: usize) {
        let page =
            format!(r#"{{"tools":[{{"name":"x","description":{description},"inputSchema":{schema}}}]}}"#);
        let tool =
            read_tools(&RawJson::parse(page.into_bytes().into()).unwrap()).unwrap().into_shared().remove(0);
        let server = ServerId::parse("s").unwrap();
        let tool = ExposedTool::new(ExposedName::new("a_name".to_owned()), server, tool);
        assert_eq!(tool.estimated_tokens(), want);
    }

    #[test]
    fn tokens_are_estimated_from_characters() {
        check("\"\"", "{}", 8 + 2);
        check("\"reads\"", "{}", 8 + 4);
        check(r#""\u5de5具""#, "{}", 8 + 2 + 2);
        // White space counts only inside of strings.
        check("\"\"", "{ \"a\" :\n 1 }", 8 + 4);
        check("\"\"", r#"{"a":" \" \\"}"#, 8 + 5);
    }
}
