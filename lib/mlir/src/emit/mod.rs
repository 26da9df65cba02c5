//! The builder that appends operations at a current place, with a current location and tag.
//!
//! Values it returns live as long as the context in the type system; they are valid as long as the module they were
//! made in, which the caller keeps for as long as it builds. Operations are appended before their regions are filled,
//! so ordinals grow in the order in which the generic form prints.

#![allow(unsafe_code)]

mod arith;
mod control;
mod linalg;
mod tensor;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use melior::Context;
use melior::ir::attribute::AttributeLike;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike, OperationRef, OperationRefMut};
use melior::ir::r#type::TypeLike;
use melior::ir::{Attribute, Block, BlockRef, Identifier, Location, Module, Region, RegionLike, Type, ValueLike};

pub use arith::{CmpF, CmpI};
pub use linalg::Iter;
pub use tensor::Size;

use crate::context::Diagnostics;
use crate::error::Error;
use crate::types;

/// An SSA value. Its second lifetime is that of the context; see the module's comment.
pub type Value<'c> = melior::ir::Value<'c, 'c>;

/// The name of the discardable attribute that holds the tag.
pub const TAG: &str = "m2m.node";

/// The constants of one region, by type and value, which MLIR keeps once each.
#[derive(Default)]
struct Frame<'c> {
    is_closed: bool,
    constants: HashMap<(usize, usize), Value<'c>>,
}

impl<'c> Frame<'c> {
    fn key(r#type: Type<'c>, value: Attribute<'c>) -> (usize, usize) {
        (r#type.to_raw().ptr.addr(), value.to_raw().ptr.addr())
    }
}

/// Appends operations to a current block.
pub struct Builder<'c> {
    context: &'c Context,
    block: Cell<BlockRef<'c, 'c>>,
    location: Cell<Location<'c>>,
    tag: RefCell<Option<String>>,
    ordinal: Cell<usize>,
    constants: RefCell<Vec<Frame<'c>>>,
    // Bodies of linalg operations are part of the operation that holds them, so they carry no tag of their own.
    depth: Cell<usize>,
}

impl<'c> Builder<'c> {
    /// A builder at the end of a module's body. The module must outlive all use of the builder and of its values.
    pub fn new(context: &'c Context, module: &Module<'c>) -> Self {
        let mut ordinal = 0;
        crate::module::operations(module, |_, _| ordinal += 1);
        // SAFETY: only the lifetime changes; the block belongs to the module, which the caller keeps.
        let block = unsafe { BlockRef::from_raw(module.body().to_raw()) };
        Self {
            context,
            block: Cell::new(block),
            location: Cell::new(Location::unknown(context)),
            tag: RefCell::new(None),
            ordinal: Cell::new(ordinal),
            constants: RefCell::new(vec![Frame::default()]),
            depth: Cell::new(0),
        }
    }

    /// A constant that was made before and is seen at the current place.
    fn known_constant(&self, r#type: Type<'c>, value: Attribute<'c>) -> Option<Value<'c>> {
        let frames = self.constants.borrow();
        let known = |frame: &Frame<'c>| frame.constants.get(&Frame::key(r#type, value)).copied();
        let last = frames.iter().rposition(|frame| frame.is_closed).unwrap_or(0);
        frames.iter().skip(last).rev().find_map(known)
    }

    fn note_constant(&self, r#type: Type<'c>, value: Attribute<'c>, made: Value<'c>) {
        if let Some(frame) = self.constants.borrow_mut().last_mut() {
            frame.constants.insert(Frame::key(r#type, value), made);
        }
    }

    /// The context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// The ordinal that the next operation gets: its place in the generic print, where the module is 0.
    pub fn ordinal(&self) -> usize {
        self.ordinal.get()
    }

    /// Sets the location of what follows.
    pub fn set_location(&self, location: Location<'c>) {
        self.location.set(location);
    }

    /// Sets the location of what follows to `loc("name"("file":line:0))`, or `loc("name")` without a file.
    pub fn set_named_location(&self, name: &str, file: Option<(&str, usize)>) {
        let child = match file {
            Some((file, line)) => Location::new(self.context, file, line, 0),
            None => Location::unknown(self.context),
        };
        self.location.set(Location::name(self.context, name, child));
    }

    /// The current location.
    pub fn location(&self) -> Location<'c> {
        self.location.get()
    }

    /// Sets the tag, the node id written as the attribute `m2m.node` on what follows; none writes no attribute.
    pub fn set_tag(&self, tag: Option<&str>) {
        *self.tag.borrow_mut() = tag.map(str::to_owned);
    }

    /// An element type by its dtype name.
    pub fn elem(&self, dtype: &str) -> Result<Type<'c>, Error> {
        types::elem(self.context, dtype)
    }

    /// `index`.
    pub fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    /// Any operation without regions; its results.
    pub fn op(
        &self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Vec<Value<'c>>, Error> {
        Ok(results_of(self.append(name, operands, results, attributes, Vec::new())?))
    }

