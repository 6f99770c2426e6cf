#![doc = include_str!("m0307.md")]
