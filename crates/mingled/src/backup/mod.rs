//! Backups: a copy of all items of a data center at one vector, in one file.
//!
//! ```text
//!   data center ─ Backup ─► frames ─ BACKUP NEXT ─► fetch ─► file ─ Reader ─► check
//!                                                                        ├──► restore ─► journal of a new cluster
//!                                                                        └──► dump ─► lines of JSON, commands
//! ```
//!
//! - [`Backup`] makes the frames in the data center, which goes on serving its clients.
//! - [`fetch`](fn@fetch) gets them as a client, and writes the file.
//! - [`Reader`] reads it back, and refuses a file that is damaged or cut off.
//! - [`check`](fn@check) counts the contents, [`restore`](fn@restore) founds a data center of a new cluster with them, and
//!   [`dump`] prints them.
//!
//! All items have the vector of the header: the transactions that it covers are in the backup as a whole, with all that
//! they depend on, and no others are. Outcomes of transactions are not in it, nor is the order of strong transactions:
//! a restored cluster knows no transaction that was under way.

mod check;
pub mod dump;
mod fetch;
mod frame;
mod link;
mod make;
mod read;
mod restore;

pub use check::{Report, check};
pub use fetch::{Fetched, fetch};
pub use frame::{FRAME_BYTES_MAX, Header, Totals, VERSION};
pub use link::{Access, Link};
pub use make::Backup;
pub use read::{Damage, FileError, Reader};
pub use restore::{Founding, RestoreError, Restored, restore};
