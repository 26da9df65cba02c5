//! A program of an archive, opened and ready to be written as records.

use std::collections::HashSet;
use std::io::Write;

use m2m_record::writer::hex;
use m2m_record::{
    Arg, Data, Diagnostic, Extra, File, Kwargs, ModuleCall, Pytree, Severity, Source, Status, Tensor, TensorType, Tool,
    ToolInput, Type, Writer,
};
use sha2::{Digest, Sha256};

use crate::archive::{Archive, Program};
use crate::graph::Emitter;
use crate::notes::Notes;
use crate::schema::{self, Argument, ExportedProgram, Graph, InputSpec, ModuleCallSignature, OutputSpec};
use crate::signature::{RootSignature, check_counts};
use crate::state::{Held, State};
use crate::tree::{self, NamedTuples};
use crate::types::Exprs;
use crate::weights::{DataOf, Weights};
use crate::{Error, args, samples, unread};

/// The id of the archive's `file` record.
pub const ARCHIVE_ID: &str = "f0";

/// The id of the weights file's record.
pub const WEIGHTS_ID: &str = "f1";

/// What is known of the file besides its bytes.
#[derive(Debug, Clone)]
pub struct Origin<'a> {
    /// Name without folders.
    pub name: &'a str,
    /// Path as given.
    pub path: &'a str,
}

/// A program that has been parsed and whose state has been found.
#[derive(Debug)]
pub struct Capture<'a> {
    archive: Archive<'a>,
    entries: Program,
    json: &'a [u8],
    program: ExportedProgram<'a>,
    state: State,
    bytes: u64,
}

impl<'a> Capture<'a> {
    /// Opens a program of an archive. No weight is read.
    ///
    /// `buffer` holds the program's text where it had to be rewritten to be JSON.
    ///
    /// # Errors
    /// Anything that [`Error`] names.
    pub fn open(data: &'a [u8], program: Option<&str>, buffer: &'a mut String) -> Result<Self, Error> {
        let archive = Archive::open(data)?;
        let entries = archive.program(program)?;
        let json = archive.text(&entries.json, "it is the program")?;
        let parsed: ExportedProgram<'a> =
            schema::parse(json, buffer).map_err(|source| Error::Json { entry: entries.json.clone(), source })?;
        let version = &parsed.schema_version;
        if !schema::MAJORS.contains(&version.major) {
            return Err(Error::SchemaMajor { major: version.major, minor: version.minor });
        }
        check_counts(&parsed.graph_module)?;
        let state = State::read(&archive, &entries)?;
        Ok(Self { archive, entries, json, program: parsed, state, bytes: data.len() as u64 })
    }

    /// Plans the safetensors file of all weights and constants.
    ///
    /// # Errors
    /// Names that clash.
    pub fn plan_weights(&self) -> Result<Weights, Error> {
        Weights::plan(&self.state)
    }

    /// The archive's `file` record.
    pub fn file(&self, origin: &Origin<'_>) -> File {
        File {
            id: ARCHIVE_ID.to_owned(),
            name: origin.name.to_owned(),
            path: origin.path.to_owned(),
            format: "pt2".to_owned(),
            bytes: self.bytes,
        }
    }

    /// Writes the sample inputs as a safetensors file: `in_K` is leaf K of `(args, kwargs)`.
    ///
    /// # Errors
    /// No sample inputs, or ones that need Python classes.
    pub fn write_samples(&self, origin: &Origin<'_>, out: &mut impl Write) -> Result<(), Error> {
        let entry = self.entries.samples.as_deref();
        let entry = entry.ok_or_else(|| Error::Samples("the archive has none for this program".to_owned()))?;
        let signature = self.own_call().map(|call| call.in_spec.as_ref());
        let inputs = user_inputs(&self.program.graph_module);
        let is_wanted = |k: usize| inputs.get(k).is_none_or(Option::is_some);
        samples::write(&self.archive, entry, signature, is_wanted, &self.file(origin), out)
    }

