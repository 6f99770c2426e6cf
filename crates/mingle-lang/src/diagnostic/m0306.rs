#![doc = include_str!("m0306.md")]
