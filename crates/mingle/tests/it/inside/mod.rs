//! Calls inside a transaction that the application has begun itself.

#[macro_use]
mod driver;
mod refused;
mod shop;
mod sqlx_own;
mod together;
