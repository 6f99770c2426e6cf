//! Programs with mistakes, and where the compiler of their host shows them.

#[test]
fn mistakes_are_errors_of_the_host() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
