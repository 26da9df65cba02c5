//! Programs and data files as records of the stream.

use super::extract::Plan;
use super::payload::Format;
use super::schema::{self, EValue, ExecutionPlan, Instruction, NonConstBufferDevice, Tensor, TensorDataLocation};
use super::{Blob, DataFile, Delegate, Location, Part, Program, Range, sha256};
use m2m_record::pte::{
    Action, CompileSpec, Constant, Content, DelegateCall, Frame, Header, Memory, Method, NamedData, Placement, Port,
    Segment, Step, TensorLayout, Value, ValueRef,
};
use m2m_record::{Arg, Diagnostic, File, Float, Integer, Kwargs, Severity, Status, Tool, ToolInput, Writer, pte};
use std::collections::HashMap;
use std::io::{self, Write};

/// Longest value of a compile spec that a record carries.
const SPEC_BYTES: usize = 4096;

/// The id of the file's record; a second file, of a comparison, is `f1`.
const FILE_ID: &str = "f0";

/// What of a program is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Only this method, and what belongs to no method.
    pub method: Option<&'a str>,
    /// SHA-256 of segments, constants, named data and payloads.
    pub digests: bool,
}

/// Digests of ranges, each computed once however often it is referred to.
struct Digests<'a> {
    file: &'a [u8],
    known: Option<HashMap<Range, String>>,
}

impl<'a> Digests<'a> {
    fn new(file: &'a [u8], wanted: bool) -> Self {
        Digests { file, known: wanted.then(HashMap::new) }
    }

    fn of(&mut self, range: Range) -> Option<String> {
        let file = self.file;
        let known = self.known.as_mut()?;
        Some(known.entry(range).or_insert_with(|| sha256(super::program::slice(file, range))).clone())
    }
}

/// The stream of one file, or of two that are compared.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The file's path as given.
    pub path: &'a str,
    /// Name and version of the program that writes it.
    pub tool: (&'a str, &'a str),
    /// Those of its options that change what is written.
    pub options: Kwargs,
}

/// What a `tool` record and a `file` record say of a file.
struct Read<'a> {
    path: &'a str,
    format: &'a str,
    bytes: u64,
    /// Header and tables.
    program: &'a [u8],
}

impl Read<'_> {
    fn name(&self) -> String {
        std::path::Path::new(self.path).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Stream<'_> {
    fn begin<W: Write>(&self, files: &[Read<'_>], out: W) -> io::Result<Writer<W>> {
        let mut out = Writer::begin(out)?;
        let inputs = files.iter().map(|it| ToolInput { name: it.name(), bytes: it.bytes, sha256: sha256(it.program) });
        let (name, version) = (self.tool.0.to_owned(), self.tool.1.to_owned());
        let options = self.options.clone();
        out.write(&Tool { name, version, options, inputs: inputs.collect() })?;
        for (number, it) in files.iter().enumerate() {
            let (id, format, path) = (format!("f{number}"), it.format.to_owned(), it.path.to_owned());
            out.write(&File { id, name: it.name(), path, format, bytes: it.bytes })?;
        }
        Ok(out)
    }

    fn read<'s>(path: &'s str, program: &Program<'s>) -> Read<'s> {
        let stored = program.stored();
        Read { path, format: "pte", bytes: stored.file.len() as u64, program: stored.program_bytes() }
    }

    /// Writes everything that is wanted of a program.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, program: &Program<'_>, wanted: Wanted<'_>, out: impl Write) -> io::Result<()> {
        let mut out = self.begin(&[Self::read(self.path, program)], out)?;
        write_program(program, wanted, &mut out)?;
        out.finish(Status::Ok).map(drop)
    }

    /// Writes what a data file holds.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_data(&self, data: &DataFile<'_>, digests: bool, out: impl Write) -> io::Result<()> {
        let bytes = data.file.len() as u64;
        let read = Read { path: self.path, format: "ptd", bytes, program: data.program_bytes() };
        let mut out = self.begin(&[read], out)?;
        write_data(data, digests, &mut out)?;
        out.finish(Status::Ok).map(drop)
    }

    /// Writes which payloads went to which files; refusals, of which there is none when they did, as diagnostics.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_plan(
        &self,
        program: &Program<'_>,
        plan: &Plan<'_, '_>,
        digests: bool,
        out: impl Write,
    ) -> io::Result<()> {
        let mut out = self.begin(&[Self::read(self.path, program)], out)?;
        let mut digests = Digests::new(program.stored().file, digests);
        out.write(&head(program))?;
        let refusals = plan.all_refusals();
        for (it, name) in plan.files.iter().filter(|_| refusals.is_empty()) {
            let (written, sha256) = (Some(name.clone()), digests.of(it.range));
            out.write(&pte::Delegate { written, sha256, ..delegate(it) })?;
        }
        for it in &refusals {
            let (code, node) = (it.code().to_owned(), it.delegate());
            out.write(&Diagnostic { severity: Severity::Error, code, node, message: it.to_string(), hint: None })?;
        }
        out.finish(if refusals.is_empty() { Status::Ok } else { Status::Failed }).map(drop)
    }

    /// Writes in what the program at `other` differs from that at `self.path`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_differences(
        &self,
        [a, b]: [&Program<'_>; 2],
        other: &str,
        found: &[pte::Difference],
        out: impl Write,
    ) -> io::Result<()> {
        let mut out = self.begin(&[Self::read(self.path, a), Self::read(other, b)], out)?;
        found.iter().try_for_each(|it| out.write(it))?;
        out.finish(if found.is_empty() { Status::Ok } else { Status::Failed }).map(drop)
    }
}

