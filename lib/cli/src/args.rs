//! Flags that several programs share, to be flattened: the same flag has the same letter and meaning everywhere.

use crate::message::Colour;
use crate::pages::Page;
use crate::{Content, Error, Input, Output};
use std::path::{Path, PathBuf};

/// Flags that [`crate::run`] adds to every program.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Say nothing but warnings and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Colour diagnostics: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: Colour,

    /// Write the manual page or a shell's completions to stdout
    #[arg(long, value_name = "PAGE", value_enum, exclusive = true, hide = true)]
    pub generate: Option<Page>,
}

/// The record stream to read.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InputArgs {
    /// Record stream to read; `-` or nothing means stdin
    #[arg(value_name = "STREAM")]
    pub input: Option<PathBuf>,
}

impl InputArgs {
    /// Opens it.
    pub fn open(&self) -> Result<Input, Error> {
        Input::open(self.input.as_deref())
    }

    /// The path, where it is a file.
    pub fn path(&self) -> Option<&Path> {
        self.input.as_deref().filter(|path| *path != Path::new("-"))
    }
}

/// Where to write.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Write to FILE, whole or not at all, instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutputArgs {
    /// Opens the file or stdout; `inputs` are the files being read, which must not be replaced.
    pub fn open(&self, content: Content, inputs: &[&Path]) -> Result<Output, Error> {
        Output::open(self.output.as_deref(), content, inputs)
    }
}

/// Where the files that a stream names are found.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RootArgs {
    /// Folder that relative paths in the stream start from, instead of the working directory
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

impl RootArgs {
    /// The folder, where one is given.
    pub fn path(&self) -> Option<&Path> {
        self.root.as_deref()
    }
}

/// Which nodes are meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct WhereArgs {
    /// Take only nodes for which the jq FILTER is true
    #[arg(long = "where", value_name = "FILTER")]
    pub filter: Option<String>,
}
