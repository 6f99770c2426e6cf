#![doc = include_str!("m0302.md")]
