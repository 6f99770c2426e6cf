#![doc = include_str!("m0402.md")]
