#![doc = include_str!("m0101.md")]
