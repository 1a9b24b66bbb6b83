//! Skills of `skills/list` and `skills/get` results (extension `io.modelcontextprotocol/skills`, SEP-2640).
//!
//! A skill is a `SKILL.md` file with instructions for a model, and files to which it refers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::page::{ItemDefinition, ListItem, Page, read_list};
use crate::json::raw::RawJson;

/// The name of the extension for skills.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// A skill as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The name in the frontmatter.
    pub name: String,
    /// The description in the frontmatter.
    pub description: String,
    /// Its files, `SKILL.md` included. `None`: the server does not list them.
    pub files: Option<Vec<SkillFile>>,
    /// The complete definition.
    pub raw: RawJson,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SkillFile {
    /// The URI.
    pub uri: String,
    /// `sha256:` and the SHA-256 hash of the file in 64 lowercase hexadecimal digits.
    pub digest: String,
    /// The length in bytes.
    pub size: u64,
}

/// Reads the result of `skills/list`. Fails if it is not a list. The result is at the start of `result`,
/// which need not be validated; what follows it is ignored.
pub fn read_skills<B: AsRef<[u8]> + ?Sized>(result: &B) -> Result<Page<Skill>, serde_json::Error> {
    read_list::<SkillJson>(result.as_ref(), "skills")
}

/// Reads the result of `skills/get`. Fails if it has no valid skill.
pub fn read_skill_result(result: &RawJson) -> Result<Skill, serde_json::Error> {
    #[derive(Deserialize)]
    struct ResultJson<'a> {
        #[serde(borrow)]
        skill: &'a RawValue,
    }
    let ResultJson { skill } = result.read()?;
    let json: SkillJson = serde_json::from_str(skill.get())?;
    Ok(json.into_skill(RawJson::copy_of(skill)))
}

#[derive(Deserialize)]
struct SkillJson {
    uri: String,
    frontmatter: FrontmatterJson,
    resources: FilesJson,
}

#[derive(Deserialize)]
struct FrontmatterJson {
    name: String,
    description: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FilesJson {
    Listed(Vec<SkillFile>),
    NotListed(DynamicJson),
}

/// The string `dynamic`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DynamicJson {
    Dynamic,
}

impl SkillJson {
    fn into_skill(self, raw: RawJson) -> Skill {
        let SkillJson { uri, frontmatter: FrontmatterJson { name, description }, resources } = self;
        let files = match resources {
            FilesJson::Listed(files) => Some(files),
            FilesJson::NotListed(DynamicJson::Dynamic) => None,
        };
        Skill { uri, name, description, files, raw }
    }
}

impl<'a> ListItem<'a> for SkillJson {
    type Output = Skill;
    const LABEL: &'static str = "a skill";

    fn read(self, definition: ItemDefinition<'a>) -> Result<Skill, String> {
        Ok(self.into_skill(definition.raw))
    }
}

impl Skill {
    /// Returns the file with this URI, if the server lists it.
    pub fn file(&self, uri: &str) -> Option<&SkillFile> {
        self.files.iter().flatten().find(|file| file.uri == uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d","license":"MIT"},
        "resources":[{"uri":"skill://a/SKILL.md","digest":"sha256:0","size":7,"x":1}],"_meta":{}}"#;
    const DYNAMIC: &str = r#"{"uri":"u","frontmatter":{"name":"b","description":""},"resources":"dynamic"}"#;

    fn json(text: String) -> RawJson {
        RawJson::parse(text.into()).unwrap()
    }

    fn read(skill: &str) -> Result<Skill, serde_json::Error> {
        read_skill_result(&json(format!(r#"{{"ttlMs":0,"skill":{skill}}}"#)))
    }

    #[test]
    fn skill_has_its_frontmatter_and_files() {
        let skill = read(LISTED).unwrap();
        assert_eq!((&*skill.name, &*skill.description), ("a", "d"));
        assert_eq!(skill.raw.as_str(), LISTED);
        assert_eq!(skill.file("skill://a/SKILL.md").unwrap().size, 7);
        assert_eq!(skill.file("skill://a/other.md"), None);
        assert_eq!(read(DYNAMIC).unwrap().files, None);
    }

    #[test]
    fn invalid_skill_leaves_the_others() {
        let page = json(format!(r#"{{"skills":[{DYNAMIC},{{"uri":"v"}},{LISTED}],"nextCursor":"2"}}"#));
        let page = read_skills(&page).unwrap();
        assert_eq!(page.items.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(page.rejected.len(), 1);
        assert_eq!(page.next_cursor.unwrap().as_json(), "\"2\"");
    }

    #[test]
    fn invalid_skill_is_an_error() {
        for text in [
            "{}",
            r#"{"uri":"u","frontmatter":{"name":"a"},"resources":[]}"#,
            r#"{"uri":"u","frontmatter":{"name":"a","description":""},"resources":"static"}"#,
            r#"{"uri":"u","frontmatter":{"name":"a","description":""},"resources":[{"uri":"u","size":-1}]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