    /// Writes the whole stream, and returns what was noticed.
    ///
    /// # Errors
    /// Anything wrong with the program's graphs, or a failed write. The stream then has no `end`.
    pub fn write<W: Write>(
        &self,
        origin: &Origin<'_>,
        version: &str,
        weights: Option<(&Weights, File)>,
        out: W,
    ) -> Result<(W, Vec<Diagnostic>), Error> {
        let mut notes = Notes::default();
        let mut writer = Writer::begin(out)?;
        self.write_head(origin, version, weights.as_ref().map(|(_, file)| file), &mut writer, &mut notes)?;
        let mut exprs = Exprs::default();
        collect_exprs(&self.program.graph_module.graph, &mut exprs);
        let names = weights.as_ref().map(|(weights, _)| (WEIGHTS_ID, &weights.names));
        let data = DataOf { archive: ARCHIVE_ID, weights: names };
        let signature = RootSignature { program: &self.program, state: &self.state, exprs: &exprs, data: &data };
        let mut emitter =
            Emitter { exprs: &exprs, out: &mut writer, notes: &mut notes, next_node: 0, graph_ids: HashSet::new() };
        emitter.root(&self.program.graph_module.graph, &signature)?;
        self.write_inner_tensors(&data, &mut writer)?;
        self.note_rest(&mut notes);
        let diagnostics = notes.finish();
        diagnostics.iter().try_for_each(|diagnostic| writer.write(diagnostic))?;
        Ok((writer.finish(Status::Ok)?, diagnostics))
    }

    fn write_head<W: Write>(
        &self,
        origin: &Origin<'_>,
        version: &str,
        weights: Option<&File>,
        writer: &mut Writer<W>,
        notes: &mut Notes,
    ) -> Result<(), Error> {
        writer.write(&self.tool(origin, version, weights.is_some()))?;
        writer.write(&self.source(notes))?;
        writer.write(&self.file(origin))?;
        if let Some(file) = weights {
            writer.write(file)?;
        }
        self.write_calls(writer, notes)?;
        for (name, entry) in self.archive.extra_files() {
            let data = Data::Range {
                file: ARCHIVE_ID.to_owned(),
                offset: entry.start,
                bytes: entry.len,
                storage: None,
                strides: None,
                byteorder: m2m_record::ByteOrder::Little,
            };
            writer.write(&Extra { name: name.to_owned(), data })?;
        }
        Ok(())
    }

    fn tool(&self, origin: &Origin<'_>, version: &str, has_weights: bool) -> Tool {
        let mut options = Kwargs::new();
        options.insert("format".into(), Arg::Str("pt2".into()));
        if self.archive.programs().len() > 1 {
            options.insert("program".into(), Arg::Str(self.entries.name.clone()));
        }
        if has_weights {
            options.insert("weights".into(), Arg::Bool(true));
        }
        let input = ToolInput { name: origin.name.to_owned(), bytes: self.bytes, sha256: self.identity() };
        Tool { name: "m2m-capture".to_owned(), version: version.to_owned(), options, inputs: vec![input] }
    }

    /// What identifies the archive without reading its weights: SHA-256 over one line `CRC SIZE NAME` for each entry in
    /// directory order (CRC-32 in eight lower-case hexadecimal digits, size in decimal, `\n` at the end), an empty line,
    /// and the bytes of the program's JSON. Names have no line breaks: such archives are refused.
    pub fn identity(&self) -> String {
        let mut digest = Sha256::new();
        for entry in self.archive.zip().entries() {
            digest.update(format!("{:08x} {} {}\n", entry.crc, entry.len, entry.name));
        }
        digest.update(b"\n");
        digest.update(self.json);
        hex(&digest.finalize())
    }

