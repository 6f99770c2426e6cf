#![doc = include_str!("m0304.md")]
