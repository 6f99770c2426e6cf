#![doc = include_str!("m0303.md")]