    fn source(&self, notes: &mut Notes) -> Source {
        let program = &self.program;
        let version = &program.schema_version;
        if (version.major, version.minor) > schema::NEWEST {
            let (major, minor) = schema::NEWEST;
            let message = format!(
                "schema version {}.{} is newer than {major}.{minor}, the newest that is known here; unknown fields are named",
                version.major, version.minor
            );
            notes.tell(Severity::Warning, "newer-schema", None, message);
        }
        let opset = program.opset_version.0.iter().map(|(name, version)| (name.into(), *version)).collect();
        let mut verifiers: Vec<String> = program.verifiers.iter().map(String::from).collect();
        verifiers.extend(program.dialect.as_ref().map(String::from));
        Source {
            format: "pt2".to_owned(),
            framework: Some("torch".to_owned()),
            framework_version: program.torch_version.as_ref().map(String::from).filter(|v| !v.is_empty()),
            schema: Some(format!("{}.{}", version.major, version.minor)),
            opset,
            verifiers,
            platforms: Vec::new(),
            program: (self.entries.name != "model").then(|| self.entries.name.clone()),
        }
    }

    /// The call signature of the program itself.
    fn own_call(&self) -> Option<&ModuleCallSignature<'a>> {
        let calls = &self.program.graph_module.module_call_graph;
        calls.iter().find(|call| call.fqn.as_ref().is_empty())?.signature.as_ref()
    }

    /// The calling conventions: of the program as `pytree`, of preserved submodules as `module_call`.
    fn write_calls<W: Write>(&self, writer: &mut Writer<W>, notes: &mut Notes) -> Result<(), Error> {
        let module = &self.program.graph_module;
        let named: NamedTuples = module
            .treespec_namedtuple_fields
            .0
            .iter()
            .map(|(name, tuple)| (name.into(), tuple.field_names.iter().map(String::from).collect()))
            .collect();
        let fail = |module: &str, detail| Error::Tree { module: module.to_owned(), detail };
        if let Some(call) = self.own_call() {
            let (inputs, outputs) = (user_inputs(module), user_outputs(module));
            writer.write(&Pytree {
                inputs: tree::parse(call.in_spec.as_ref(), &inputs, &named).map_err(|e| fail("", e))?,
                outputs: tree::parse(call.out_spec.as_ref(), &outputs, &named).map_err(|e| fail("", e))?,
                names: names(call),
            })?;
        }
        for call in &module.module_call_graph {
            notes.unknown("ModuleCallEntry", &call.unknown);
            let name = call.fqn.as_ref();
            match &call.signature {
                _ if name.is_empty() => {}
                None => notes.skip("module_call_graph entry without a signature"),
                Some(signature) => {
                    notes.unknown("ModuleCallSignature", &signature.unknown);
                    let record = module_call(name, signature, &named).map_err(|e| fail(name, e))?;
                    writer.write(&record)?;
                }
            }
        }
        Ok(())
    }

    /// Inner tensors of subclasses, as records of their own.
    fn write_inner_tensors<W: Write>(&self, data: &DataOf<'_>, writer: &mut Writer<W>) -> Result<(), Error> {
        for (name, held) in self.state.all() {
            let Held::Subclass { tensors, .. } = held else { continue };
            for (attribute, placed) in tensors {
                let name = format!("{name}.{attribute}");
                let shape = placed.sizes.iter().map(|&n| n.into()).collect();
                let ty = Type::Tensor(TensorType::new(placed.dtype, shape));
                let data = data.of(&name, placed);
                writer.write(&Tensor { name, ty, data, sha256: None, origin: None })?;
            }
        }
        Ok(())
    }

    /// Everything that has been read and found no place.
    fn note_rest(&self, notes: &mut Notes) {
        let program = &self.program;
        unread::program(program, notes);
        if self.entries.samples.is_some() {
            notes.skip("sample inputs (see --sample-inputs)");
        }
        let used: HashSet<&str> = program.graph_module.signature.input_specs.iter().filter_map(state_name).collect();
        let unused: Vec<&String> = self.state.names().iter().filter(|name| !used.contains(name.as_str())).collect();
        if let Some(first) = unused.first() {
            let message =
                format!("{} tensors of the archive are no input of the program, among them {first}", unused.len());
            notes.tell(Severity::Note, "unused-state", None, message);
        }
        let strange = self.archive.unknown_entries();
        if let Some(first) = strange.first() {
            let message = format!("{} entries of the archive are not read, among them {first:?}", strange.len());
            notes.tell(Severity::Warning, "unread-entry", None, message);
        }
        let others: Vec<&str> =
            self.archive.programs().iter().map(String::as_str).filter(|name| *name != self.entries.name).collect();
        if !others.is_empty() {
            let message = format!("the archive's other programs are not in this stream: {}", others.join(", "));
            notes.tell(Severity::Note, "other-program", None, message);
        }
    }
}

