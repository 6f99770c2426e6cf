//! `mingle test`: runs the tests that stand beside a program.
//!
//! - [`read`]: the file of tests as steps;
//! - [`script`]: its expressions, compiled as a part of the program;
//! - [`world`]: the process under test, which crashes where it is told to;
//! - [`play`]: one run, over stores in memory and in virtual time;
//! - [`report`]: the results as text and as JSON.

mod play;
mod read;
mod report;
mod script;
mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle::Binding;
use mingle_lang::Program;
use mingle_lang::diagnostic::{Diagnostic, render_human};
use mingle_lang::syntax::{Source, lex};
use mingle_model::Level;

use crate::exit::{Exit, Failure};
use crate::files;
use crate::open;
use crate::output::{Color, Format, print};
use crate::progress::Progress;

use play::{Fault, Setting, play};
use report::{Ended, Failed};
use script::{Script, Scripts};
use world::Moment;

/// The ending of the name of a file of tests.
pub const ENDING: &str = ".test.mingle";

/// The number of seeds of a test with calls that run together.
const SEEDS: u64 = 20;

/// Run the tests beside a program, with crashes where they ask for them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle test                                  the files *.test.mingle of this folder
  mingle test shop.mingle                      shop.test.mingle
  mingle test shop.mingle --only \"sold out\"    tests with these words in their names
  mingle test shop.mingle --seeds 1000         more orders of calls that run together
  mingle test shop.mingle --seed 17            one of them again