fn write_program<W: Write>(program: &Program<'_>, wanted: Wanted<'_>, out: &mut Writer<W>) -> io::Result<()> {
    let mut digests = Digests::new(program.stored().file, wanted.digests);
    out.write(&head(program))?;
    for mut segment in segments(program) {
        segment.sha256 = digests.of(Range { offset: segment.offset, bytes: segment.bytes });
        out.write(&segment)?;
    }
    for (key, segment, range) in program.named_data() {
        let sha256 = digests.of(range);
        let (offset, bytes) = (range.offset, range.bytes);
        out.write(&NamedData { key: key.to_owned(), segment: segment.into(), offset, bytes, layout: None, sha256 })?;
    }
    for mut constant in constants(program) {
        constant.sha256 = digests.of(Range { offset: constant.offset, bytes: constant.bytes });
        out.write(&constant)?;
    }
    for (number, plan) in program.plans().iter().enumerate() {
        if wanted.method.is_some_and(|name| plan.name != Some(name)) {
            continue;
        }
        out.write(&method(plan, number))?;
        for index in 0..plan.values.as_ref().map_or(0, Vec::len) {
            out.write(&value(plan, index))?;
        }
        for it in program.delegates_of(number) {
            let sha256 = digests.of(it.range);
            out.write(&pte::Delegate { sha256, ..delegate(&it) })?;
        }
    }
    Ok(())
}

fn write_data<W: Write>(data: &DataFile<'_>, digests: bool, out: &mut Writer<W>) -> io::Result<()> {
    let mut digests = Digests::new(data.file, digests);
    let named = data.tables.named_data.as_deref().unwrap_or_default();
    out.write(&pte::Program {
        file: FILE_ID.to_owned(),
        format: "ptd".to_owned(),
        identifier: "FT01".to_owned(),
        version: data.tables.version,
        root_offset: data.root_offset,
        header: Some(Header {
            length: data.header.length,
            program_size: data.program_bytes().len() as u64,
            segment_base_offset: data.header.segment_base_offset,
            segment_data_size: data.header.segment_data_size,
        }),
        methods: 0,
        segments: data.segments().len() as u64,
        constants: 0,
        named_data: named.len() as u64,
    })?;
    let mut holds = vec![Vec::new(); data.segments().len()];
    for it in named {
        if let Some(held) = holds.get_mut(it.segment_index as usize) {
            held.push(Content::NamedData(it.key.unwrap_or_default().to_owned()));
        }
    }
    for ((segment, range), holds) in (0..).zip(data.segments()).zip(holds) {
        let sha256 = digests.of(*range);
        out.write(&Segment { segment, offset: range.offset, bytes: range.bytes, holds, sha256 })?;
    }
    for it in named {
        let Some(range) = data.segments().get(it.segment_index as usize) else { continue };
        let layout = it.tensor_layout.as_ref();
        let layout = layout.map(|it| layout_of(it.scalar_type, it.sizes.as_deref(), it.dim_order.as_deref()));
        let (key, sha256) = (it.key.unwrap_or_default().to_owned(), digests.of(*range));
        let segment = it.segment_index.into();
        out.write(&NamedData { key, segment, offset: range.offset, bytes: range.bytes, layout, sha256 })?;
    }
    Ok(())
}

