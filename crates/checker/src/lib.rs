//! Checks histories: is this history serializable, causal, mixed-consistent?
//!
//! A history is the reads and writes of registers by sessions, with the answers they got. Values
//! are unique for each key, so every read leads back to its writer, and the models become questions
//! about graphs: which orders do sessions, reads, recorded writes and real time force, and do they
//! close a cycle?
//!
//! In reading order:
//!
//! - [`history`]: histories as data, and the conditions for a well-formed one.
//! - [`jsonl`] and [`text`]: the two file formats.
//! - [`model`]: the models that a history can be checked against.
//! - [`verdict`]: the result of a check, with the counterexample as data and as text.
//! - [`check()`]: the check, and mixed consistency as a check of projections.
//! - `index` leads reads back to writers; `graph` and `clocks` are orders and cycles; `weak` has
//!   read atomicity and causal convergence, `causal` causality alone, `serial` the models that
//!   require one order, and `converge` eventual agreement.
//! - [`geo`]: runs of the geo-replicated store, whose values merge and whose vectors are recorded.
//! - [`limits`]: the named bounds. A check that reaches a bound reports it, and never guesses.
//!
//! # Departures
//!
//! - MixT's levels form a lattice of any shape; a history knows the four built-in ones, and an
//!   event at another level carries the level that its engine was opened with.
//!   to its technical report).

mod causal;
mod check;
mod clocks;
mod converge;
pub mod geo;
mod graph;
pub mod history;
mod index;
pub mod jsonl;
pub mod limits;
pub mod model;
mod report;
mod serial;
pub mod text;
pub mod verdict;
mod weak;

pub use check::{check, model_of, project};
pub use history::{History, INITIAL, Interval, Kind, Malformed, Operation, Outcome, Transaction};
pub use jsonl::{ReadError, read_jsonl, write_jsonl};
pub use model::Model;
pub use text::{read_text, write_text};
pub use verdict::{Anomaly, BadRead, Basis, Counterexample, Edge, Verdict, Why, Witness};