    /// Any operation without regions and with one result.
    pub fn op1(
        &self,
        name: &str,
        operands: &[Value<'c>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Value<'c>, Error> {
        let results = self.op(name, operands, &[result], attributes)?;
        results.first().copied().ok_or_else(|| Error::Build { name: name.to_owned(), messages: Vec::new() })
    }

    /// Any operation with one single-block region a list of argument types; `fill` is called for each with its number and
    /// the block's arguments, and ends it with its terminator.
    pub fn op_with_regions(
        &self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        arguments: &[Vec<Type<'c>>],
        mut fill: impl FnMut(&Self, usize, &[Value<'c>]) -> Result<(), Error>,
    ) -> Result<Vec<Value<'c>>, Error> {
        let regions = arguments.iter().map(|types| self.region(types)).collect();
        let operation = self.append(name, operands, results, attributes, regions)?;
        for index in 0..arguments.len() {
            self.fill_region(operation, index, |arguments| fill(self, index, arguments))?;
        }
        Ok(results_of(operation))
    }

    /// As `op`, but with region results given by inference from the operands.
    pub fn op_inferred(
        &self,
        name: &str,
        operands: &[Value<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Vec<Value<'c>>, Error> {
        let builder = self.start(name, operands, attributes).enable_result_type_inference();
        Ok(results_of(self.finish(name, builder)?))
    }

    fn region(&self, arguments: &[Type<'c>]) -> Region<'c> {
        let region = Region::new();
        let arguments: Vec<_> = arguments.iter().map(|&r#type| (r#type, self.location.get())).collect();
        region.append_block(Block::new(&arguments));
        region
    }

    /// Makes the first block of a region current while `fill` runs.
    fn fill_region(
        &self,
        operation: OperationRef<'c, 'c>,
        index: usize,
        fill: impl FnOnce(&[Value<'c>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let block =
            operation.region(index).ok().and_then(|region| region.first_block()).ok_or_else(|| Error::Operand {
                name: operation.name().as_string_ref().as_str().unwrap_or_default().to_owned(),
                expected: format!("a block in region {index}"),
                found: format!("{} regions", operation.region_count()),
            })?;
        let arguments: Vec<Value<'c>> =
            (0..block.argument_count()).filter_map(|at| block.argument(at).ok()).map(Into::into).collect();
        let outer = self.block.replace(block);
        let name = operation.name();
        let name = name.as_string_ref().as_str().unwrap_or_default();
        // A function sees nothing of the module; bodies of linalg operations are kept whole, so that they can be moved.
        let is_closed = name == "func.func" || name.starts_with("linalg.");
        self.constants.borrow_mut().push(Frame { is_closed, ..Frame::default() });
        let result = fill(&arguments);
        self.constants.borrow_mut().pop();
        self.block.set(outer);
        result
    }

    fn append(
        &self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Result<OperationRef<'c, 'c>, Error> {
        let builder = self.start(name, operands, attributes).add_results(results).add_regions_vec(regions);
        self.finish(name, builder)
    }

    fn start(&self, name: &str, operands: &[Value<'c>], attributes: &[(&str, Attribute<'c>)]) -> OperationBuilder<'c> {
        let attributes: Vec<_> =
            attributes.iter().map(|&(name, value)| (Identifier::new(self.context, name), value)).collect();
        OperationBuilder::new(name, self.location.get()).add_operands(operands).add_attributes(&attributes)
    }

    fn finish(&self, name: &str, builder: OperationBuilder<'c>) -> Result<OperationRef<'c, 'c>, Error> {
        let diagnostics = Diagnostics::attach(self.context);
        let operation =
            builder.build().map_err(|_| Error::Build { name: name.to_owned(), messages: diagnostics.take() })?;
        let operation = self.block.get().append_operation(operation);
        self.ordinal.set(self.ordinal.get() + 1);
        if self.depth.get() == 0
            && let Some(tag) = self.tag.borrow().as_deref()
        {
            // SAFETY: the operation was just appended, and nothing else refers to it yet.
            let mut operation = unsafe { OperationRefMut::from_raw(operation.to_raw()) };
            operation.set_discardable_attribute(TAG, crate::attr::string(self.context, tag));
        }
        Ok(operation)
    }

    /// Runs `body` with operations untagged, as parts of the operation around them.
    fn untagged<T>(&self, body: impl FnOnce() -> T) -> T {
        self.depth.set(self.depth.get() + 1);
        let result = body();
        self.depth.set(self.depth.get() - 1);
        result
    }
}

fn results_of<'c>(operation: OperationRef<'c, 'c>) -> Vec<Value<'c>> {
    operation.results().map(Into::into).collect()
}

/// An operand error with the value's type as what was found.
fn operand_error(name: &str, expected: &str, value: Value<'_>) -> Error {
    Error::Operand { name: name.to_owned(), expected: expected.to_owned(), found: value.r#type().to_string() }
}