fn head(program: &Program<'_>) -> pte::Program {
    let stored = program.stored();
    pte::Program {
        file: FILE_ID.to_owned(),
        format: "pte".to_owned(),
        identifier: String::from_utf8_lossy(super::IDENTIFIER).into_owned(),
        version: stored.program.version,
        root_offset: stored.root_offset,
        header: stored.header.map(|it| Header {
            length: it.length,
            program_size: it.program_size,
            segment_base_offset: it.segment_base_offset,
            segment_data_size: it.segment_data_size,
        }),
        methods: program.plans().len() as u64,
        segments: program.segments().len() as u64,
        constants: program.constants().len() as u64,
        named_data: program.named_data().count() as u64,
    }
}

pub(super) fn segments(program: &Program<'_>) -> Vec<Segment> {
    let mut holds: Vec<Vec<Content>> = vec![Vec::new(); program.segments().len()];
    let mut hold = |segment: u32, content: Content| {
        if let Some(held) = holds.get_mut(segment as usize) {
            held.push(content);
        }
    };
    let tables = &program.stored().program;
    if let Some(constants) = &tables.constant_segment {
        hold(constants.segment_index, Content::Constants);
    }
    for (index, data) in (0..).zip(tables.mutable_data_segments.iter().flatten()) {
        hold(data.segment_index, Content::MutableData(index));
    }
    for it in program.delegates() {
        if let Location::Segment(segment) = it.location {
            hold(segment, Content::Delegate(it.method.to_owned(), it.index as u64));
        }
    }
    for (key, segment, _) in program.named_data() {
        hold(segment, Content::NamedData(key.to_owned()));
    }
    let all = (0..).zip(program.segments()).zip(holds);
    all.map(|((segment, range), holds)| Segment {
        segment,
        offset: range.offset,
        bytes: range.bytes,
        holds,
        sha256: None,
    })
    .collect()
}

/// The values whose data are constants, by constant, and those with a first state, by mutable data segment and index.
#[derive(Default)]
struct Users {
    constants: HashMap<u64, Vec<ValueRef>>,
    states: HashMap<(u64, u64), Vec<ValueRef>>,
}

fn users(program: &Program<'_>) -> Users {
    let mut users = Users::default();
    for plan in program.plans() {
        for (index, value) in (0..).zip(plan.values.iter().flatten()) {
            let EValue::Tensor(tensor) = value else { continue };
            let user = || ValueRef { method: plan.name.unwrap_or_default().to_owned(), value: index };
            let buffer = u64::from(tensor.data_buffer_idx);
            let which = tensor.extra_tensor_info.as_ref().map_or(0, |extra| extra.mutable_data_segments_idx);
            match placement(tensor) {
                Placement::Constant(_) => users.constants.entry(buffer).or_default().push(user()),
                Placement::Planned { initial: Some(_), .. } => {
                    users.states.entry((which, buffer)).or_default().push(user());
                }
                _ => {}
            }
        }
    }
    users
}

pub(super) fn constants(program: &Program<'_>) -> Vec<Constant> {
    let mut users = users(program);
    let record = |constant: u64, mutable_data: Option<u64>, part: &Part, values: Option<Vec<ValueRef>>| Constant {
        constant,
        mutable_data,
        segment: part.segment.map(u64::from),
        offset: part.range.offset,
        bytes: part.range.bytes,
        values: values.unwrap_or_default(),
        sha256: None,
    };
    let mut all = Vec::new();
    for (index, part) in (0..).zip(program.constants()) {
        all.push(record(index, None, part, users.constants.remove(&index)));
    }
    for (which, parts) in (0..).zip(program.mutable_data()) {
        for (index, part) in (0..).zip(parts) {
            all.push(record(index, Some(which), part, users.states.remove(&(which, index))));
        }
    }
    all
}

fn indices(all: Option<&[i32]>) -> Vec<u64> {
    all.unwrap_or_default().iter().map(|index| u64::try_from(*index).unwrap_or(u64::MAX)).collect()
}

fn index(index: i32) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

/// An operator as `aten::add.out`.
pub(super) fn operator_name(operator: &schema::Operator<'_>) -> String {
    match operator.overload {
        Some(overload) if !overload.is_empty() => format!("{}.{overload}", operator.name.unwrap_or_default()),
        _ => operator.name.unwrap_or_default().to_owned(),
    }
}

pub(super) fn method(plan: &ExecutionPlan<'_>, number: usize) -> Method {
    let operators: Vec<String> = plan.operators.iter().flatten().map(operator_name).collect();
    let ports = |list: &Option<Vec<i32>>| -> Vec<Port> {
        list.iter().flatten().map(|value| port(plan, index(*value))).collect()
    };
    let trees = plan.container_meta_type.as_ref();
    let tree = |text: Option<&str>| text.map(str::to_owned);
    Method {
        method: plan.name.unwrap_or_default().to_owned(),
        plan: number as u64,
        inputs: ports(&plan.inputs),
        outputs: ports(&plan.outputs),
        memory: memory(plan),
        instructions: steps(plan, &operators),
        operators,
        values: plan.values.as_ref().map_or(0, Vec::len) as u64,
        delegates: plan.delegates.as_ref().map_or(0, Vec::len) as u64,
        input_tree: trees.and_then(|it| tree(it.encoded_inp_str)),
        output_tree: trees.and_then(|it| tree(it.encoded_out_str)),
    }
}

