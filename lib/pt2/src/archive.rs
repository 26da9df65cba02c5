//! The three layouts of `.pt2` archives, told apart by their entries, and what each holds where.
//!
//! Flat (torch 2.1 to 2.7), archive with pickled state (2.8), archive with raw weights (2.9 and later). A program's files
//! are found here; nothing is interpreted yet.

use m2m_zip::{Entry, Zip};

use crate::Error;

/// How the entries are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Everything at the root, state pickled, one program.
    Flat,
    /// `ROOT/models/NAME.json` with `ROOT/data/…` beside it.
    Folders,
}

/// Largest entry that is held in memory; the JSON of a thousand nodes has two megabytes.
pub const MAX_TEXT_BYTES: u64 = 1 << 30;

/// An archive and the programs in it.
#[derive(Debug)]
pub struct Archive<'a> {
    zip: Zip<'a>,
    layout: Layout,
    /// `ROOT/`, or nothing when flat.
    root: String,
    programs: Vec<String>,
    is_big_endian: bool,
}

/// The entries of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name in the archive; `model` unless several were packaged.
    pub name: String,
    /// The program JSON.
    pub json: String,
    /// Where weights and constants are.
    pub state: StateEntries,
    /// A file of torch.save with `(args, kwargs)`.
    pub samples: Option<String>,
}

/// Where weights and constants are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateEntries {
    /// Files of torch.save with dicts by qualified name.
    Pickled {
        /// Parameters and persistent buffers.
        weights: Option<String>,
        /// Everything else.
        constants: Option<String>,
    },
    /// JSON that names an entry for each tensor.
    Raw {
        /// Config of parameters and persistent buffers.
        weights: Option<String>,
        /// Config of everything else.
        constants: Option<String>,
    },
}

impl<'a> Archive<'a> {
    /// Recognizes an archive.
    ///
    /// # Errors
    /// A zip that is refused, or one that holds no exported program.
    pub fn open(data: &'a [u8]) -> Result<Self, Error> {
        let zip = Zip::open(data)?;
        if zip.find("version").is_some() && zip.find(FLAT_PROGRAM).is_some() {
            let programs = vec!["model".to_owned()];
            return Ok(Self { zip, layout: Layout::Flat, root: String::new(), programs, is_big_endian: false });
        }
        let root = match zip.entries().first().and_then(|e| e.name.split_once('/')) {
            Some((root, _)) => format!("{root}/"),
            None => return Err(Error::NoProgram { found: describe(&zip, "") }),
        };
        let mut archive = Self { zip, layout: Layout::Folders, root, programs: Vec::new(), is_big_endian: false };
        archive.check_markers()?;
        archive.programs = archive.list_programs();
        if archive.programs.is_empty() {
            return Err(Error::NoProgram { found: describe(&archive.zip, &archive.root) });
        }
        Ok(archive)
    }

