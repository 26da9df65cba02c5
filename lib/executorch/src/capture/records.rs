//! The profile as records of a stream, and files as they are stored, field by field.

use std::io::{self, Write};

use m2m_record::profile::{self as record, Metadata, Time};
use m2m_record::raw::{RawAllocation, RawDebug, RawEvent, RawProfile, RawTensor, RawValue, Run};
use m2m_record::{Data, Dim, File, Float, TensorType, Type, Writer};

use super::debug::{Logged, LoggedValue, shortest};
use super::{Block, BlockEvent, Capture, Error, Source};
use crate::etdump::{DebugEntry, Dump, Event, LoggedTensor, VERSION, scalar_type_name};
use crate::etrecord::EtRecord;

/// The record of the file that holds the bytes of logged tensors.
#[derive(Clone, Copy, Debug)]
pub enum Names<'n> {
    /// The debug buffer itself.
    Buffer(&'n File),
    /// A safetensors file that they were written to.
    Tensors(&'n File),
    /// Nothing.
    Nowhere,
}

impl Source {
    /// Writes nodes, handles and instructions.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write<W: Write>(&self, out: &mut Writer<W>) -> io::Result<()> {
        let graph = self.graph.as_deref().unwrap_or_default();
        self.nodes.iter().try_for_each(|node| out.write(&node.record(graph)))?;
        let method = self.method.as_deref().unwrap_or_default();
        for (handle, nodes) in &self.handles {
            let nodes = nodes.iter().filter_map(|at| self.nodes.get(*at)).map(|node| node.name.clone()).collect();
            out.write(&record::Handle { method: method.to_owned(), debug_handle: *handle, nodes })?;
        }
        for (number, known) in &self.instructions {
            let delegate = known.delegate.as_ref();
            out.write(&record::Instruction {
                method: method.to_owned(),
                instruction_id: *number,
                debug_handles: known.handles.clone().unwrap_or_default(),
                backend: delegate.map(|delegate| delegate.name.clone()),
                delegate_ids: delegate.and_then(|delegate| delegate.ids.clone()),
                outputs: known.outputs,
            })?;
        }
        Ok(())
    }
}

impl Capture<'_> {
    /// Writes the head of the profile, its blocks and its events. What they are explained by is [`Source::write`]'s.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write<W: Write>(&self, out: &mut Writer<W>) -> io::Result<()> {
        out.write(&record::Capture {
            format: "etdump".to_owned(),
            version: VERSION,
            method: self.source.method.clone(),
            methods: self.source.methods.clone(),
            source_time_scale: self.options.source,
            target_time_scale: self.options.target,
            blocks: self.blocks.len() as u64,
            events: self.blocks.iter().map(|block| block.events.len() as u64).sum(),
            samples: self.blocks.iter().flat_map(|block| &block.events).map(|event| event.samples.len() as u64).sum(),
            export_graph_id: self.source.export_graph_id.map(Into::into),
        })?;
        for (number, block) in self.blocks.iter().enumerate() {
            out.write(&record::Block {
                block: number as u64,
                name: block.name.to_owned(),
                bundled_input_index: block.bundled_input_index.into(),
                runs: block.runs.iter().map(|run| *run as u64).collect(),
                events: block.events.len() as u64,
                agreement: block.agreement,
            })?;
            for (index, event) in block.events.iter().enumerate() {
                out.write(&self.event(number, block, index, event))?;
            }
        }
        Ok(())
    }

    fn event(&self, number: usize, block: &Block<'_>, index: usize, event: &BlockEvent<'_>) -> record::Event {
        let node = |at: &usize| self.source.nodes.get(*at).map(|node| node.name.clone());
        let measured = || event.places.iter().filter_map(|place| self.profile_at(*place));
        let metadata = || measured().map(|found| found.metadata.filter(|bytes| !bytes.is_empty()));
        let mut made = record::Event {
            block: number as u64,
            event: index as u64,
            block_name: block.name.to_owned(),
            method: self.source.method.clone(),
            name: event.label(),
            instruction_id: event.instruction,
            delegate_id: event.delegate.clone(),
            backend: event.backend.clone(),
            occurrence: event.occurrence,
            debug_handles: event.handles.clone(),
            nodes: event.nodes.iter().filter_map(node).collect(),
            start_ticks: measured().map(|found| found.start.into()).collect(),
            ..record::Event::default()
        };
        if metadata().any(|found| found.is_some()) {
            made.raw_delegate_metadata = Some(metadata().map(|found| found.map(Metadata::of)).collect());
        }
        made.set_samples(self.options.target, event.samples.iter().copied().map(Time).collect());
        made
    }

    /// Writes logged values, each after its tensors.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write_logged<W: Write>(
        &self,
        logged: &[LoggedValue],
        names: Names<'_>,
        out: &mut Writer<W>,
    ) -> io::Result<()> {
        for value in logged {
            let (mut literal, mut tensors) = (None, None);
            match &value.value {
                Logged::Literal(found) => literal = Some(found.clone()),
                Logged::Tensors(found) => {
                    found.iter().try_for_each(|tensor| out.write(&self.tensor(value, tensor, names)))?;
                    tensors = Some(found.iter().map(|tensor| tensor.name.clone()).collect());
                }
            }
            out.write(&record::DebugValue {
                block: value.block.map(|block| block as u64),
                event: value.event.map(|event| event as u64),
                run: value.run as u64,
                position: value.position as u64,
                name: value.name.clone(),
                instruction_id: value.instruction,
                delegate_id: value.delegate.clone(),
                output: value.output,
                tensors,
                literal,
            })?;
        }
        Ok(())
    }

    fn tensor(&self, value: &LoggedValue, tensor: &super::debug::Tensor, names: Names<'_>) -> m2m_record::Tensor {
        let data = match names {
            Names::Nowhere => Data::Missing,
            Names::Tensors(file) => Data::Tensor { file: file.id.clone(), tensor: tensor.name.clone() },
            Names::Buffer(file) => Data::Range {
                file: file.id.clone(),
                offset: tensor.offset,
                bytes: tensor.bytes,
                storage: None,
                strides: None,
                byteorder: m2m_record::ByteOrder::Little,
            },
        };
        // A node is named only where there can be no doubt: the one node of the one instruction.
        let nodes = value.instruction.map(|instruction| self.source.nodes_for_instruction(instruction));
        let origin = match nodes.as_deref() {
            Some([only]) if value.tensors().len() == 1 => self.source.nodes.get(*only).map(|node| node.name.clone()),
            _ => None,
        };
        let dims = tensor.shape.iter().map(|size| Dim::Int(*size as i64)).collect();
        let ty = Type::Tensor(TensorType::new(tensor.dtype, dims));
        m2m_record::Tensor { name: tensor.name.clone(), ty, data, sha256: None, origin }
    }
}

