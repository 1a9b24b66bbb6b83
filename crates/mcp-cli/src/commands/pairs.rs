//! Arguments as a person types them, `name=value`, made JSON by what the tool's schema wants of each.
//!
//! A word is read in the one way that the schema allows, and text wins where text is allowed: `5` for a string is a
//! string. `name:=value` is JSON and asks nobody. What the schema wants beyond types is judged later, with all of it.

use std::collections::BTreeSet;

use mcp_model::RawJson;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::commands::arguments::Unusable;
use crate::commands::shape::resolved;

/// How deep alternatives within alternatives are looked at.
const DEEPEST: usize = 4;

const HELP: &str = "`mcp-host tools FILE --schema TOOL` shows the arguments and their types; name:=JSON says a value as JSON";

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    name: String,
    value: Word,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// To be read by what the schema wants.
    Plain(String),
    /// JSON as it was typed.
    Json(String),
}

/// Reads `name=value` or `name:=JSON`; the caller has seen that there is a name and a `=`.
pub(super) fn pair(word: &str) -> Result<Pair, Unusable> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let Some(name) = name.strip_suffix(':') else {
        return Ok(Pair { name: name.to_owned(), value: Word::Plain(value.to_owned()) });
    };
    match json(value) {
        Some(json) => Ok(Pair { name: name.to_owned(), value: Word::Json(json) }),
        None => Err(Unusable { message: format!("the value of `{}` is no JSON", shown(name)), help: HELP }),
    }
}

/// Puts the pairs together to one object. Fails with the first that fits no type that `schema` wants of it.
pub(super) fn fit(pairs: &[Pair], schema: Option<&RawJson>) -> Result<RawJson, Unusable> {
    let root = schema.and_then(|it| it.read::<Value>().ok()).unwrap_or(Value::Null);
    let mut members: Vec<(&str, Vec<&Word>)> = Vec::new();
    for Pair { name, value } in pairs {
        match members.iter_mut().find(|(known, _)| known == name) {
            Some((_, words)) => words.push(value),
            None => members.push((name, vec![value])),
        }
    }
    let mut res = String::from("{");
    for (at, (name, words)) in members.iter().enumerate() {
        let value = member(&root, name, words)?;
        let comma = if at == 0 { "" } else { "," };
        res.push_str(&format!("{comma}{}:{value}", quoted(name)));
    }
    res.push('}');
    Ok(RawJson::parse(res.into()).expect("it is an object of names that are quoted and values that are JSON"))
}

/// Puts pairs together to one object of texts, which is what prompts take. Of two with one name the later counts.
pub(super) fn texts(pairs: &[Pair]) -> RawJson {
    let text = |it: &Pair| match &it.value {
        Word::Plain(text) | Word::Json(text) => (it.name.clone(), Value::from(text.as_str())),
    };
    let object: serde_json::Map<String, Value> = pairs.iter().map(text).collect();
    RawJson::from_value(&object).expect("it is an object of texts")
}

/// The value of one argument, as JSON.
fn member(root: &Value, name: &str, words: &[&Word]) -> Result<String, Unusable> {
    let nothing = Value::Null;
    let top = resolved(root, root);
    let property = top.get("properties").and_then(|it| it.get(name)).unwrap_or(&nothing);
    let kinds = Kinds::of(root, property, 1);
    match words {
        [Word::Json(json)] => Ok(json.clone()),
        [Word::Plain(text)] if !kinds.is_list_only() || text.trim_start().starts_with('[') => {
            kinds.read(text).ok_or_else(|| unfit(name, text, &kinds))
        }
        words if kinds.is_list_only() || words.len() > 1 && kinds.0.contains(&Kind::List) => {
            let kinds = items(root, property).map_or_else(Kinds::default, |it| Kinds::of(root, it, 1));
            let items = words.iter().map(|it| match it {
                Word::Json(json) => Ok(json.clone()),
                Word::Plain(text) => kinds.read(text).ok_or_else(|| unfit(name, text, &kinds)),
            });
            Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(",")))
        }
        _ => {
            let message = format!("`{}` is given {} times, and takes one value", shown(name), words.len());
            Err(Unusable { message, help: HELP })
        }
    }
}

/// What a list's items are to be, where the list may also be something else.
fn items<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let schema = resolved(root, schema);
    let others = ["anyOf", "oneOf"].into_iter().filter_map(|it| schema.get(it)?.as_array()).flatten();
    schema.get("items").or_else(|| others.map(|it| resolved(root, it)).find_map(|it| it.get("items")))
}

fn unfit(name: &str, text: &str, kinds: &Kinds) -> Unusable {
    let message = format!("`{}` must be {}, and `{}` is not", shown(name), kinds.words(), shown(text));
    Unusable { message, help: HELP }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Object,
}

impl Kind {
    const ALL: [(Kind, &'static str, &'static str); 7] = [
        (Kind::Null, "null", "null"),
        (Kind::Boolean, "boolean", "true or false"),
        (Kind::Integer, "integer", "an integer"),
        (Kind::Number, "number", "a number"),
        (Kind::Text, "string", "a text"),
        (Kind::List, "array", "a JSON array"),
        (Kind::Object, "object", "a JSON object"),
    ];

