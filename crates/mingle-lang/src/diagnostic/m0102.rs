#![doc = include_str!("m0102.md")]