/// Writes every field of a dump.
///
/// # Errors
/// When the sink fails.
pub fn write_raw_dump<W: Write>(dump: &Dump<'_>, out: &mut Writer<W>) -> io::Result<()> {
    let text = |text: &Option<&str>| text.map(str::to_owned);
    for (number, run) in dump.runs.iter().enumerate() {
        out.write(&Run {
            run: number as u64,
            name: text(&run.name),
            bundled_input_index: run.bundled_input_index,
            allocators: run.allocators.as_ref().map(|names| names.iter().map(text).collect()),
            events: run.events.as_ref().map(|range| range.len() as u64),
        })?;
        for (position, event) in dump.events_of(run).iter().enumerate() {
            out.write(&raw_event(number, position, event))?;
        }
    }
    Ok(())
}

fn raw_event(run: usize, position: usize, event: &Event<'_>) -> RawEvent {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let (mut profile_event, mut allocation_event, mut debug_event) = (None, None, None);
    match event {
        Event::Profile(event) => {
            profile_event = Some(RawProfile {
                name: text(event.name),
                chain_index: event.chain,
                instruction_id: event.instruction,
                delegate_debug_id_int: event.delegate_int,
                delegate_debug_id_str: text(event.delegate_str),
                delegate_debug_metadata: event.metadata.map(Metadata::of),
                start_time: event.start.into(),
                end_time: event.end.into(),
            });
        }
        Event::Allocation { allocator, size } => {
            allocation_event = Some(RawAllocation { allocator_id: *allocator, allocation_size: (*size).into() });
        }
        Event::Debug(event) => {
            debug_event = Some(RawDebug {
                name: text(event.name),
                chain_index: event.chain.into(),
                instruction_id: event.instruction,
                delegate_debug_id_int: event.delegate_int,
                delegate_debug_id_str: text(event.delegate_str),
                debug_entry: Some(raw_value(&event.entry)),
            });
        }
    }
    RawEvent { run: run as u64, position: position as u64, profile_event, allocation_event, debug_event }
}

fn raw_value(entry: &DebugEntry) -> RawValue {
    RawValue {
        val: entry.kind_name(),
        tensor: entry.tensor.as_ref().map(raw_tensor),
        tensor_list: entry.tensor_list.as_ref().map(|list| list.iter().map(raw_tensor).collect()),
        int_value: entry.int.map(Into::into),
        float_value: entry.float.map(|x| Float(shortest(x))),
        double_value: entry.double.map(Float),
        bool_value: entry.bool,
        output: entry.output,
    }
}

fn raw_tensor(tensor: &LoggedTensor) -> RawTensor {
    let integers = |list: &[i64]| list.iter().map(|x| (*x).into()).collect();
    RawTensor {
        scalar_type: scalar_type_name(tensor.scalar_type),
        sizes: integers(&tensor.sizes),
        strides: integers(&tensor.strides),
        offset: tensor.offset.into(),
    }
}

/// Writes every entry of a record, every node of every graph, and every method's maps.
///
/// # Errors
/// When an entry is damaged or is not what it should be, and when the sink fails.
pub fn write_raw_record<W: Write>(record: &EtRecord<'_>, out: &mut Writer<W>) -> Result<(), Error> {
    for entry in record.entries() {
        out.write(&entry?)?;
    }
    for name in record.graphs() {
        let graph = record.graph(name)?;
        graph.nodes.iter().try_for_each(|node| out.write(&node.record(name)))?;
    }
    for method in record.maps().methods() {
        let source = Source {
            method: Some(method.to_owned()),
            instructions: record.maps().instructions(method).cloned().unwrap_or_default(),
            ..Source::default()
        };
        source.write(out)?;
    }
    Ok(())
}
