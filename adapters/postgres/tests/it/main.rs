//! PostgreSQL stores.

mod arrays;
mod changed;
mod conformance;
mod crash;
mod dates;
mod decimals;
mod engine;
mod generated;
mod guards;
mod histories;
mod hostile;
mod logged;
mod logs;
mod mapping;
mod migration;
mod numbered;
mod operations;
mod ordered;
mod programs;
mod replicated;
mod sent;
mod spelling;
mod support;
mod times;
mod tls;
mod unwritten;
