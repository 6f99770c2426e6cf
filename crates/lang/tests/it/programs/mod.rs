//! Programs and the compiler's output for them: the examples, the reference, the explanations of
//! diagnostics, and the rules one by one.

mod choices;
mod common;
mod examples;
mod explanations;
mod rules;
mod wrong;
