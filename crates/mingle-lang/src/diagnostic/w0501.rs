#![doc = include_str!("w0501.md")]
