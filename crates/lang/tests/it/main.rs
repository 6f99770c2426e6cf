//! Tests of the language: programs, their mistakes, and the pages that show them.

mod broken;
mod documents;
mod draws;
mod enums;
mod files;
mod generated;
mod grammar;
mod indexes;
mod lines;
mod meaning;
mod programs;
mod readme;
mod tokens;
mod uniques;
