//! The examples behave as documented.

use crate::support::{Setup, scenarios};

#[test]
fn the_examples_do_what_they_say() {
    for scenario in scenarios::all() {
        println!("{}", scenario.name);
        (scenario.run)(&Setup::new(scenario.text));
    }
}
