#![doc = include_str!("m0202.md")]
