//! Calls inside a transaction that the application has begun itself.

#[macro_use]
#[path = "inside/driver.rs"]
mod driver;
#[path = "inside/refused.rs"]
mod refused;
#[path = "inside/shop.rs"]
mod shop;
#[path = "inside/sqlx.rs"]
mod sqlx_own;
#[path = "inside/together.rs"]
mod together;