pub(super) fn memory(plan: &ExecutionPlan<'_>) -> Vec<Memory> {
    let device = |it: &NonConstBufferDevice| {
        let name = device_name(it.device_type, it.device_index);
        u64::try_from(it.buffer_idx).ok().map(|memory| (memory, name))
    };
    let mut devices: HashMap<u64, String> = plan.non_const_buffer_device.iter().flatten().filter_map(device).collect();
    let sizes = (0..).zip(plan.non_const_buffer_sizes.iter().flatten());
    sizes
        .map(|(memory, size)| Memory { memory, bytes: Integer::from(*size), device: devices.remove(&memory) })
        .collect()
}

fn device_name(kind: schema::DeviceType, number: i8) -> String {
    let word = kind.name().map_or_else(|| format!("device_type_{}", kind.0), str::to_lowercase);
    if number == 0 && kind == schema::DeviceType::CPU { word } else { format!("{word}:{number}") }
}

fn steps(plan: &ExecutionPlan<'_>, operators: &[String]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (chain, body) in (0..).zip(plan.chains.iter().flatten()) {
        let stacks = body.stacktrace.as_deref().unwrap_or_default();
        for (at, instruction) in body.instructions.iter().flatten().enumerate() {
            let Some(call) = action(instruction, operators) else { continue };
            let stack = stacks.get(at).and_then(|it| it.items.as_deref()).unwrap_or_default();
            steps.push(Step { chain, instruction: at as u64, call, stack: stack.iter().map(frame).collect() });
        }
    }
    steps
}

fn frame(frame: &schema::Frame<'_>) -> Frame {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Frame { file: owned(frame.filename), line: frame.lineno, name: owned(frame.name), context: owned(frame.context) }
}

fn action(instruction: &Instruction, operators: &[String]) -> Option<Action> {
    Some(match instruction {
        Instruction::KernelCall(it) => {
            let op = usize::try_from(it.op_index).ok().and_then(|at| operators.get(at)).cloned().unwrap_or_default();
            Action::Kernel { op, args: indices(it.args.as_deref()) }
        }
        Instruction::DelegateCall(it) => {
            Action::Delegate { delegate: index(it.delegate_index), args: indices(it.args.as_deref()) }
        }
        Instruction::MoveCall(it) => Action::Move { from: index(it.move_from), to: index(it.move_to) },
        Instruction::JumpFalseCall(it) => {
            Action::JumpFalse { condition: index(it.cond_value_index), destination: index(it.destination_instruction) }
        }
        Instruction::FreeCall(it) => Action::Free { value: index(it.value_index) },
        Instruction::None | Instruction::Unknown(_) => return None,
    })
}

pub(super) fn layout_of(ty: schema::ScalarType, sizes: Option<&[i32]>, order: Option<&[u8]>) -> TensorLayout {
    TensorLayout {
        dtype: ty.dtype(),
        shape: sizes.unwrap_or_default().iter().map(|size| i64::from(*size)).collect(),
        dim_order: order.unwrap_or_default().iter().map(|dim| u64::from(*dim)).collect(),
    }
}

fn layout(tensor: &Tensor<'_>) -> TensorLayout {
    layout_of(tensor.scalar_type, tensor.sizes.as_deref(), tensor.dim_order.as_deref())
}

fn dynamism(tensor: &Tensor<'_>) -> String {
    let kind = tensor.shape_dynamism;
    kind.name().map_or_else(|| format!("shape_dynamism_{}", kind.0), str::to_lowercase)
}

pub(super) fn port(plan: &ExecutionPlan<'_>, value: u64) -> Port {
    let found = usize::try_from(value).ok().and_then(|at| plan.values.as_ref()?.get(at));
    let tensor = found.and_then(|it| if let EValue::Tensor(tensor) = it { Some(tensor) } else { None });
    Port {
        value,
        kind: found.map(kind_of).unwrap_or_default(),
        layout: tensor.map(|it| layout(it)),
        dynamism: tensor.map(|it| dynamism(it)),
    }
}

