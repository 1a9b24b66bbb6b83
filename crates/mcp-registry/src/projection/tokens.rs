//! What a tool's definition costs in a prompt: an estimate, for no provider says how it writes one down.

use crate::name::exposed_items::ExposedTool;

/// What is written around each definition.
const FRAME_TOKENS: usize = 8;
/// How many ASCII characters make one token, as common English and JSON have it.
const ASCII_PER_TOKEN: usize = 4;

impl ExposedTool {
    /// Estimates the tokens that the definition costs: 8, and one for each four ASCII characters (rounded up) and for
    /// each other character of its exposed name, its description and its input schema. White space between the
    /// schema's tokens does not count.
    pub fn estimated_tokens(&self) -> usize {
        let mut res = CharacterCount::default();
        self.name.as_str().chars().for_each(|it| res.add(it));
        self.tool.description_text().chars().for_each(|it| res.add(it));
        let (mut quoted, mut escaped) = (false, false);
        for it in self.tool.input_schema.as_str().chars() {
            if quoted || !it.is_ascii_whitespace() {
                res.add(it);
            }
            quoted ^= it == '"' && !escaped;
            escaped = it == '\\' && !escaped;
        }
        FRAME_TOKENS + res.ascii.div_ceil(ASCII_PER_TOKEN) + res.other
    }
}

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
    use mcp_model::{RawJson, ServerId, read_tools};

    use super::*;
    use crate::name::exposed_name::ExposedName;

    #[track_caller]
    fn check(description: &str, schema: &str, want: usize) {
        let page =
            format!(r#"{{"tools":[{{"name":"x","description":{description},"inputSchema":{schema}}}]}}"#);
        let tool =
            read_tools(&RawJson::parse(page.into_bytes().into()).unwrap()).unwrap().into_shared().remove(0);
        let server = ServerId::parse("s").unwrap();
        let tool = ExposedTool { name: ExposedName::new("a_name".to_owned()), server, tool };
        assert_eq!(tool.estimated_tokens(), want);
    }

    #[test]
    fn a_definition_costs_what_its_characters_do() {
        check("\"\"", "{}", 8 + 2);
        check("\"reads\"", "{}", 8 + 4);
        check(r#""\u5de5具""#, "{}", 8 + 2 + 2);
        // White space counts inside of a text only, wherever that ends.
        check("\"\"", "{ \"a\" :\n 1 }", 8 + 4);
        check("\"\"", r#"{"a":" \" \\"}"#, 8 + 5);
    }
}