A file of tests:
  test \"the last pot is sold once\" crash everywhere {
      add_item(sku: \"pot\", stock: 1);
      client ana at east;
      client bob at west;
      together {
          as ana: let first = try buy(item: Item[\"pot\"]);
          as bob: let second = try buy(item: Item[\"pot\"]);
      }
      expect first != second;
      expect buy(item: Item[\"pot\"]) fails sold_out;
      expect Item[\"pot\"].stock == 0;
  }

Tests run over stores in memory and in virtual time. Stores weaker than `snapshot` have two replicas,
`east` and `west`, 50 ms apart, unless test.toml beside the program, or --config, says otherwise.")]
pub struct Args {
    /// Programs, or files of tests [default: all files *.test.mingle of this folder].
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Run only tests with this text in their names.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Run tests with calls that run together with so many seeds [default: 20, or as the test says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,

    /// Run with this seed alone.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,

    /// The binding, with embedded stores only [default: test.toml beside the program, if it is there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How to report.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    let files = if args.files.is_empty() { files_here()? } else { args.files.clone() };
    let (mut exit, mut all) = (Exit::Success, Vec::new());
    for file in &files {
        let (program, tests) = pair(file);
        let Some(loaded) = load(&program, &tests, args.config.as_deref(), color)? else {
            exit = exit.max(Exit::Program);
            continue;
        };
        let ended = run_file(&loaded, &tests, args);
        if args.format == Format::Human {
            print(&report::file(&tests, &loaded.source, &ended, color.on_stdout()));
        }
        all.push((tests, loaded.source, ended));
    }
    let failed = all.iter().flat_map(|(.., ended)| ended).filter(|test| test.failed.is_some());
    let failed = failed.count();
    match args.format {
        // Only errors were found, and they are printed.
        Format::Human if all.is_empty() => {}
        Format::Human => {
            let count = all.iter().map(|(.., ended)| ended.len()).sum();
            print(&report::summary(count, failed));
        }
        Format::Json => print(&report::json(&all)),
    }
    Ok(if failed > 0 { exit.max(Exit::Program) } else { exit })
}

/// Returns the files of tests in this folder.
fn files_here() -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(".")
        .map_err(|error| Failure::usage(format!("cannot read this folder: {error}")))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> = names.filter(|name| name.ends_with(ENDING)).collect();
    found.sort();
    if found.is_empty() {
        let message =
            format!("no file of tests (*{ENDING}) in this folder; see `mingle test --help`");
        return Err(Failure::usage(message));
    }
    Ok(found)
}

/// Returns the program and the file of tests, of which `file` is one.
fn pair(file: &str) -> (String, String) {
    match file.strip_suffix(ENDING) {
        Some(stem) => (format!("{stem}.mingle"), file.to_owned()),
        None => {
            let stem = file.strip_suffix(".mingle").unwrap_or(file);
            (file.to_owned(), format!("{stem}{ENDING}"))
        }
    }
}

/// A file of tests that can run.
struct Loaded {
    source: Source,
    scripts: Scripts,
    binding: Binding,
}

/// Reads and checks a program and its tests; none if one has errors, which are then printed.
fn load(
    program: &str,
    tests: &str,
    config: Option<&Path>,
    color: Color,
) -> Result<Option<Loaded>, Failure> {
    let source = lex(files::read(tests)?);
    let checked = match open::program(program, color) {
        // Its errors are printed.
        Err(failure) if failure.exit == Exit::Program => return Ok(None),
        checked => checked?,
    };
    let binding = binding(&checked, program, config)?;
    let replicas = binding.stores.values().map(|store| store.engine.replicas());
    let replicas = replicas.filter(|replicas| replicas.len() > 1).flatten().collect();
    match scripts(&checked, &source, &replicas) {
        Ok(scripts) => Ok(Some(Loaded { source, scripts, binding })),
        Err(found) => {
            eprint!("{}", render_human(&source, tests, &found, color.on_stderr()));
            Ok(None)
        }
    }
}

fn scripts(
    program: &Program,
    source: &Source,
    replicas: &BTreeSet<String>,
) -> Result<Scripts, Vec<Diagnostic>> {
    let tests = read::read(source).map_err(|found| vec![found])?;
    script::scripts(program, source, &tests, replicas)
}

/// Checks a file of tests, without running them. Errors are printed.
pub fn check(tests: &str, color: Color) -> Result<Exit, Failure> {
    let (program, tests) = pair(tests);
    let is_good = load(&program, &tests, None, color)?.is_some();
    Ok(if is_good { Exit::Success } else { Exit::Program })
}

/// Returns the binding for tests.
fn binding(program: &Arc<Program>, path: &str, config: Option<&Path>) -> Result<Binding, Failure> {
    let beside = Path::new(path).with_file_name("test.toml");
    let file = config.map(Path::to_owned).or_else(|| beside.exists().then_some(beside));
    let binding = match file {
        Some(file) => open::binding(path, Some(&file))?,
        None => default_binding(program),
    };
    mingle::check_binding(program, &binding).map_err(|error| open::failure(&error))?;
    let other = program.checked.stores.iter().find(|store| {
        binding.stores.get(&*store.name).is_some_and(|bound| !bound.engine.is_embedded())
    });
    match other {
        None => Ok(binding),
        Some(store) => Err(Failure::usage(format!(
            "tests run over embedded stores, and the binding has another engine for `{}`",
            store.name
        ))),
    }
}

/// Returns the binding with two replicas for each store that can have them.
fn default_binding(program: &Program) -> Binding {
    use std::fmt::Write as _;
    let mut text = String::new();
    for store in &program.checked.stores {
        let is_weak = program.checked.levels.carrier(store.level) >= Level::Causal;
        let replicas =
            if is_weak { "replicas = [\"east\", \"west\"]\ndelay = \"50ms\"\n" } else { "" };
        write!(text, "[stores.{}]\n{replicas}", store.name)
            .expect("writing to a string does not fail");
    }
    Binding::parse(&text).expect("the binding that was just written is a good one")
}

/// The choice of seeds.
#[derive(Default)]
struct Seeds {
    /// The number of seeds, in place of the test's.
    count: Option<u64>,
    /// The only seed.
    only: Option<u64>,
}

/// Runs the tests of a file.
fn run_file(loaded: &Loaded, file: &str, args: &Args) -> Vec<Ended> {
    let is_wanted = |script: &&Script| {
        args.only.as_ref().is_none_or(|only| script.name.contains(only.as_str()))
    };
    let Loaded { scripts, binding, .. } = loaded;
    let setting = Setting { program: &scripts.program, binding, has_keys: true };
    let seeds = Seeds { count: args.seeds, only: args.seed };
    let wanted = scripts.scripts.iter().filter(is_wanted);
    wanted
        .map(|script| {
            let _progress = Progress::start(format!("{file}: {}", script.name));
            run_test(&setting, script, &seeds)
        })
        .collect()
}

/// Runs a test: with each of its seeds, and then with a crash at each of its steps.
fn run_test(setting: &Setting<'_>, script: &Script, seeds: &Seeds) -> Ended {
    let mut ended = Ended { name: script.name.clone(), seeds: 0, crashes: 0, failed: None };
    let count = seeds.count.or(script.seeds).unwrap_or(SEEDS);
    let count = if script.is_concurrent() { count } else { 1 };
    let seeds = seeds.only.map_or(1..=count, |seed| seed..=seed);
    let first = *seeds.start();
    let mut steps = 0;
    let failed = |seed: u64, fault: Fault| Some(Failed { seed, fault });
    for seed in seeds {
        match play(setting, script, seed, None) {
            Ok(played) if seed == first => steps = played.steps,
            Ok(_) => {}
            Err(fault) => {
                ended.failed = failed(seed, fault);
                return ended;
            }
        }
        ended.seeds += 1;
    }
    if script.crashes {
        for step in 0..steps {
            for moment in [Moment::Before, Moment::After] {
                if let Err(fault) = play(setting, script, first, Some((step, moment))) {
                    ended.failed = failed(first, fault);
                    return ended;
                }
                ended.crashes += 1;
            }
        }
    }
    ended
}

#[cfg(test)]
mod tests;
