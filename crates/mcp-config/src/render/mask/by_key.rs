//! Masks the secrets of a configuration that has nothing to do with MCP, by their keys.

use std::collections::BTreeSet;

use crate::render::mask::{MaskedText, Masker, Visibility};
use crate::syntax::{self, Content, Node, Syntax};

/// The values that are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownValues<'a> {
    /// The starts of the values that the program has read. Others may be secrets under a misspelt key.
    pub(crate) read: &'a BTreeSet<usize>,
    /// The keys of secrets. Without any, the whole text is shown.
    pub(crate) secret_keys: &'a [&'a str],
}

impl MaskedText {
    /// Masks secrets, comments, and of a text that cannot be parsed everything but punctuation.
    pub(crate) fn by_key(text: &str, syntax: Syntax, shown: ShownValues<'_>) -> MaskedText {
        let mut masker = Masker { syntax, visible: Vec::new(), hidden: Vec::new() };
        if shown.secret_keys.is_empty() {
            masker.visible.push(0..text.len());
            return masker.into_masked_text(text, &[]);
        }
        let parsed = syntax::parse_as(text, syntax);
        masker.hidden = parsed.dropped;
        if let Some(root) = &parsed.root {
            let mut targets = BTreeSet::new();
            shown.collect_targets(root, false, &mut targets);
            KeyMasker { masker: &mut masker, text, shown, targets }.mark_value(root, false);
        }
        masker.into_masked_text(text, &[])
    }
}

impl ShownValues<'_> {
    /// Collects the starts of the values with an anchor that a secret contains or is an alias of. `is_secret`: the node
    /// is below the key of a secret.
    fn collect_targets(self, node: &Node, is_secret: bool, targets: &mut BTreeSet<usize>) {
        if let Content::Shared(target) = &node.content
            && is_secret
        {
            targets.insert(target.span.start);
        }
        for member in node.members().unwrap_or_default() {
            let is_secret = is_secret || self.secret_keys.contains(&&*member.key.text);
            self.collect_targets(&member.value, is_secret, targets);
        }
        node.items().unwrap_or_default().iter().for_each(|it| self.collect_targets(it, is_secret, targets));
    }

    /// Whether a value was read, and contains no key of a secret.
    fn is_shown(self, node: &Node) -> bool {
        // Without the space of YAML, the value contains the key.
        let has_key = |text: &str| self.secret_keys.iter().any(|it| text.contains(&format!("{it}:")));
        self.read.contains(&node.span.start) && !node.text().is_some_and(has_key)
    }
}

/// Marks the values that are shown, by the keys above them.
struct KeyMasker<'a> {
    masker: &'a mut Masker,
    text: &'a str,
    shown: ShownValues<'a>,
    /// The starts of the values that an alias makes secret.
    targets: BTreeSet<usize>,
}

impl KeyMasker<'_> {
    /// Marks the values at and below a node. `is_secret`: it is below the key of a secret.
    fn mark_value(&mut self, node: &Node, is_secret: bool) {
        let KeyMasker { masker, text, shown, targets } = self;
        if let Content::Shared(target) = &node.content
            && target.span != node.span
        {
            masker.visible.push(node.span.clone());
            return;
        }
        let is_secret = is_secret || targets.contains(&node.span.start);
        match node.resolved_content() {
            Content::Mapping(members) => {
                for member in members {
                    let key = &member.key;
                    self.masker.show_table_header(&member.value, self.text);
                    self.masker.show_key(&key.span, Some(&key.text), self.text, Visibility::KeysOnly);
                    let is_key_of_secret = self.shown.secret_keys.contains(&&*key.text);
                    self.mark_value(&member.value, is_secret || is_key_of_secret);
                }
            }
            Content::Sequence(items) => {
                for item in items {
                    self.masker.show_table_header(item, self.text);
                    self.mark_value(item, is_secret);
                }
            }
            _ if !is_secret && shown.is_shown(node) => masker.visible.push(node.span.clone()),
            _ => masker.hide(node, text),
        }
    }
}
