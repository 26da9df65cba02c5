//! The frame of every program: flags in, exit status out.
//!
//! Help and version go to stdout, usage errors to stderr in the common form. A closed pipe ends the program silently by
//! SIGPIPE after its temporary files are removed: a half-done check is not a pass.

use crate::output::{Content, Output, reader_is_gone};
use crate::{Common, Failure, Message, Messages, Status, pages, temporary};
use clap::error::ErrorKind;
use clap::{Args as _, FromArgMatches as _, Parser};
use std::io::Write as _;
use std::process::ExitCode;

/// What a program says of itself beside its flags.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The tool's version: `env!("CARGO_PKG_VERSION")`.
    pub version: &'static str,
    /// The record schema that it speaks.
    pub schema: &'static str,
    /// When it ends with status 1, for the help: `the check found differences`; empty where it never does.
    pub no: &'static str,
}

/// The complete command of a program: its own flags, the common ones, version, and the exit status section of the help.
pub fn command<A: Parser>(about: About) -> clap::Command {
    let own = A::command();
    let examples = own.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let tail = format!("{}{}", examples_section(&examples), status_section(about));
    // Adding the common flags would replace both texts by the comment on their struct.
    let (short, long) = (own.get_about().cloned(), own.get_long_about().cloned());
    Common::augment_args(own)
        .about(short.unwrap_or_default())
        .long_about(long.unwrap_or_default())
        .version(format!("{} ({})", about.version, about.schema))
        .after_long_help(tail)
}

fn examples_section(examples: &str) -> String {
    if examples.is_empty() { String::new() } else { format!("{}\n\n", examples.trim_end()) }
}

fn status_section(about: About) -> String {
    let no = if about.no.is_empty() { String::new() } else { format!("  1  {}\n", about.no) };
    format!("Exit status:\n  0  done\n{no}  2  usage, unreadable or malformed input, input or output errors")
}

/// Parses the command line and runs `body`. The only thing that a `main` calls.
pub fn run<A: Parser>(about: About, body: impl FnOnce(A, &Messages) -> Result<Status, Failure>) -> ExitCode {
    let command = command::<A>(about);
    let tool = command.get_name().to_owned();
    let status = match command.clone().try_get_matches() {
        Err(error) => answer(&tool, &error),
        Ok(matches) => match Common::from_arg_matches(&matches) {
            Err(error) => answer(&tool, &error),
            Ok(common) => dispatch(command, &common, &matches, body),
        },
    };
    if reader_is_gone() {
        die_of_sigpipe();
    }
    status.into()
}

fn dispatch<A: Parser>(
    command: clap::Command,
    common: &Common,
    matches: &clap::ArgMatches,
    body: impl FnOnce(A, &Messages) -> Result<Status, Failure>,
) -> Status {
    let messages = Messages::new(command.get_name(), common.quiet, common.color);
    let result = match common.generate {
        Some(page) => generate(command, page),
        None => match A::from_arg_matches(matches) {
            Ok(args) => body(args, &messages),
            Err(error) => return answer(messages.tool(), &error),
        },
    };
    result.unwrap_or_else(|Failure(message)| {
        if !reader_is_gone() {
            messages.send(&message);
        }
        Status::Failed
    })
}

fn generate(command: clap::Command, page: pages::Page) -> Result<Status, Failure> {
    let mut output = Output::open(None, Content::Text, &[])?;
    let text = pages::write_page(command, page);
    output.write_all(&text).map_err(|e| output.error(e))?;
    output.finish()?;
    Ok(Status::Done)
}

/// Answers `--help`, `--version` and usage errors.
fn answer(tool: &str, error: &clap::Error) -> Status {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => show(tool, &error.render().to_string()),
        _ => {
            let messages = Messages::new(tool, false, crate::Colour::Auto);
            for line in usage_lines(&error.render().to_string()) {
                messages.send(&Message::error(line));
            }
            Status::Failed
        }
    }
}

fn show(tool: &str, text: &str) -> Status {
    let written = Output::open(None, Content::Text, &[]).and_then(|mut output| {
        output.write_all(text.as_bytes()).map_err(|e| output.error(e))?;
        output.finish()
    });
    match written {
        Ok(()) => Status::Done,
        Err(error) => {
            if !reader_is_gone() {
                Messages::new(tool, false, crate::Colour::Auto).send(&Failure::from(error).0);
            }
            Status::Failed
        }
    }
}

/// clap's paragraphs as one line: what is wrong, hints, and where the help is.
fn usage_lines(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            continue;
        }
        words.push(line.strip_prefix("error: ").unwrap_or(line).to_owned());
    }
    vec![format!("{}; see --help", words.join(" "))]
}

/// Ends the program as `cat` ends when its reader goes away (status 141 in the shell).
fn die_of_sigpipe() -> ! {
    let _held = temporary::remove_all();
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    // Reached only where the signal is blocked; the status is the one the shell would have shown.
    std::process::exit(141)
}
