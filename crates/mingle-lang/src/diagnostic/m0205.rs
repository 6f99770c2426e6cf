#![doc = include_str!("m0205.md")]
