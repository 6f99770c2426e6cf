//! Calls inside a transaction that the application has begun itself.

#[path = "inside/refused.rs"]
mod refused;
#[path = "inside/shop.rs"]
mod shop;
#[path = "inside/together.rs"]
mod together;
