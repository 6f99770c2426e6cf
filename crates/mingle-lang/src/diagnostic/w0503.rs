#![doc = include_str!("w0503.md")]
