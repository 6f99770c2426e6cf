#![doc = include_str!("m0206.md")]
