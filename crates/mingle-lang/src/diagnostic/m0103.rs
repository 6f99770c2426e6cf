#![doc = include_str!("m0103.md")]
