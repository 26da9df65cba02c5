//! Tensors as wholes: made, measured, sliced, padded and reshaped, with sizes that are numbers or values.
//!
//! Joining is by `insert_slice` into an empty tensor, because `tensor.concat` does not bufferize.

use melior::ir::{Attribute, Type, ValueLike};

use super::{Builder, Value, operand_error};
use crate::error::Error;
use crate::types::DYNAMIC;
use crate::{attr, types};

/// A size, offset or stride: known now, or an `index` value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size<'c> {
    /// Known.
    Static(i64),
    /// Of type `index`.
    Value(Value<'c>),
}

impl From<i64> for Size<'_> {
    fn from(size: i64) -> Self {
        Self::Static(size)
    }
}

impl<'c> From<Value<'c>> for Size<'c> {
    fn from(size: Value<'c>) -> Self {
        Self::Value(size)
    }
}

impl Size<'_> {
    /// The number in a static attribute or type, `DYNAMIC` for a value.
    pub fn number(self) -> i64 {
        match self {
            Self::Static(size) => size,
            Self::Value(_) => DYNAMIC,
        }
    }
}

fn numbers(sizes: &[Size<'_>]) -> Vec<i64> {
    sizes.iter().map(|size| size.number()).collect()
}

fn values<'c>(sizes: &[Size<'c>]) -> Vec<Value<'c>> {
    sizes.iter().filter_map(|size| if let Size::Value(value) = size { Some(*value) } else { None }).collect()
}

