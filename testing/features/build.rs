//! Nothing is to be built: a package has build dependencies only with a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
