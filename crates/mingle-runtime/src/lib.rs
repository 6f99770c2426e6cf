//! Runs a split program phase after phase over its stores.
