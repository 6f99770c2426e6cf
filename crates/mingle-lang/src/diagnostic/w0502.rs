#![doc = include_str!("w0502.md")]