fn count(values: &[Value<'_>]) -> i32 {
    i32::try_from(values.len()).expect("operand lists are short")
}

impl<'c> Builder<'c> {
    /// The size of one axis: static from the type, otherwise through `tensor.dim`.
    pub fn size(&self, tensor: Value<'c>, axis: usize) -> Result<Size<'c>, Error> {
        match types::dims(tensor.r#type()).get(axis) {
            Some(&DYNAMIC) => Ok(Size::Value(self.dim(tensor, axis)?)),
            Some(&size) => Ok(Size::Static(size)),
            None => Err(operand_error("tensor.dim", &format!("a tensor with axis {axis}"), tensor)),
        }
    }

    /// The sizes of all axes.
    pub fn sizes(&self, tensor: Value<'c>) -> Result<Vec<Size<'c>>, Error> {
        (0..types::dims(tensor.r#type()).len()).map(|axis| self.size(tensor, axis)).collect()
    }

    /// A size as an `index` value.
    pub fn size_value(&self, size: Size<'c>) -> Result<Value<'c>, Error> {
        match size {
            Size::Static(size) => self.const_index(size),
            Size::Value(value) => Ok(value),
        }
    }

    /// `tensor.dim`.
    pub fn dim(&self, tensor: Value<'c>, axis: usize) -> Result<Value<'c>, Error> {
        let axis = self.const_index(axis.cast_signed() as i64)?;
        self.op1("tensor.dim", &[tensor, axis], self.index_type(), &[])
    }

    /// `tensor.empty`: undefined contents.
    pub fn empty(&self, sizes: &[Size<'c>], element: Type<'c>) -> Result<Value<'c>, Error> {
        self.op1("tensor.empty", &values(sizes), types::tensor(&numbers(sizes), element), &[])
    }

    /// `tensor.extract`; an index out of range is undefined behaviour.
    pub fn extract(&self, tensor: Value<'c>, indices: &[Value<'c>]) -> Result<Value<'c>, Error> {
        let operands: Vec<_> = std::iter::once(tensor).chain(indices.iter().copied()).collect();
        self.op1("tensor.extract", &operands, types::element(tensor.r#type()), &[])
    }

    /// `tensor.insert` of a scalar.
    pub fn insert(&self, scalar: Value<'c>, tensor: Value<'c>, indices: &[Value<'c>]) -> Result<Value<'c>, Error> {
        let operands: Vec<_> = [scalar, tensor].into_iter().chain(indices.iter().copied()).collect();
        self.op1("tensor.insert", &operands, tensor.r#type(), &[])
    }

    /// `tensor.from_elements` of a static shape, row-major.
    pub fn from_elements(&self, dims: &[i64], elements: &[Value<'c>]) -> Result<Value<'c>, Error> {
        let Some(first) = elements.first() else {
            return Err(Error::Operand {
                name: "tensor.from_elements".to_owned(),
                expected: "at least one element".to_owned(),
                found: "none".to_owned(),
            });
        };
        self.op1("tensor.from_elements", elements, types::tensor(dims, first.r#type()), &[])
    }

    /// `tensor.splat`: one scalar in every element.
    pub fn splat(&self, scalar: Value<'c>, sizes: &[Size<'c>]) -> Result<Value<'c>, Error> {
        let operands: Vec<_> = std::iter::once(scalar).chain(values(sizes)).collect();
        self.op1("tensor.splat", &operands, types::tensor(&numbers(sizes), scalar.r#type()), &[])
    }

    /// `tensor.cast` between static and dynamic dimensions; nothing when the type is already that.
    pub fn tensor_cast(&self, tensor: Value<'c>, r#type: Type<'c>) -> Result<Value<'c>, Error> {
        if tensor.r#type() == r#type {
            return Ok(tensor);
        }
        self.op1("tensor.cast", &[tensor], r#type, &[])
    }

    /// `tensor.expand_shape`: group `i` of `groups` lists the result axes that source axis `i` becomes.
    pub fn expand_shape(
        &self,
        tensor: Value<'c>,
        groups: &[Vec<usize>],
        sizes: &[Size<'c>],
    ) -> Result<Value<'c>, Error> {
        let operands: Vec<_> = std::iter::once(tensor).chain(values(sizes)).collect();
        let static_shape = numbers(sizes);
        let result = types::tensor(&static_shape, types::element(tensor.r#type()));
        let attributes = [
            ("reassociation", attr::groups(self.context, groups)),
            ("static_output_shape", attr::int64_array(self.context, &static_shape)),
        ];
        self.op1("tensor.expand_shape", &operands, result, &attributes)
    }

    /// `tensor.collapse_shape`: group `i` of `groups` lists the source axes that become result axis `i`.
    pub fn collapse_shape(&self, tensor: Value<'c>, groups: &[Vec<usize>]) -> Result<Value<'c>, Error> {
        let dims = types::dims(tensor.r#type());
        let folded = groups.iter().map(|group| {
            group.iter().try_fold(1_i64, |product, &axis| {
                dims.get(axis).filter(|&&dim| dim != DYNAMIC).and_then(|&dim| product.checked_mul(dim))
            })
        });
        let shape: Vec<_> = folded.map(|dim| dim.unwrap_or(DYNAMIC)).collect();
        let result = types::tensor(&shape, types::element(tensor.r#type()));
        self.op1("tensor.collapse_shape", &[tensor], result, &[("reassociation", attr::groups(self.context, groups))])
    }

    /// `tensor.reshape` to the sizes in `shape`, a 1-d tensor of `index` or integers; `dims` is the result's shape.
    pub fn reshape(&self, tensor: Value<'c>, shape: Value<'c>, dims: &[i64]) -> Result<Value<'c>, Error> {
        self.op1("tensor.reshape", &[tensor, shape], types::tensor(dims, types::element(tensor.r#type())), &[])
    }

    /// `tensor.extract_slice` with the rank of its source.
    pub fn extract_slice(
        &self,
        tensor: Value<'c>,
        offsets: &[Size<'c>],
        sizes: &[Size<'c>],
        strides: &[Size<'c>],
    ) -> Result<Value<'c>, Error> {
        if holds_nothing(sizes) {
            return self.empty(sizes, types::element(tensor.r#type()));
        }
        let result = types::tensor(&numbers(sizes), types::element(tensor.r#type()));
        self.slice("tensor.extract_slice", &[tensor], [offsets, sizes, strides], result)
    }

    /// `tensor.insert_slice` of `part` into `whole`.
    pub fn insert_slice(
        &self,
        part: Value<'c>,
        whole: Value<'c>,
        offsets: &[Size<'c>],
        sizes: &[Size<'c>],
        strides: &[Size<'c>],
    ) -> Result<Value<'c>, Error> {
        if holds_nothing(sizes) {
            return Ok(whole);
        }
        self.slice("tensor.insert_slice", &[part, whole], [offsets, sizes, strides], whole.r#type())
    }

    /// Row `index` of a tensor, without its first axis: a `tensor.extract_slice` of lower rank.
    pub fn extract_row(&self, tensor: Value<'c>, index: Value<'c>) -> Result<Value<'c>, Error> {
        let (at, sizes) = self.row(tensor, index)?;
        let row = types::tensor(&numbers(&sizes[1..]), types::element(tensor.r#type()));
        if holds_nothing(&sizes) {
            return self.empty(&sizes[1..], types::element(tensor.r#type()));
        }
        let strides = vec![Size::Static(1); sizes.len()];
        self.slice("tensor.extract_slice", &[tensor], [&at, &sizes, &strides], row)
    }

    /// Puts a tensor in place of row `index` of another, which has one axis more in front.
    pub fn insert_row(&self, row: Value<'c>, whole: Value<'c>, index: Value<'c>) -> Result<Value<'c>, Error> {
        let (at, sizes) = self.row(whole, index)?;
        self.insert_slice(row, whole, &at, &sizes, &vec![Size::Static(1); sizes.len()])
    }

    /// Offsets and sizes of a row.
    fn row(&self, tensor: Value<'c>, index: Value<'c>) -> Result<(Vec<Size<'c>>, Vec<Size<'c>>), Error> {
        let mut sizes = self.sizes(tensor)?;
        let Some(rows) = sizes.first_mut() else {
            return Err(operand_error("tensor.extract_slice", "a tensor with at least one axis", tensor));
        };
        *rows = Size::Static(1);
        let mut at = vec![Size::Static(0); sizes.len()];
        at[0] = Size::Value(index);
        Ok((at, sizes))
    }

    fn slice(
        &self,
        name: &str,
        tensors: &[Value<'c>],
        lists: [&[Size<'c>]; 3],
        result: Type<'c>,
    ) -> Result<Value<'c>, Error> {
        let [offsets, sizes, strides] = lists.map(values);
        let mut segments = vec![1_i32; tensors.len()];
        segments.extend([count(&offsets), count(&sizes), count(&strides)]);
        let operands: Vec<_> = tensors.iter().copied().chain(offsets).chain(sizes).chain(strides).collect();
        let [static_offsets, static_sizes, static_strides] =
            lists.map(|list| attr::int64_array(self.context, &numbers(list)));
        let attributes = [
            ("static_offsets", static_offsets),
            ("static_sizes", static_sizes),
            ("static_strides", static_strides),
            ("operandSegmentSizes", attr::int32_array(self.context, &segments)),
        ];
        self.op1(name, &operands, result, &attributes)
    }

    /// `tensor.pad` with one scalar around the tensor. Amounts must not be negative; crop with `extract_slice`.
    pub fn pad(
        &self,
        tensor: Value<'c>,
        low: &[Size<'c>],
        high: &[Size<'c>],
        scalar: Value<'c>,
    ) -> Result<Value<'c>, Error> {
        let dims = types::dims(tensor.r#type());
        if low.len() != dims.len() || high.len() != dims.len() {
            return Err(operand_error("tensor.pad", &format!("a tensor of rank {}", low.len()), tensor));
        }
        let shape: Vec<i64> =
            dims.iter().zip(low).zip(high).map(|((&dim, low), high)| padded(dim, *low, *high)).collect();
        if dims.contains(&0) {
            let axis_size = |axis: usize, size| self.add_sizes(self.add_sizes(size, low[axis])?, high[axis]);
            let sizes = self.sizes(tensor)?.into_iter().enumerate().map(|(axis, size)| axis_size(axis, size));
            let out = self.empty(&sizes.collect::<Result<Vec<_>, _>>()?, types::element(tensor.r#type()))?;
            return self.fill(scalar, out);
        }
        let (low_values, high_values) = (values(low), values(high));
        let segments = [1, count(&low_values), count(&high_values)];
        let operands: Vec<_> = std::iter::once(tensor).chain(low_values).chain(high_values).collect();
        let attributes: [(&str, Attribute<'c>); 3] = [
            ("static_low", attr::int64_array(self.context, &numbers(low))),
            ("static_high", attr::int64_array(self.context, &numbers(high))),
            ("operandSegmentSizes", attr::int32_array(self.context, &segments)),
        ];
        let result = types::tensor(&shape, types::element(tensor.r#type()));
        let arguments = vec![self.index_type(); dims.len()];
        let results =
            self.op_with_regions("tensor.pad", &operands, &[result], &attributes, &[arguments], |b, _, _| {
                b.untagged(|| b.op("tensor.yield", &[scalar], &[], &[])).map(drop)
            })?;
        Ok(results[0])
    }

    /// Joins tensors along an axis; all other sizes are taken from the first.
    pub fn concat(&self, tensors: &[Value<'c>], axis: usize) -> Result<Value<'c>, Error> {
        let (Some(&first), true) =
            (tensors.first(), tensors.iter().all(|&part| types::dims(part.r#type()).len() > axis))
        else {
            return Err(Error::Operand {
                name: "concat".to_owned(),
                expected: format!("at least one tensor, each with axis {axis}"),
                found: format!("{} tensors", tensors.len()),
            });
        };
        let mut sizes = self.sizes(first)?;
        let mut offsets = vec![Size::Static(0)];
        for &part in tensors {
            let at = self.add_sizes(offsets[offsets.len() - 1], self.size(part, axis)?)?;
            offsets.push(at);
        }
        sizes[axis] = offsets[offsets.len() - 1];
        let mut whole = self.empty(&sizes, types::element(first.r#type()))?;
        let ones = vec![Size::Static(1); sizes.len()];
        for (&part, &offset) in tensors.iter().zip(&offsets) {
            let mut at = vec![Size::Static(0); sizes.len()];
            at[axis] = offset;
            whole = self.insert_slice(part, whole, &at, &self.sizes(part)?, &ones)?;
        }
        Ok(whole)
    }

    /// The sum of two sizes, folded when both are known.
    pub fn add_sizes(&self, lhs: Size<'c>, rhs: Size<'c>) -> Result<Size<'c>, Error> {
        match (lhs, rhs) {
            (Size::Static(0), other) | (other, Size::Static(0)) => Ok(other),
            (Size::Static(a), Size::Static(b)) => checked("sum of sizes", a.checked_add(b), a, b),
            _ => Ok(Size::Value(self.addi(self.size_value(lhs)?, self.size_value(rhs)?)?)),
        }
    }

    /// The product of two sizes, folded when both are known.
    pub fn mul_sizes(&self, lhs: Size<'c>, rhs: Size<'c>) -> Result<Size<'c>, Error> {
        match (lhs, rhs) {
            (Size::Static(1), other) | (other, Size::Static(1)) => Ok(other),
            (Size::Static(a), Size::Static(b)) => checked("product of sizes", a.checked_mul(b), a, b),
            _ => Ok(Size::Value(self.muli(self.size_value(lhs)?, self.size_value(rhs)?)?)),
        }
    }
}

/// Whether a box of these sizes is seen to be empty. LLVM refuses to take such a part of a buffer, as its first element
/// would be outside.
fn holds_nothing(sizes: &[Size<'_>]) -> bool {
    sizes.contains(&Size::Static(0))
}

fn padded(dim: i64, low: Size<'_>, high: Size<'_>) -> i64 {
    match (dim, low, high) {
        (DYNAMIC, _, _) | (_, Size::Value(_), _) | (_, _, Size::Value(_)) => DYNAMIC,
        (dim, Size::Static(low), Size::Static(high)) => {
            dim.checked_add(low).and_then(|sum| sum.checked_add(high)).unwrap_or(DYNAMIC)
        }
    }
}

fn checked<'c>(what: &str, result: Option<i64>, a: i64, b: i64) -> Result<Size<'c>, Error> {
    result.map(Size::Static).ok_or_else(|| Error::Operand {
        name: what.to_owned(),
        expected: "a result below 2^63".to_owned(),
        found: format!("{a} and {b}"),
    })
}
