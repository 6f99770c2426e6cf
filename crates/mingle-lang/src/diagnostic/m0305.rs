#![doc = include_str!("m0305.md")]
