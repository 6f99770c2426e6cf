//! Redis's commands on items, without I/O.
//!
//! A [`Command`] is an entry of the one static table ([`all`]), from which `COMMAND` answers too. To run
//! one, the server reads the items of its keys ([`Command::keys`]) at one snapshot and calls
//! [`Command::run`] with them. The command returns its reply, and the operations to commit are in
//! [`Work`]; it reads no clock and sends nothing.
//!
//! **Classes.** A command is *strong* if its effect depends on data that it reads, or if its answer may be
//! given once only; otherwise it is *causal* ([`Class`]). The class may depend on the arguments: `SET`
//! is causal, `SET` with `NX` strong. It may depend on the data too: `ZINCRBY` adds whole numbers
//! causally, but a sum with a fraction needs the score itself. Such a command returns
//! [`Fault::Upgrade`], and the server runs it again in a strong transaction. Any write of a key under
//! `strong_only` is strong.
//!
//! **Values.** A string that is an integer in its shortest form is stored as an integer, so `INCR` can
//! add to it; all other strings are stored as bytes. Scores that are whole and at most 2^53 are integers,
//! too. Members, field names and elements of lists are always bytes.
//!
//! **Time.** The time of a command is that of its snapshot, in microseconds ([`Work::now_us`]). A new
//! deadline counts from the later of that and the machine's clock.

mod expiry;
mod fault;
mod hashes;
mod keys;
mod lists;
mod number;
mod pick;
mod refused;
mod server;
mod sets;
mod strings;
mod table;
mod text;
mod work;
mod zsets;

pub use fault::{Fault, Outcome};
pub use keys::type_word;
pub use mingle_geo::pattern::matches;
pub use number::parse_int;
pub(crate) use number::text;
pub use pick::{Scan, position};
pub use refused::refusal;
pub use table::{Class, Command, Group, Keys, Run, ServerCommand, all, find};
pub use text::table_page;
pub use work::{States, Work};
