//! The language: programs, what is wrong with them, and the pages that show them.

mod broken;
mod grammar;
mod programs;
mod readme;
