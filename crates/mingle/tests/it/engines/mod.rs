//! Programs over real servers.

mod contest;
mod documents;
mod dying;
mod enums;
mod keys;
mod killed;
mod legacy;
mod matrix;
mod silent;
mod site;
mod takes;
mod types;
mod uniques;
