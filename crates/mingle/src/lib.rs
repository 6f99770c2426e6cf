//! Mixed-consistency transactions: connect a program to its stores and call it.
