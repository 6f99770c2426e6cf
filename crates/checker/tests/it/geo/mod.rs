//! The checkers of runs of the geo-replicated store: on sound runs, on runs that break exactly one
//! promise, against brute force, and on large runs.

mod broken;
mod brute;
mod cuts;
mod ends;
mod holes;
mod items;
mod random;
mod scale;
mod script;
mod store;
mod strong;
mod translate;
