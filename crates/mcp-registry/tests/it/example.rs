//! The example of filters and views.

#[path = "../../examples/filters_and_views.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod filters_and_views;

#[test]
fn example_filters_renames_and_narrows() {
    let lines = filters_and_views::run().unwrap();
    assert_eq!(
        lines,
        [
            "files read.file: files__read-file",
            "files write.file: files__write-file",
            "files delete.file: hidden",
            "git log: git_log",
            "git diff: git_diff",
            "git push: hidden",
            "reviewer: files__read-file, git_log, git_diff",
            "read.file is files__read-file of files",
            r#"added: ["files__list"], removed: []"#,
        ]
    );
}
