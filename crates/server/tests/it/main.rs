//! A program over HTTP, and workers beside stores.

mod http;
mod worker;
