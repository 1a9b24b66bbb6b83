//! What changed between two catalogs, as data: a host tells its clients, a log line says what a reload did.
//!
//! Nothing here says why; positions do not count, only what stands under each name.

use std::collections::HashMap;

use serde::Serialize;

use crate::{Catalog, ExposedName, ExposedTool};

/// The tools that differ, by exposed name. A name stands in one list at most, once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// Shown now and not before, in the new order.
    pub added: Vec<ExposedName>,
    /// Shown before and not now, in the old order.
    pub removed: Vec<ExposedName>,
    /// Shown both times, but of another server or with another definition, byte for byte; in the new order.
    pub changed: Vec<ExposedName>,
}

impl Difference {
    /// Is every tool the same?
    pub fn is_empty(&self) -> bool {
        let Difference { added, removed, changed } = self;
        [added, removed, changed].iter().all(|it| it.is_empty())
    }
}

impl Catalog {
    /// Says which tools differ.
    pub fn difference(old: &Catalog, new: &Catalog) -> Difference {
        let mut left: HashMap<&ExposedName, &ExposedTool> =
            old.tools().iter().map(|it| (&it.name, it)).collect();
        let mut res = Difference::default();
        for it in new.tools() {
            match left.remove(&it.name) {
                None => res.added.push(it.name.clone()),
                Some(was) if was.server != it.server || was.tool.raw != it.tool.raw => {
                    res.changed.push(it.name.clone());
                }
                Some(_) => {}
            }
        }
        res.removed =
            old.tools().iter().map(|it| &it.name).filter(|it| left.contains_key(it)).cloned().collect();
        res
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builtins;
    use crate::catalog::tests::dominds;

    #[track_caller]
    fn check(old: &str, new: &str, want: &str) {
        let build = |text: &str| match text {
            "" => Catalog::empty(),
            text => Catalog::build(&Builtins::default(), &dominds(text)),
        };
        let got = Catalog::difference(&build(old), &build(new));
        assert_eq!(serde_json::to_string(&got).unwrap(), want);
        assert_eq!(got.is_empty(), want == r#"{"added":[],"removed":[],"changed":[]}"#);
    }

    #[test]
    fn dm_095_a_difference_names_what_came_went_and_changed() {
        let nothing = r#"{"added":[],"removed":[],"changed":[]}"#;
        check("", "", nothing);
        check("a: x y; b: z", "b: z; a: y x", nothing);
        check("", "a: x y", r#"{"added":["x","y"],"removed":[],"changed":[]}"#);
        check("a: x y", "", r#"{"added":[],"removed":["x","y"],"changed":[]}"#);
        check("a: x y; b: z", "a: y w; b: z v", r#"{"added":["w","v"],"removed":["x"],"changed":[]}"#);
        // The name stays, its owner does not; the name stays, what stands behind it does not.
        check("a: x", "b: x", r#"{"added":[],"removed":[],"changed":["x"]}"#);
        check("a: x", "a: p_x |replace=p_>", r#"{"added":[],"removed":[],"changed":["x"]}"#);
    }
}
