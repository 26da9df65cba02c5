//! Sample inputs: the pickled `(args, kwargs)` of the export, flattened and written as a safetensors file.
//!
//! Leaves are numbered as the program's inputs are: positional ones first, then keywords in the order of the calling
//! convention. A number becomes a tensor without dimensions; `None` and strings have no bytes and are left out, which
//! keeps the numbers of the others.

use std::collections::HashMap;
use std::io::Write;

use m2m_record::{Arg, DType, File, Tree};
use m2m_tensor::safetensors::Plan;
use m2m_tensor::source::Files;

use crate::Error;
use crate::archive::Archive;
use crate::pickle::{Id, MAX_DEPTH, Pickle, Policy, Tensor, Value};
use crate::place::{Placed, Storages};
use crate::saved::Saved;
use crate::tree::{self, NamedTuples};

/// A leaf that has bytes.
enum Leaf {
    Placed(Placed),
    Inline(DType, Vec<u8>),
}

/// Writes the sample inputs of a program. `in_spec` orders its keyword arguments; `is_wanted` tells leaves that are inputs
/// from constants.
///
/// # Errors
/// A refused pickle, or values that are no tensors, numbers or containers of them.
pub(crate) fn write(
    archive: &Archive<'_>,
    entry: &str,
    in_spec: Option<&str>,
    is_wanted: impl Fn(usize) -> bool,
    file: &File,
    out: &mut impl Write,
) -> Result<(), Error> {
    let saved = Saved::open(archive, entry, Policy::Tensors)?;
    let pickle = saved.pickle();
    let mut leaves = Vec::new();
    flatten(pickle, pickle.root(), &keyword_order(in_spec), MAX_DEPTH, &mut leaves)?;
    let mut storages = Storages::default();
    let mut found: HashMap<String, Leaf> = HashMap::new();
    let mut plan = Plan::new();
    for (k, id) in leaves.into_iter().enumerate().filter(|(k, _)| is_wanted(*k)) {
        let name = format!("in_{k}");
        let Some(leaf) = leaf(&saved, &name, pickle.value(id), &mut storages)? else { continue };
        match &leaf {
            Leaf::Placed(placed) => {
                let sizes: Vec<u64> = placed.sizes.iter().map(|&n| n.unsigned_abs()).collect();
                plan.tensor(&name, placed.dtype, &sizes)?;
            }
            Leaf::Inline(dtype, _) => plan.tensor(&name, *dtype, &[])?,
        }
        found.insert(name, leaf);
    }
    write_leaves(&plan, &found, file, out)
}

fn write_leaves(plan: &Plan, found: &HashMap<String, Leaf>, file: &File, out: &mut impl Write) -> Result<(), Error> {
    let mut files = Files::new();
    let fail = |name: &str, source| Error::Data { name: name.to_owned(), source };
    files.open(file, None).map_err(|e| fail("", e))?;
    plan.write(out, |name, sink| match found.get(name) {
        Some(Leaf::Placed(placed)) => {
            let view = files.view(&placed.data(&file.id), placed.dtype, &placed.sizes).map_err(|e| fail(name, e))?;
            view.write_contiguous(sink).map_err(|e| fail(name, e))
        }
        Some(Leaf::Inline(_, bytes)) => Ok(sink.write_all(bytes)?),
        None => Err(Error::Samples(format!("{name} was planned but not found"))),
    })
}

/// Keyword names in the order of the calling convention.
fn keyword_order(in_spec: Option<&str>) -> Vec<String> {
    let Some(text) = in_spec else { return Vec::new() };
    let Ok(Tree::Node { mut children, .. }) = tree::parse_any(text, &NamedTuples::new()) else { return Vec::new() };
    match children.pop() {
        Some(Tree::Node { keys, .. }) => {
            keys.into_iter().filter_map(|key| if let Arg::Str(name) = key { Some(name) } else { None }).collect()
        }
        _ => Vec::new(),
    }
}

/// Leaves in pytree order. `order` sorts the keys of the outermost dict only, which are the keyword arguments.
fn flatten(pickle: &Pickle<'_>, id: Id, order: &[String], depth: usize, leaves: &mut Vec<Id>) -> Result<(), Error> {
    if depth == 0 {
        return Err(Error::Samples(format!("containers are nested more than {MAX_DEPTH} deep")));
    }
    if leaves.len() > MAX_LEAVES {
        return Err(Error::Samples(format!("more than {MAX_LEAVES} leaves")));
    }
    match pickle.value(id) {
        Value::Tuple(items) | Value::List(items) => {
            items.iter().try_for_each(|&item| flatten(pickle, item, order, depth - 1, leaves))
        }
        Value::Dict(items) => {
            let mut items = items.clone();
            if depth == MAX_DEPTH - 1 {
                let place = |key: &Id| match pickle.value(*key) {
                    Value::Str(name) => order.iter().position(|known| known == name).unwrap_or(order.len()),
                    _ => order.len(),
                };
                items.sort_by_key(|(key, _)| place(key));
            }
            items.iter().try_for_each(|&(_, item)| flatten(pickle, item, order, depth - 1, leaves))
        }
        _ => {
            leaves.push(id);
            Ok(())
        }
    }
}

/// Most leaves of a calling convention: a pickle can repeat one container without end.
const MAX_LEAVES: usize = 100_000;

fn leaf(saved: &Saved<'_>, name: &str, value: &Value<'_>, storages: &mut Storages) -> Result<Option<Leaf>, Error> {
    Ok(match value {
        Value::Tensor(tensor) => Some(Leaf::Placed(place(saved, name, tensor, storages)?)),
        Value::Bool(b) => Some(Leaf::Inline(DType::Bool, vec![u8::from(*b)])),
        Value::Int(n) => Some(Leaf::Inline(DType::I64, n.to_le_bytes().to_vec())),
        Value::Float(x) => Some(Leaf::Inline(DType::F64, x.to_le_bytes().to_vec())),
        Value::Complex(re, im) => Some(Leaf::Inline(DType::C128, [re.to_le_bytes(), im.to_le_bytes()].concat())),
        Value::None | Value::Str(_) => None,
        other => return Err(Error::Samples(format!("{name} is {}, which has no bytes of its own", other.kind()))),
    })
}

fn place(saved: &Saved<'_>, name: &str, tensor: &Tensor<'_>, storages: &mut Storages) -> Result<Placed, Error> {
    let placed = saved.place(name, tensor, storages)?;
    placed.ok_or_else(|| Error::Samples(format!("{name} was saved without its bytes")))
}
