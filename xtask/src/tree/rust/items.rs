//! What one visit of a Rust file finds: its modules, the parts that are compiled for tests only, public fields with a
//! condition, and tuples as parameters.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Field, File, FnArg, ImplItem, Item, ItemStruct, Local, Meta, Signature, Stmt, Token,
    TypeTuple, Variant, Visibility,
};

use super::module_files::module_folder;

/// The folders of test code, and the crate of test helpers.
const TEST_FOLDERS: [&str; 4] = ["tests", "benches", "examples", "mcp-testkit"];

/// Whether the whole file is test code because of its path.
pub(super) fn is_test_path(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    name == "tests.rs" || folders.iter().any(|folder| TEST_FOLDERS.contains(folder))
}

/// What one visit of a file finds.
#[derive(Debug, Default)]
pub(super) struct FileItems {
    /// The files, without their extension, that are declared by `mod name;`.
    pub modules: Vec<String>,
    /// Those of them that are compiled for tests only.
    pub test_modules: Vec<String>,
    /// Whether the file as a whole is test code (`#![cfg(test)]`).
    pub is_test: bool,
    /// The bytes of the items that are compiled for tests only.
    pub test_code: Vec<Range<usize>>,
    /// The lines of the public fields with a `#[cfg]`, except those of non-exhaustive structs.
    pub conditional_fields: Vec<usize>,
    /// The offsets of the tuples of three or more in the types of parameters.
    pub tuple_parameters: Vec<usize>,
}

/// Visits a file. `path` is its path in the workspace.
pub(super) fn collect_items(path: &str, file: &File) -> FileItems {
    let is_test = file.attrs.iter().any(is_test_condition);
    let mut visitor =
        ItemVisitor { folder: module_folder(path), items: FileItems { is_test, ..FileItems::default() } };
    visitor.visit_file(file);
    visitor.items
}

/// Finds the items of one file.
struct ItemVisitor<'a> {
    folder: &'a str,
    items: FileItems,
}

impl ItemVisitor<'_> {
    /// Records the bytes of an item if its attributes make it test code.
    fn record_if_test(&mut self, attributes: &[Attribute], node: &impl Spanned) {
        if !attributes.iter().any(is_test_condition) {
            return;
        }
        let range = node.span().byte_range();
        if !self.items.test_code.iter().any(|outer| outer.contains(&range.start)) {
            self.items.test_code.push(range);
        }
    }
}

impl<'ast> Visit<'ast> for ItemVisitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = attributes(item);
        self.record_if_test(attributes, item);
        if let Item::Mod(module) = item
            && module.semi.is_some()
        {
            let file = format!("{}/{}", self.folder, module.ident);
            if attributes.iter().any(is_test_condition) {
                self.items.test_modules.push(file.clone());
            }
            self.items.modules.push(file);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(function) = item {
            self.record_if_test(&function.attrs, item);
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let before = self.items.conditional_fields.len();
        visit::visit_item_struct(self, item);
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("non_exhaustive")) {
            self.items.conditional_fields.truncate(before);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.record_if_test(&field.attrs, field);
        let has_condition = field.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        if has_condition && matches!(field.vis, Visibility::Public(_)) {
            self.items.conditional_fields.push(field.span().start().line);
        }
        visit::visit_field(self, field);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        for parameter in &signature.inputs {
            if let FnArg::Typed(parameter) = parameter {
                TupleVisitor { offsets: &mut self.items.tuple_parameters }.visit_type(&parameter.ty);
            }
        }
        visit::visit_signature(self, signature);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.record_if_test(&variant.attrs, variant);
        visit::visit_variant(self, variant);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Local(Local { attrs, .. }) = statement {
            self.record_if_test(attrs, statement);
        }
        visit::visit_stmt(self, statement);
    }
}

/// Finds tuples of three or more inside a type.
struct TupleVisitor<'a> {
    offsets: &'a mut Vec<usize>,
}

impl<'ast> Visit<'ast> for TupleVisitor<'_> {
    fn visit_type_tuple(&mut self, tuple: &'ast TypeTuple) {
        if tuple.elems.len() >= 3 {
            self.offsets.push(tuple.span().byte_range().start);
        }
        visit::visit_type_tuple(self, tuple);
    }
}

/// The attributes of an item of any kind.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `cfg(test)` or `cfg(all(test, …))`: never true in a product build.
fn is_test_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(|condition| is_test_only(&condition))
}

/// Whether a condition is false in every product build.
fn is_test_only(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        let parts = list.parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated);
        parts.map(|parts| parts.into_iter().collect::<Vec<_>>()).unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(is_test_only),
        Meta::List(list) if list.path.is_ident("any") => parts(list).iter().all(is_test_only),
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}