fn collect_exprs<'p>(graph: &'p Graph<'p>, exprs: &mut Exprs<'p>) {
    exprs.collect(graph);
    for input in graph.nodes.iter().flat_map(|node| &node.inputs) {
        args::nested(&input.arg, &mut |nested| collect_exprs(&nested.graph, exprs));
    }
}

/// The qualified name of an input's state.
fn state_name<'s>(spec: &'s InputSpec<'_>) -> Option<&'s str> {
    match spec {
        InputSpec::Parameter(s) => Some(s.parameter_name.as_ref()),
        InputSpec::Buffer(s) => Some(s.buffer_name.as_ref()),
        InputSpec::TensorConstant(s) => Some(s.tensor_constant_name.as_ref()),
        InputSpec::CustomObj(s) => Some(s.custom_obj_name.as_ref()),
        InputSpec::UserInput(_) | InputSpec::Token(_) | InputSpec::ConstantInput(_) => None,
    }
}

/// The values of the user's inputs in order; none for constants.
fn user_inputs(module: &schema::GraphModule<'_>) -> Vec<Option<String>> {
    let specs = module.signature.input_specs.iter();
    specs
        .filter_map(|spec| match spec {
            InputSpec::UserInput(s) => Some(value_of(&s.arg)),
            InputSpec::ConstantInput(_) => Some(None),
            _ => None,
        })
        .collect()
}

/// The values of the user's outputs in order; none for constants.
fn user_outputs(module: &schema::GraphModule<'_>) -> Vec<Option<String>> {
    let specs = module.signature.output_specs.iter();
    specs
        .filter_map(|spec| match spec {
            OutputSpec::UserOutput(s) => Some(value_of(&s.arg)),
            OutputSpec::LossOutput(s) => Some(Some(s.arg.name.to_string())),
            _ => None,
        })
        .collect()
}

fn value_of(argument: &Argument<'_>) -> Option<String> {
    match args::convert(argument, &mut std::iter::empty()) {
        Ok(Arg::Value(name) | Arg::Object { name, .. }) => Some(name),
        _ => None,
    }
}

fn names(call: &ModuleCallSignature<'_>) -> Vec<String> {
    call.forward_arg_names.iter().flatten().map(String::from).collect()
}

fn module_call(name: &str, call: &ModuleCallSignature<'_>, named: &NamedTuples) -> Result<ModuleCall, String> {
    let convert = |list: &[Argument<'_>]| -> Result<Vec<Arg>, String> {
        list.iter().map(|argument| args::convert(argument, &mut std::iter::empty())).collect()
    };
    let leaves = |list: &[Argument<'_>]| list.iter().map(value_of).collect::<Vec<_>>();
    Ok(ModuleCall {
        module: name.to_owned(),
        inputs: convert(&call.inputs)?,
        outputs: convert(&call.outputs)?,
        input_tree: Some(tree::parse(call.in_spec.as_ref(), &leaves(&call.inputs), named)?),
        output_tree: Some(tree::parse(call.out_spec.as_ref(), &leaves(&call.outputs), named)?),
        names: names(call),
    })
}
