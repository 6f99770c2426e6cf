//! The language: programs, what is wrong with them, and the pages that show them.

mod broken;
mod generated;
mod grammar;
mod lines;
mod meaning;
mod programs;
mod readme;
