//! Checking and splitting programs of growing size.

use std::fmt::Write as _;

use clap::Args;

use crate::cpu;

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Lines of the smallest program; the others have 10 and 100 times as many.
    #[arg(long, default_value_t = 1_000)]
    lines: usize,
    /// The number of compilations of each program; the fastest counts.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Fail if a line of the largest program takes more than this many times as long as one of the
    /// smallest.
    #[arg(long)]
    at_most: Option<f64>,
}

/// Returns a program of about this many lines: repeated copies of Message Groups under other names.
pub fn program(lines: usize) -> String {
    let body = crate::groups::PROGRAM;
    let mut text = String::from("store groups: linearizable;\nstore inboxes: causal;\n");
    let mut number = 0;
    while text.lines().count() < lines {
        // The lines are counted once for many copies: all copies are equally long.
        let copy_lines = body.lines().count();
        for _ in 0..((lines - text.lines().count()) / copy_lines).max(1) {
            let copy: String = body
                .lines()
                .filter(|line| !line.starts_with("store "))
                .map(|line| rename(line, number) + "\n")
                .collect();
            write!(text, "{copy}").expect("writing to a string cannot fail");
            number += 1;
        }
    }
    text
}

fn rename(line: &str, number: usize) -> String {
    let mut line = line.to_owned();
    for name in ["Group", "User"] {
        for (before, after) in [
            (format!("ref {name}"), format!("ref {name}{number}")),
            (format!("object {name} "), format!("object {name}{number} ")),
            (format!("put {name} "), format!("put {name}{number} ")),
        ] {
            line = line.replace(&before, &after);
        }
    }
    match line.strip_prefix("transaction ").and_then(|rest| rest.split_once('(')) {
        Some((name, rest)) => format!("transaction {name}{number}({rest}"),
        None => line,
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    println!("{:>9}{:>12}{:>12}{:>14}", "lines", "bytes", "cpu time", "a line");
    let mut per_line = Vec::new();
    for factor in [1, 10, 100] {
        let text = program(options.lines * factor);
        let lines = text.lines().count();
        let mut best = f64::INFINITY;
        for _ in 0..options.times {
            let copy = text.clone();
            // Processor time excludes other work of the machine.
            let begin = cpu::used();
            let checked = mingle_lang::check(copy);
            best = best.min(cpu::used() - begin);
            if checked.program.is_none() {
                let first = checked.diagnostics.first().map(|diagnostic| diagnostic.title.clone());
                return Err(format!(
                    "the program of {lines} lines has errors: {}",
                    first.unwrap_or_default()
                ));
            }
        }
        let nanos = best * 1e9 / lines as f64;
        println!("{lines:>9}{:>12}{:>9.1} ms{nanos:>11.0} ns", text.len(), best * 1e3);
        per_line.push(nanos);
    }
    let scaling = per_line[2] / per_line[0];
    println!("a line of the largest takes {scaling:.2} times as long as one of the smallest");
    match options.at_most {
        Some(limit) if scaling > limit => {
            Err(format!("compiling does not scale: {scaling:.2} times, at most {limit} is allowed"))
        }
        _ => Ok(()),
    }
}
