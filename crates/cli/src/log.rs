//! The log of a long-running command, on standard error: for people on a terminal, as JSON lines
//! elsewhere.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::exit::Failure;
use crate::output::Color;

/// What is logged, and how.
#[derive(clap::Args)]
pub struct Log {
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, for all or by the path of a module:
    /// `info,mingle_runtime=debug`.
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = DEFAULT)]
    log: String,

    /// How log lines look [default: human on a terminal, else json].
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<Look>,
}

/// A layer that receives spans.
pub type Spans = Box<dyn Layer<Registry> + Send + Sync>;

const DEFAULT: &str = "warn,mingle=info";

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Look {
    /// For people.
    Human,
    /// An object for each line.
    Json,
}

impl Log {
    /// Starts the log, for the rest of the process. `spans` receives spans, also those that are not logged.
    ///
    /// # Errors
    ///
    /// When the filter cannot be read.
    pub fn start(&self, color: Color, spans: Option<Spans>) -> Result<(), Failure> {
        let text = if self.log.is_empty() { DEFAULT } else { &self.log };
        let filter: Targets = text.parse().map_err(|error| {
            Failure::usage(format!(
                "--log (or RUST_LOG) is a level, or module=level, of several with commas between them, such as \
                 info,mingle_runtime=debug; found {text:?}: {error}"
            ))
        })?;
        let is_terminal = std::io::stderr().is_terminal();
        let look = self.log_format.unwrap_or(if is_terminal { Look::Human } else { Look::Json });
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = match look {
            Look::Human => lines.with_ansi(color.on_stderr()).boxed(),
            Look::Json => lines.json().flatten_event(true).boxed(),
        };
        let registry = tracing_subscriber::registry().with(spans).with(lines.with_filter(filter));
        // Fails only if the process has a log already.
        let _ = registry.try_init();
        Ok(())
    }
}
