//! `views`: lists the views of a configuration, or prints what one shows.

use std::path::Path;

use serde::Serialize;

use crate::args::{Format, ViewsArgs};
use crate::config::context::Context;
use crate::config::locate::locate_config;
use crate::config::views::Views;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::output::table::{Column, table};

/// The JSON document of `views`.
#[derive(Serialize)]
struct ViewsJson<'a> {
    path: String,
    views: Vec<ViewJson<'a>>,
}

/// A view in the JSON document.
#[derive(Serialize)]
struct ViewJson<'a> {
    name: &'a str,
    /// The selections as they are written; empty if the view shows everything.
    shows: &'a str,
}

/// Lists the views, or only the one with the name. Blocks.
pub(crate) fn run(context: &Context, args: &ViewsArgs) -> Result<Report, Failure> {
    let ViewsArgs { file, view } = args;
    let config = locate_config(file.as_deref().unwrap_or(Path::new(""))).map_err(Failure::new)?;
    let views = Views::read(&config.path)?;
    if let Some(name) = view {
        views.find(name)?;
    }
    let is_listed = |name: &str| view.as_deref().is_none_or(|only| only == name);
    let rows: Vec<(&str, String)> = views.iter().filter(|(name, _)| is_listed(name)).collect();
    let out = match context.format {
        Format::Json => {
            let views_json = rows.iter().map(|(name, shows)| ViewJson { name, shows }).collect();
            json::document(&ViewsJson { path: views.path.display().to_string(), views: views_json })
        }
        Format::Text if rows.is_empty() => format!("{} has no views\n", views.path.display()),
        Format::Text => {
            let shows = |shows: String| if shows.is_empty() { "everything".to_owned() } else { shows };
            let rows: Vec<Vec<String>> =
                rows.into_iter().map(|(name, text)| vec![name.to_owned(), shows(text)]).collect();
            table(&["VIEW", "SHOWS"].map(Column::Text), &rows, context.console.table_style())
        }
    };
    Ok(Report::out(out))
}