/// The schema's `OptionalTensorList` as `optional_tensor_list`.
fn kind_of(value: &EValue<'_>) -> String {
    let Some(name) = value.type_name() else { return "unknown".to_owned() };
    if name == "NONE" {
        return "none".to_owned();
    }
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

pub(super) fn placement(tensor: &Tensor<'_>) -> Placement {
    let extra = tensor.extra_tensor_info.as_ref();
    if extra.is_some_and(|extra| extra.location == TensorDataLocation::EXTERNAL) {
        return Placement::External;
    }
    let buffer = u64::from(tensor.data_buffer_idx);
    match &tensor.allocation_info {
        Some(planned) => {
            let offset = u64::from(planned.memory_offset_high) << 32 | u64::from(planned.memory_offset_low);
            let initial = (buffer > 0).then_some(buffer);
            Placement::Planned { memory: planned.memory_id.into(), offset: Integer::from(offset), initial }
        }
        None if buffer > 0 => Placement::Constant(buffer),
        None => Placement::Supplied,
    }
}

pub(super) fn value(plan: &ExecutionPlan<'_>, at: usize) -> Value {
    let found = plan.values.as_ref().and_then(|all| all.get(at)).unwrap_or(&EValue::None);
    let mut record = Value {
        method: plan.name.unwrap_or_default().to_owned(),
        value: at as u64,
        kind: kind_of(found),
        layout: None,
        dynamism: None,
        data: None,
        fully_qualified_name: None,
        requires_grad: None,
        device: None,
        literal: None,
        items: None,
    };
    match found {
        EValue::Tensor(tensor) => {
            let extra = tensor.extra_tensor_info.as_ref();
            record.layout = Some(layout(tensor));
            record.dynamism = Some(dynamism(tensor));
            record.data = Some(placement(tensor));
            record.fully_qualified_name = extra.and_then(|it| it.fully_qualified_name).map(str::to_owned);
            record.requires_grad = Some(tensor.requires_grad);
            record.device = extra.map(|it| device_name(it.device_type, it.device_index)).filter(|it| it != "cpu");
        }
        EValue::Int(x) => record.literal = Some(Arg::Int(*x)),
        EValue::Bool(x) => record.literal = Some(Arg::Bool(*x)),
        EValue::Double(x) => record.literal = Some(Arg::Float(Float(*x))),
        EValue::String(text) => record.literal = Some(text.map_or(Arg::Null, |text| Arg::Str(text.to_owned()))),
        EValue::DoubleList(items) => {
            let items = items.iter().flatten().map(|x| Arg::Float(Float(*x))).collect();
            record.literal = Some(Arg::List(items));
        }
        EValue::BoolList(items) => {
            record.literal = Some(Arg::List(items.iter().flatten().map(|x| Arg::Bool(*x)).collect()));
        }
        EValue::IntList(items) => {
            let items = items.iter().flatten().map(|index| u64::try_from(*index).unwrap_or(u64::MAX));
            record.items = Some(items.collect());
        }
        EValue::TensorList(items) | EValue::OptionalTensorList(items) => record.items = Some(indices(items.as_deref())),
        EValue::None | EValue::Null | EValue::Unknown(_) => {}
    }
    record
}

/// The record of a delegate, without digest and written name.
pub fn delegate(delegate: &Delegate<'_, '_>) -> pte::Delegate {
    let (location, index) = match delegate.location {
        Location::Inline(index) => ("inline", index),
        Location::Segment(index) => ("segment", index),
    };
    let call = |it: &super::Call<'_>| DelegateCall {
        chain: it.chain as u64,
        instruction: it.instruction as u64,
        args: indices(Some(it.args)),
    };
    pte::Delegate {
        method: delegate.method.to_owned(),
        delegate: delegate.index as u64,
        id: delegate.id.to_owned(),
        location: location.to_owned(),
        index: index.into(),
        offset: delegate.range.offset,
        bytes: delegate.range.bytes,
        format: Format::of(delegate.payload).name().to_owned(),
        compile_specs: delegate.compile_specs.iter().map(|it| compile_spec(it.key, it.value)).collect(),
        calls: delegate.calls.iter().map(call).collect(),
        written: None,
        sha256: None,
    }
}

fn compile_spec(key: Option<&str>, value: Option<Blob<'_>>) -> CompileSpec {
    let bytes = value.map(|it| it.bytes).unwrap_or_default();
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
    let is_short = bytes.len() <= SPEC_BYTES;
    CompileSpec {
        key: key.unwrap_or_default().to_owned(),
        bytes: bytes.len() as u64,
        text: text.filter(|_| is_short).map(str::to_owned),
        hex: (is_short && text.is_none()).then(|| m2m_record::writer::hex(bytes)),
    }
}
