#![doc = include_str!("m0204.md")]
