//! The embedded engine: stores of every level in this process, in memory or in a folder.