    /// The zip under it.
    pub fn zip(&self) -> &Zip<'a> {
        &self.zip
    }

    /// How the entries are arranged.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Names of the programs, in the order of the archive.
    pub fn programs(&self) -> &[String] {
        &self.programs
    }

    /// Whether raw weights are big-endian.
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// The name of an entry in a folder of the archive.
    pub fn entry_name(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// The entries of a program: the named one, or the only one.
    ///
    /// # Errors
    /// When there are several and none is named, or none of that name.
    pub fn program(&self, name: Option<&str>) -> Result<Program, Error> {
        let name = match (name, self.programs.as_slice()) {
            (None, [only]) => only.clone(),
            (None, names) => return Err(Error::ManyPrograms { names: names.to_vec() }),
            (Some(name), names) if names.iter().any(|n| n == name) => name.to_owned(),
            (Some(name), names) => return Err(Error::UnknownProgram { name: name.to_owned(), names: names.to_vec() }),
        };
        let program = match self.layout {
            Layout::Flat => self.flat_program(name),
            Layout::Folders => self.folder_program(name)?,
        };
        Ok(program)
    }

    fn flat_program(&self, name: String) -> Program {
        let find = |stem: &str| {
            [format!("{stem}.pt"), format!("{stem}.json")].into_iter().find(|entry| self.zip.find(entry).is_some())
        };
        Program {
            name,
            json: FLAT_PROGRAM.to_owned(),
            state: StateEntries::Pickled {
                weights: find("serialized_state_dict"),
                constants: find("serialized_constants"),
            },
            samples: find("serialized_example_inputs"),
        }
    }

    fn folder_program(&self, name: String) -> Result<Program, Error> {
        let find = |path: String| Some(self.entry_name(&path)).filter(|entry| self.zip.find(entry).is_some());
        let raw = [
            find(format!("data/weights/{name}_weights_config.json")),
            find(format!("data/constants/{name}_constants_config.json")),
        ];
        let pickled = [find(format!("data/weights/{name}.pt")), find(format!("data/constants/{name}.pt"))];
        let state = match (raw, pickled) {
            ([None, None], [None, None]) => {
                return Err(Error::MissingEntry {
                    entry: self.entry_name(&format!("data/weights/{name}_weights_config.json")),
                    why: format!(
                        "program {name:?} needs it to place its weights (torch 2.8 has data/weights/{name}.pt)"
                    ),
                });
            }
            ([None, None], [weights, constants]) => StateEntries::Pickled { weights, constants },
            ([weights, constants], _) => StateEntries::Raw { weights, constants },
        };
        let json = self.entry_name(&format!("models/{name}.json"));
        let samples = find(format!("data/sample_inputs/{name}.pt"));
        Ok(Program { name, json, state, samples })
    }

    /// Side files that the user attached: name, entry.
    pub fn extra_files(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let folder = match self.layout {
            Layout::Flat => "extra_files/".to_owned(),
            Layout::Folders => self.entry_name("extra/"),
        };
        self.zip.entries().iter().filter_map(move |entry| {
            let name = entry.name.strip_prefix(folder.as_str())?;
            (!name.is_empty() && !name.ends_with('/')).then_some((name, entry))
        })
    }

    /// Entries that no part of this reader knows, such as a compiled model beside the program.
    pub fn unknown_entries(&self) -> Vec<&str> {
        let known = |path: &str| match self.layout {
            Layout::Flat => path == "version" || path.starts_with("serialized_") || path.starts_with("extra_files/"),
            Layout::Folders => {
                KNOWN.iter().any(|known| path == *known || (known.ends_with('/') && path.starts_with(known)))
            }
        };
        let names = self.zip.entries().iter().map(|e| e.name.as_str());
        names.filter(|name| !name.strip_prefix(self.root.as_str()).is_some_and(known)).collect()
    }

    /// The checked bytes of an entry that has to be read whole.
    ///
    /// # Errors
    /// A missing, damaged or enormous entry.
    pub fn text(&self, name: &str, why: &str) -> Result<&'a [u8], Error> {
        let missing = || Error::MissingEntry { entry: name.to_owned(), why: why.to_owned() };
        let entry = self.zip.find(name).ok_or_else(missing)?;
        if entry.len > MAX_TEXT_BYTES {
            return Err(Error::TooLarge { entry: name.to_owned(), len: entry.len, limit: MAX_TEXT_BYTES });
        }
        Ok(self.zip.checked_bytes(entry)?)
    }

    fn check_markers(&mut self) -> Result<(), Error> {
        let format = self.entry_name("archive_format");
        if self.zip.find(&format).is_none() {
            return Err(Error::NoProgram { found: describe(&self.zip, &self.root) });
        }
        self.marker("archive_format", &["pt2"], "pt2")?;
        self.marker("archive_version", &["0"], "0")?;
        self.is_big_endian = self.marker("byteorder", &["little", "big"], "little or big")? == Some("big");
        Ok(())
    }

    /// The text of a small entry, if it is there.
    fn marker(
        &self,
        name: &str,
        known: &[&'static str],
        expected: &'static str,
    ) -> Result<Option<&'static str>, Error> {
        let entry = self.entry_name(name);
        if self.zip.find(&entry).is_none() {
            return Ok(None);
        }
        let bytes = self.text(&entry, "it was just found")?;
        let text = String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes));
        match known.iter().find(|known| **known == text.trim()) {
            Some(known) => Ok(Some(known)),
            None => Err(Error::Marker { entry, found: text.into_owned(), expected }),
        }
    }

    fn list_programs(&self) -> Vec<String> {
        let folder = self.entry_name("models/");
        let names =
            self.zip.entries().iter().filter_map(|e| e.name.strip_prefix(folder.as_str())?.strip_suffix(".json"));
        names.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }
}

const FLAT_PROGRAM: &str = "serialized_exported_program.json";

/// Entries and folders of an archive that are read, or that say nothing about the program.
const KNOWN: &[&str] = &[
    "archive_format",
    "archive_version",
    "byteorder",
    "version",
    ".data/",
    "models/",
    "data/weights/",
    "data/constants/",
    "data/sample_inputs/",
    "extra/",
];

/// What an archive without a program holds instead.
fn describe(zip: &Zip<'_>, root: &str) -> String {
    let folder = format!("{root}data/aotinductor/");
    let mut compiled: Vec<&str> = zip
        .entries()
        .iter()
        .filter_map(|e| e.name.strip_prefix(folder.as_str())?.split('/').next())
        .filter(|name| !name.is_empty())
        .collect();
    compiled.dedup();
    if !compiled.is_empty() {
        return format!(
            "the archive holds the AOTInductor model {}, which is compiled code; save the program itself with torch.export.save",
            compiled.join(", ")
        );
    }
    if zip.find(&format!("{root}constants.pkl")).is_some() {
        return "this is a TorchScript archive; export the model with torch.export".to_owned();
    }
    if zip.find(&format!("{root}data.pkl")).is_some() {
        return "this is a checkpoint of torch.save, which holds tensors only".to_owned();
    }
    let first = zip.entries().iter().take(3).map(|e| format!("{:?}", e.name)).collect::<Vec<_>>().join(", ");
    format!("{} entries, none of them models/NAME.json or {FLAT_PROGRAM}; the first are {first}", zip.entries().len())
}
