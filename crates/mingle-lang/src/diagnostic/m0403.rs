#![doc = include_str!("m0403.md")]
