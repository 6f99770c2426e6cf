//! The demonstration and the benchmarks.
