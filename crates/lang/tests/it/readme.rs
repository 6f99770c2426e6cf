//! The README shows the compiler's actual output.

use mingle_lang::diagnostic::render_human;
use mingle_lang::explain;

fn blocks() -> Vec<String> {
    let readme = include_str!("../../../../README.md");
    let parts = readme.split("```text\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_diagnostic_is_real() {
    let text = include_str!("../../../../examples/contest_rejected.mingle");
    let checked = mingle_lang::check(text);
    let rendered = render_human(
        &checked.source,
        "examples/contest_rejected.mingle",
        &checked.diagnostics,
        false,
    );
    assert!(
        rendered.contains(blocks()[0].trim_end()),
        "the README shows another diagnostic than:\n{rendered}"
    );
}

#[test]
fn the_phases_are_real() {
    let checked = mingle_lang::check(include_str!("../../../../examples/message_groups.mingle"));
    let program = checked.program.as_ref().expect("the example is right");
    let plan = program.plan("add_post").expect("the example has it");
    let rendered = explain::render(&explain::explain(&checked.source, program, plan));
    assert_eq!(rendered.trim_end(), blocks()[1].trim_end());
}
