//! Programs with mistakes, and the places where the host's compiler shows them.

/// Builds a project for each page, which takes a minute: `cargo xtask check --long` does. A test of the library
/// compares the same pages with the tokens that the macro gives.
#[test]
fn mistakes_are_errors_of_the_host() {
    if std::env::var_os("MINGLE_LONG").is_none() {
        println!("left to the long run: MINGLE_LONG is not set");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
