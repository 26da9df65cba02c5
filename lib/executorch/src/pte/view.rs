//! A program or data file as tables for people.

use super::extract::Plan;
use super::records::{self, layout_of, operator_name};
use super::schema::{EValue, ExecutionPlan, Instruction};
use super::{DataFile, Program};
use m2m_cli::escape;
use m2m_record::pte::{Content, Placement};
use m2m_record::{Arg, pte};
use std::io::{self, Write};

/// Longest text of one cell; literals and trees may be long.
const CELL_CHARS: usize = 60;

/// Lines of cells, aligned by column: numbers to the right.
struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn new(titles: &[&str]) -> Self {
        Grid { rows: vec![titles.iter().map(|it| (*it).to_owned()).collect()] }
    }

    fn push(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shorten(&escape(&cell))).collect());
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.rows.len() < 2 {
            return Ok(());
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let is_number = |column: usize| {
            self.rows.iter().skip(1).filter_map(|row| row.get(column)).all(|cell| cell.parse::<i128>().is_ok())
        };
        let right: Vec<bool> = (0..columns).map(is_number).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&right) {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                line.push_str("  ");
                line.push_str(&if *right { format!("{pad}{cell}") } else { format!("{cell}{pad}") });
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Writes a program, or one method of it.
///
/// # Errors
/// Those of the writer.
pub fn write(program: &Program<'_>, name: &str, method: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    let stored = program.stored();
    writeln!(
        out,
        "{}: ExecuTorch program, schema version {}, {} bytes, of which {} are header and tables\n",
        escape(name),
        stored.program.version,
        stored.file.len(),
        stored.program_bytes().len()
    )?;
    write_segments(program, out)?;
    for (number, plan) in program.plans().iter().enumerate() {
        if method.is_none_or(|name| plan.name == Some(name)) {
            write_method(program, number, plan, out)?;
        }
    }
    Ok(())
}

fn write_segments(program: &Program<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut grid = Grid::new(&["SEGMENT", "OFFSET", "BYTES", "HOLDS"]);
    for it in records::segments(program) {
        let holds: Vec<String> = it.holds.iter().map(content).collect();
        grid.push([it.segment.to_string(), it.offset.to_string(), it.bytes.to_string(), holds.join(", ")]);
    }
    grid.write(out)?;
    let mut grid = Grid::new(&["CONSTANT", "OFFSET", "BYTES", "VALUES"]);
    for it in records::constants(program).iter().filter(|it| it.bytes > 0 || !it.values.is_empty()) {
        let values: Vec<String> = it.values.iter().map(|it| format!("{}:{}", it.method, it.value)).collect();
        let kind = if it.mutable_data.is_some() { "first state of " } else { "" };
        let cells = [it.constant.to_string(), it.offset.to_string(), it.bytes.to_string()];
        grid.push(cells.into_iter().chain([format!("{kind}{}", values.join(", "))]));
    }
    grid.write(out)
}

fn content(content: &Content) -> String {
    match content {
        Content::Constants => "constants".to_owned(),
        Content::MutableData(index) => format!("mutable data {index}"),
        Content::Delegate(method, index) => format!("delegate {method}.{index}"),
        Content::NamedData(key) => format!("data {key}"),
    }
}

fn write_method(
    program: &Program<'_>,
    number: usize,
    plan: &ExecutionPlan<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let record = records::method(plan, number);
    writeln!(out, "method {}", escape(&record.method))?;
    let mut grid = Grid::new(&["", "VALUE", "TYPE", "SHAPE IS"]);
    for (word, ports) in [("input", &record.inputs), ("output", &record.outputs)] {
        for port in ports {
            let kind = port.dynamism.clone().unwrap_or_default();
            grid.push([word.to_owned(), port.value.to_string(), type_of(&port.kind, port.layout.as_ref()), kind]);
        }
    }
    grid.write(out)?;
    let mut grid = Grid::new(&["MEMORY", "BYTES", "DEVICE"]);
    for it in &record.memory {
        grid.push([it.memory.to_string(), it.bytes.0.to_string(), it.device.clone().unwrap_or_default()]);
    }
    grid.write(out)?;
    let mut grid = Grid::new(&["DELEGATE", "BACKEND", "FORMAT", "STORED", "OFFSET", "BYTES", "CALLED BY"]);
    for it in program.delegates_of(number).iter().map(records::delegate) {
        let calls: Vec<String> = it.calls.iter().map(|call| call.instruction.to_string()).collect();
        let stored = format!("{} {}", it.location, it.index);
        let (offset, bytes) = (it.offset.to_string(), it.bytes.to_string());
        grid.push([it.delegate.to_string(), it.id, it.format, stored, offset, bytes, calls.join(", ")]);
    }
    grid.write(out)?;
    write_operators(plan, out)?;
    let mut grid = Grid::new(&["CHAIN", "INSTRUCTION", "DOES", "VALUES"]);
    for it in &record.instructions {
        let (does, values) = action(&it.call);
        grid.push([it.chain.to_string(), it.instruction.to_string(), does, values]);
    }
    grid.write(out)?;
    let mut grid = Grid::new(&["VALUE", "TYPE", "IS"]);
    for index in 0..record.values as usize {
        let value = records::value(plan, index);
        grid.push([value.value.to_string(), type_of(&value.kind, value.layout.as_ref()), what(&value)]);
    }
    grid.write(out)
}

fn write_operators(plan: &ExecutionPlan<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut uses = vec![0u64; plan.operators.as_ref().map_or(0, Vec::len)];
    for it in plan.chains.iter().flatten().flat_map(|chain| chain.instructions.iter().flatten()) {
        let Instruction::KernelCall(call) = it else { continue };
        if let Some(count) = usize::try_from(call.op_index).ok().and_then(|at| uses.get_mut(at)) {
            *count += 1;
        }
    }
    let mut grid = Grid::new(&["CALLS", "OPERATOR"]);
    for (operator, count) in plan.operators.iter().flatten().zip(uses) {
        grid.push([count.to_string(), operator_name(operator)]);
    }
    grid.write(out)
}

fn action(call: &pte::Action) -> (String, String) {
    let list = |args: &[u64]| args.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    match call {
        pte::Action::Kernel { op, args } => (op.clone(), list(args)),
        pte::Action::Delegate { delegate, args } => (format!("delegate {delegate}"), list(args)),
        pte::Action::Move { from, to } => ("move".to_owned(), format!("{from} to {to}")),
        pte::Action::JumpFalse { condition, destination } => {
            ("jump if false".to_owned(), format!("{condition}, to instruction {destination}"))
        }
        pte::Action::Free { value } => ("free".to_owned(), value.to_string()),
    }
}

/// A tensor as `f32[1, 3]`, with the order of its dimensions where that is not the natural one.
pub(super) fn type_of(kind: &str, layout: Option<&pte::TensorLayout>) -> String {
    let Some(layout) = layout else { return kind.to_owned() };
    let sizes: Vec<String> = layout.shape.iter().map(i64::to_string).collect();
    let natural = layout.dim_order.iter().enumerate().all(|(at, dim)| at as u64 == *dim);
    let order = if natural { String::new() } else { format!(" in order {:?}", layout.dim_order) };
    format!("{}[{}]{order}", layout.dtype, sizes.join(", "))
}

/// Where a value's data are, or what it is.
fn what(value: &pte::Value) -> String {
    let place = match &value.data {
        Some(Placement::Constant(index)) => format!("constant {index}"),
        Some(Placement::Planned { memory, offset, initial }) => {
            let initial = initial.map(|index| format!(", begins as first state {index}")).unwrap_or_default();
            format!("in memory {memory} at {}{initial}", offset.0)
        }
        Some(Placement::External) => "external".to_owned(),
        Some(Placement::Supplied) => "supplied".to_owned(),
        None => String::new(),
    };
    let name = value.fully_qualified_name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let list = |items: &Vec<u64>| format!("values {}", items.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    let literal = |literal: &Arg| match literal {
        Arg::Int(x) => x.to_string(),
        Arg::Bool(x) => x.to_string(),
        Arg::Float(x) => x.0.to_string(),
        Arg::Str(text) => format!("{text:?}"),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    let rest = value.literal.as_ref().map(literal).or(value.items.as_ref().map(list)).unwrap_or_default();
    format!("{place}{name}{rest}")
}

/// Writes a data file.
///
/// # Errors
/// Those of the writer.
pub fn write_data(data: &DataFile<'_>, name: &str, out: &mut impl Write) -> io::Result<()> {
    let (version, bytes) = (data.tables.version, data.file.len());
    writeln!(out, "{}: ExecuTorch data file, schema version {version}, {bytes} bytes\n", escape(name))?;
    let mut grid = Grid::new(&["SEGMENT", "OFFSET", "BYTES", "TYPE", "KEY"]);
    for it in data.tables.named_data.iter().flatten() {
        let Some(range) = data.segments().get(it.segment_index as usize) else { continue };
        let layout = it.tensor_layout.as_ref();
        let layout = layout.map(|it| layout_of(it.scalar_type, it.sizes.as_deref(), it.dim_order.as_deref()));
        let key = it.key.unwrap_or_default().to_owned();
        let (offset, bytes) = (range.offset.to_string(), range.bytes.to_string());
        grid.push([it.segment_index.to_string(), offset, bytes, type_of("bytes", layout.as_ref()), key]);
    }
    grid.write(out)
}

/// Writes which payloads went to which files; nothing when some were refused.
///
/// # Errors
/// Those of the writer.
pub fn write_plan(plan: &Plan<'_, '_>, out: &mut impl Write) -> io::Result<()> {
    let mut grid = Grid::new(&["FILE", "FORMAT", "BYTES", "BACKEND", "METHOD", "DELEGATE"]);
    for (it, name) in plan.files.iter().filter(|_| plan.refusals.is_empty()) {
        let record = records::delegate(it);
        let (bytes, index) = (record.bytes.to_string(), record.delegate.to_string());
        grid.push([name.clone(), record.format, bytes, record.id, record.method, index]);
    }
    grid.write(out)
}

/// Writes differences, a line each.
///
/// # Errors
/// Those of the writer.
pub fn write_differences(found: &[pte::Difference], out: &mut impl Write) -> io::Result<()> {
    for it in found {
        let method = it.method.as_deref().map(|it| format!("{}: ", escape(it))).unwrap_or_default();
        let shown = |side: &Option<String>| side.as_deref().map_or("nothing".into(), |text| escape(text).into_owned());
        writeln!(out, "{method}{} {}: {} -> {}", it.what, escape(&it.name), shown(&it.a), shown(&it.b))?;
    }
    Ok(())
}

/// Whether a value is a tensor, and its type.
pub(super) fn value_type(plan: &ExecutionPlan<'_>, index: u64) -> String {
    let port = records::port(plan, index);
    let found = usize::try_from(index).ok().and_then(|at| plan.values.as_ref()?.get(at));
    match found {
        Some(EValue::Tensor(_)) => type_of(&port.kind, port.layout.as_ref()),
        Some(_) => {
            let value = records::value(plan, index as usize);
            let is = if value.items.is_some() { String::new() } else { what(&value) };
            if is.is_empty() { port.kind } else { is }
        }
        None => String::new(),
    }
}
