#![doc = include_str!("w0403.md")]
