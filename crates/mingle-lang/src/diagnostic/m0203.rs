#![doc = include_str!("m0203.md")]
