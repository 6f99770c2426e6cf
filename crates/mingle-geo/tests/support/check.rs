//! Checks of what sessions saw.
