//! The Mingle language: from text to a checked, split program.