    fn of_value(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::Text,
            Value::Array(_) => Kind::List,
            Value::Object(_) => Kind::Object,
        }
    }
}

/// What a value may be; nothing known means anything.
#[derive(Debug, Default)]
struct Kinds(BTreeSet<Kind>);

impl Kinds {
    fn of(root: &Value, schema: &Value, depth: usize) -> Kinds {
        let schema = resolved(root, schema);
        let mut res = BTreeSet::new();
        let mut named = |name: &str| res.extend(Kind::ALL.iter().find(|it| it.1 == name).map(|it| it.0));
        match schema.get("type") {
            Some(Value::String(name)) => named(name),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(named),
            _ => {}
        }
        if !res.is_empty() || depth > DEEPEST {
            return Kinds(res);
        }
        res.extend(schema.get("const").map(Kind::of_value));
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        res.extend(values.map(Kind::of_value));
        for key in ["anyOf", "oneOf"] {
            for it in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                res.extend(Kinds::of(root, it, depth + 1).0);
            }
        }
        Kinds(res)
    }

    /// Is it a list, or nothing?
    fn is_list_only(&self) -> bool {
        let other = |it: &Kind| !matches!(it, Kind::List | Kind::Null);
        self.0.contains(&Kind::List) && !self.0.iter().any(other)
    }

    /// The word as JSON; `None` where it is nothing of what is wanted.
    fn read(&self, text: &str) -> Option<String> {
        if self.0.contains(&Kind::Text) {
            return Some(quoted(text));
        }
        let read = json(text);
        if self.0.is_empty() {
            return Some(read.unwrap_or_else(|| quoted(text)));
        }
        let read = read?;
        let value: Value = serde_json::from_str(&read).ok()?;
        let wanted = self.0.iter().any(|it| match it {
            Kind::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
            }
            it => Kind::of_value(&value) == *it,
        });
        wanted.then_some(read)
    }

    fn words(&self) -> String {
        let named = Kind::ALL.iter().filter(|it| self.0.contains(&it.0)).map(|it| it.2);
        named.collect::<Vec<_>>().join(" or ")
    }
}

/// The text as it was typed, where it is JSON.
fn json(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).ok().map(|it| it.get().to_owned())
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A word as a message repeats it.
fn shown(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{"properties":{
        "text":{"type":"string"},"count":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},
        "maybe":{"type":["integer","null"]},"either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
        "mode":{"enum":["a","b"]},"level":{"enum":[1,2]},"tags":{"type":"array","items":{"type":"string"}},
        "ids":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]},
        "where":{"$ref":"#/$defs/where"},"any":{}},"$defs":{"where":{"type":"object"}}}"##;

    /// The words are separated by `|`.
    #[track_caller]
    fn check(words: &str, want: &str) {
        let schema = RawJson::parse(SCHEMA.into()).unwrap();
        let pairs: Result<Vec<Pair>, Unusable> = words.split('|').map(pair).collect();
        let got = pairs.and_then(|it| fit(&it, Some(&schema)));
        assert_eq!(got.map_or_else(|it| it.message, |it| it.as_str().to_owned()), want);
    }

    #[test]
    fn a_word_becomes_what_the_schema_wants() {
        check("text=5|count=5|deep=true|ratio=2.50", r#"{"text":"5","count":5,"deep":true,"ratio":2.50}"#);
        check("count=12345678901234567890123", r#"{"count":12345678901234567890123}"#);
        check("text=a=b|text2=", r#"{"text":"a=b","text2":""}"#);
        check("maybe=null|either=7|mode=a|level=2", r#"{"maybe":null,"either":"7","mode":"a","level":2}"#);
        check(r#"where={"a": 1}"#, r#"{"where":{"a": 1}}"#);
        check("any=7|other=x y|third=[1]", r#"{"any":7,"other":"x y","third":[1]}"#);
    }

    #[test]
    fn what_is_said_several_times_is_a_list() {
        check("tags=a|tags=5", r#"{"tags":["a","5"]}"#);
        check("tags=a", r#"{"tags":["a"]}"#);
        check(r#"tags=["a"]"#, r#"{"tags":["a"]}"#);
        check("ids=1|ids=2", r#"{"ids":[1,2]}"#);
        check("ids=1|ids=x", "`ids` must be an integer, and `x` is not");
        check("text=a|text=b", "`text` is given 2 times, and takes one value");
    }

    #[test]
    fn json_is_taken_at_its_word() {
        check(r#"text:=5|tags:=["x"]"#, r#"{"text":5,"tags":["x"]}"#);
        check("text:=x", "the value of `text` is no JSON");
    }

    #[test]
    fn what_fits_nothing_says_what_would() {
        check("count=many", "`count` must be an integer, and `many` is not");
        check("count=1.5", "`count` must be an integer, and `1.5` is not");
        check("deep=yes", "`deep` must be true or false, and `yes` is not");
        check("maybe=x", "`maybe` must be null or an integer, and `x` is not");
        check("where=x", "`where` must be a JSON object, and `x` is not");
    }

    #[test]
    fn without_a_schema_words_are_what_they_look_like() {
        let got = fit(&[pair("a=1").unwrap(), pair("b=x").unwrap()], None).unwrap();
        assert_eq!(got.as_str(), r#"{"a":1,"b":"x"}"#);
    }
}
