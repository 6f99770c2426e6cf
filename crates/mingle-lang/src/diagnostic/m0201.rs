#![doc = include_str!("m0201.md")]
