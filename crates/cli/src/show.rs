//! `mingle show`: an object's fields.

use mingle::texts;

use crate::exit::{Exit, Failure};
use crate::open::{Place, block_on, held, open};
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::rest::A_MOMENT;
use crate::run::failure;

/// Print an object's fields as JSON, or `null` if it does not exist.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle show groups.mingle User ana
  mingle show groups.mingle User ana --limit 5 --at r2

Of a set or map the first elements are shown, of a log the last.")]
pub struct Args {
    /// The program.
    file: String,

    /// The kind of object.
    object: String,

    /// Its key: a string as it stands, all else as JSON.
    #[arg(allow_hyphen_values = true)]
    key: String,

    /// How many elements of each collection.
    #[arg(long, value_name = "N", default_value_t = mingle::database::SHOWN_MAX)]
    limit: usize,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    if let Some((program, holder)) = held(&args.file, &args.place, color)? {
        // Mistakes in the name and the key get the messages that they have without a server.
        texts::object(&program, &args.object, &args.key).map_err(failure)?;
        print(&format!("{}\n", holder.show(&args.object, &args.key, args.limit)?));
        return Ok(Exit::Success);
    }
    block_on(async {
        let _progress = Progress::start(format!("reading {}", args.object));
        let opened = open(&args.file, &args.place, color).await?;
        // Transactions that an earlier process left unfinished are finished first, so that no
        // partial effects are shown.
        opened.database.settle(A_MOMENT).await;
        let object = opened.database.object(&args.object, &args.key).map_err(failure)?;
        let shown = opened.database.show_text(&object, &opened.session, args.limit);
        let shown = shown.await.map_err(failure)?;
        print(&format!("{}\n", shown.as_deref().unwrap_or("null")));
        Ok(Exit::Success)
    })
}
