//! The views of a configuration: named selections of its servers, tools, prompts and resources.
//!
//! They are in the file `mcp.views` beside the configuration, one per line, and select what the scope of a token does.

use std::path::{Path, PathBuf};

use mcp_host_gateway::ScopeMap;
use mcp_host_registry::{HintSelection, Selection, ViewFilter};

use crate::config::file_error::ConfigFileError;
use crate::runtime::bounded_read::read_file;

/// The name of the file.
const VIEWS_FILE: &str = "mcp.views";

/// The maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The views of a configuration.
#[derive(Debug)]
pub(crate) struct Views {
    /// The file, which may be missing.
    pub(crate) path: PathBuf,
    map: ScopeMap,
}

/// The file of the views of a configuration.
pub(crate) fn views_path(configuration: &Path) -> PathBuf {
    configuration.with_file_name(VIEWS_FILE)
}

impl Views {
    /// Reads the views of a configuration; none without the file. Blocks.
    pub(crate) fn read(configuration: &Path) -> Result<Views, ConfigFileError> {
        let path = views_path(configuration);
        if !path.exists() {
            return Ok(Views { path, map: ScopeMap::default() });
        }
        let failed = |message: String| ConfigFileError {
            path: path.display().to_string(),
            message: format!("{}: {message}", path.display()),
            help: Some(
                "each line is a name, then `servers=a,b*`, `tools=…`, `prompts=…`, `resources=…`".to_owned(),
            ),
        };
        let text =
            read_file(&path, MAX_BYTES).map_err(|error| failed(format!("it cannot be read: {error}")))?;
        let map = ScopeMap::read(&text)
            .map_err(|error| failed(format!("line {}: {}", error.line, error.reason)))?;
        Ok(Views { path, map })
    }

    /// The names with the words that describe what each shows; a view without selections shows everything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.map.iter().map(|(name, view)| (name, view.map(selection_words).unwrap_or_default()))
    }

    /// What a view selects, as it is written; empty if it shows everything.
    pub(crate) fn selections(&self, name: &str) -> Result<String, ConfigFileError> {
        Ok(self.find(name)?.as_ref().map(selection_words).unwrap_or_default())
    }

    /// The filter of a view; `None` if it shows everything.
    pub(crate) fn find(&self, name: &str) -> Result<Option<ViewFilter>, ConfigFileError> {
        match self.map.iter().find(|(known, _)| *known == name) {
            Some((_, view)) => Ok(view.cloned()),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> ConfigFileError {
        let path = self.path.display();
        let names: Vec<&str> = self.map.iter().map(|(name, _)| name).collect();
        let message = if names.is_empty() {
            format!("there is no view `{name}`: {path} has no views")
        } else {
            format!("there is no view `{name}` in {path}; the views are: {}", names.join(", "))
        };
        let help = Some(format!("write a line such as `{name} servers=a,b* tools=…` to {path}"));
        ConfigFileError { path: path.to_string(), message, help }
    }
}

/// The selections of a view, as they are written: `servers=a,b* tools=x`.
fn selection_words(view: &ViewFilter) -> String {
    let ViewFilter { toolsets, tools, prompts, resources, hints } = view;
    let mut words = Vec::new();
    for (key, selection) in
        [("servers", toolsets), ("tools", tools), ("prompts", prompts), ("resources", resources)]
    {
        match selection {
            Selection::Inherit => {}
            Selection::None => words.push(format!("{key}=")),
            Selection::Patterns(patterns) => words.push(format!("{key}={}", patterns.join(","))),
        }
    }
    if *hints == HintSelection::ApprovedReads {
        words.push("hints=reads".to_owned());
    }
    words.join(" ")
}
