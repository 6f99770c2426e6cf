//! `mingle show`: an object's fields, or a page of all objects of a kind.

use mingle::{Listing, texts};
use mingle_model::Tree;

use crate::exit::{Exit, Failure};
use crate::open::{Place, block_on, held, open};
use crate::output::{Color, print};
use crate::progress::Progress;
use crate::rest::A_MOMENT;
use crate::run::failure;

/// Print an object's fields as JSON, or a page of all objects of a kind.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle show groups.mingle User ana
  mingle show groups.mingle User ana --limit 5 --at r2
  mingle show groups.mingle User

With a key it prints that object, or `null` if it does not exist. Without one it prints one object a line, and says on
the error output how to see the next page. Of a set or map the first elements are shown, of a log the last.")]
pub struct Args {
    /// The program.
    file: String,

    /// The kind of object.
    object: String,

    /// Its key: a string as it stands, all else as JSON. Without a key, a page of all objects.
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,

    /// How many elements of each collection; 100 of one object, 3 in a list.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// How many objects of a list.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "key",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    count: u64,

    /// The end of the page before, as it was printed.
    #[arg(long, value_name = "CURSOR", conflicts_with = "key")]
    after: Option<String>,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let key = args.key.as_deref();
    let usual = if key.is_some() { mingle::database::SHOWN_MAX } else { 3 };
    let limit = args.limit.unwrap_or(usual);
    let listing = Listing {
        kind: args.object.as_str().into(),
        after: args.after.clone(),
        most: usize::try_from(args.count).unwrap_or(usize::MAX),
    };
    if let Some((program, holder)) = held(&args.file, &args.place, color)? {
        // Mistakes in the name and the key get the messages that they have without a server.
        match key {
            Some(key) => {
                texts::object(&program, &args.object, key).map_err(failure)?;
                print(&format!("{}\n", holder.show(&args.object, key, limit)?));
            }
            None => {
                texts::kind(&program, &args.object).map_err(failure)?;
                print_page(&holder.list(&listing, limit)?);
            }
        }
        return Ok(Exit::Success);
    }
    block_on(async {
        let _progress = Progress::start(format!("reading {}", args.object));
        let opened = open(&args.file, &args.place, color).await?;
        // Transactions that an earlier process left unfinished are finished first, so that no
        // partial effects are shown.
        opened.database.settle(A_MOMENT).await;
        let Some(key) = key else {
            texts::kind(opened.database.program(), &args.object).map_err(failure)?;
            let listed = opened.database.list_text(&listing, &opened.session, limit);
            let listed = listed.await.map_err(failure)?;
            let page = Tree::parse(listed.as_bytes());
            print_page(&page.map_err(|why| Failure::usage(format!("the page is no JSON: {why}")))?);
            return Ok(Exit::Success);
        };
        let object = opened.database.object(&args.object, key).map_err(failure)?;
        let shown = opened.database.show_text(&object, &opened.session, limit);
        let shown = shown.await.map_err(failure)?;
        print(&format!("{}\n", shown.as_deref().unwrap_or("null")));
        Ok(Exit::Success)
    })
}

/// Prints the objects of a page, one a line.
fn print_page(page: &Tree) {
    if let Some(Tree::List(objects)) = page.member("objects") {
        for object in objects {
            print(&format!("{object}\n"));
        }
    }
    if let Some(Tree::String(next)) = page.member("next") {
        eprintln!("there are more: --after '{next}'");
    }
}
