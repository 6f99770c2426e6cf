#![doc = include_str!("m0401.md")]
