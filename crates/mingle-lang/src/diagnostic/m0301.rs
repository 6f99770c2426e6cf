#![doc = include_str!("m0301.md")]
