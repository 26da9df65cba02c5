//! In what two programs differ: by name and content, not by where things lie.
//!
//! Methods are matched by name, delegates and constants by index, named data by key; payloads and constants are compared
//! byte for byte. Instructions are compared as a sequence, each written with the types of its operands rather than their
//! numbers, so that one inserted instruction is one difference.

use super::records;
use super::schema::ExecutionPlan;
use super::{Delegate, Part, Program, view};
use m2m_record::pte::{Action, Difference, Step};
use std::collections::BTreeMap;

/// Most pairs of instructions that are compared to find a longest common sequence; beyond, a changed stretch is one block.
const MOST_PAIRS: usize = 4_000_000;

/// Everything in which `b` differs from `a`.
pub fn compare(a: &Program<'_>, b: &Program<'_>) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    let (old, new) = (a.stored().program.version, b.stored().program.version);
    found.text("program", None, "version", Some(old.to_string()), Some(new.to_string()));
    found.parts("constant", (a, a.constants()), (b, b.constants()));
    let states = a.mutable_data().len().max(b.mutable_data().len());
    for index in 0..states {
        let parts =
            |program: &'_ Program<'_>| -> Vec<Part> { program.mutable_data().get(index).cloned().unwrap_or_default() };
        found.parts("mutable_data", (a, &parts(a)), (b, &parts(b)));
    }
    let named = |program: &Program<'_>| -> BTreeMap<String, _> {
        program.named_data().map(|(key, _, range)| (key.to_owned(), range)).collect()
    };
    let (old, new) = (named(a), named(b));
    for key in both(&old, &new) {
        let bytes = (old.get(key).map(|it| a.bytes(*it)), new.get(key).map(|it| b.bytes(*it)));
        found.bytes("named_data", None, key, bytes);
    }
    let plans = |program: &Program<'_>| -> BTreeMap<String, usize> {
        let all = program.plans().iter().enumerate();
        all.map(|(number, plan)| (plan.name.unwrap_or_default().to_owned(), number)).collect()
    };
    let (old, new) = (plans(a), plans(b));
    for name in both(&old, &new) {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => found.method(name, (a, *old), (b, *new)),
            (old, new) => {
                let shown = |it: Option<&usize>| it.map(|_| "there".to_owned());
                found.text("method", Some(name), name, shown(old), shown(new));
            }
        }
    }
    found.0
}

/// Keys of both maps, in order.
fn both<'m, V>(a: &'m BTreeMap<String, V>, b: &'m BTreeMap<String, V>) -> Vec<&'m String> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    keys
}

struct Found(Vec<Difference>);

impl Found {
    fn text(&mut self, what: &str, method: Option<&str>, name: &str, a: Option<String>, b: Option<String>) {
        if a != b {
            let (what, method, name) = (what.to_owned(), method.map(str::to_owned), name.to_owned());
            self.0.push(Difference { what, method, name, a, b });
        }
    }

    /// Bytes are told apart by their digests, which are computed only when they differ.
    fn bytes(&mut self, what: &str, method: Option<&str>, name: &str, (a, b): (Option<&[u8]>, Option<&[u8]>)) {
        if a != b {
            let shown = |it: &[u8]| format!("{} bytes, sha256 {}", it.len(), super::sha256(it));
            self.text(what, method, name, a.map(shown), b.map(shown));
        }
    }

    fn parts(&mut self, what: &str, (a, old): (&Program<'_>, &[Part]), (b, new): (&Program<'_>, &[Part])) {
        for index in 0..old.len().max(new.len()) {
            // A part without bytes stands for no data, as does one that is not there.
            let old = old.get(index).map(|it| a.bytes(it.range)).filter(|it| !it.is_empty());
            let bytes = (old, new.get(index).map(|it| b.bytes(it.range)).filter(|it| !it.is_empty()));
            self.bytes(what, None, &index.to_string(), bytes);
        }
    }

    fn method(&mut self, name: &str, (a, old): (&Program<'_>, usize), (b, new): (&Program<'_>, usize)) {
        let (Some(first), Some(second)) = (a.plans().get(old), b.plans().get(new)) else { return };
        let method = Some(name);
        let (x, y) = (records::method(first, old), records::method(second, new));
        for (what, old, new) in [("input", &x.inputs, &y.inputs), ("output", &x.outputs, &y.outputs)] {
            for index in 0..old.len().max(new.len()) {
                let shown = |it: &m2m_record::pte::Port| {
                    let dynamism = it.dynamism.as_deref().filter(|it| *it != "static");
                    format!(
                        "{}{}",
                        view::type_of(&it.kind, it.layout.as_ref()),
                        dynamism.map(|it| format!(", {it}")).unwrap_or_default()
                    )
                };
                self.text(what, method, &index.to_string(), old.get(index).map(shown), new.get(index).map(shown));
            }
        }
        self.text("method", method, "input_tree", x.input_tree.clone(), y.input_tree.clone());
        self.text("method", method, "output_tree", x.output_tree.clone(), y.output_tree.clone());
        for index in 0..x.memory.len().max(y.memory.len()) {
            let shown = |it: &m2m_record::pte::Memory| {
                format!(
                    "{} bytes{}",
                    it.bytes.0,
                    it.device.as_deref().map(|it| format!(" on {it}")).unwrap_or_default()
                )
            };
            self.text(
                "memory",
                method,
                &index.to_string(),
                x.memory.get(index).map(shown),
                y.memory.get(index).map(shown),
            );
        }
        self.operators(name, &x.instructions, &y.instructions);
        let (old, new) = (a.delegates_of(old), b.delegates_of(new));
        for index in 0..old.len().max(new.len()) {
            self.delegate(name, index, old.get(index), new.get(index));
        }
        self.instructions(name, &lines(first, &x.instructions), &lines(second, &y.instructions));
    }

    /// How often operators are called.
    fn operators(&mut self, method: &str, a: &[Step], b: &[Step]) {
        let count = |steps: &[Step]| {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for step in steps {
                if let Action::Kernel { op, .. } = &step.call {
                    *counts.entry(op.clone()).or_default() += 1;
                }
            }
            counts
        };
        let (a, b) = (count(a), count(b));
        for op in both(&a, &b) {
            let shown = |counts: &BTreeMap<String, u64>| counts.get(op).map(|count| format!("{count} calls"));
            self.text("operator", Some(method), op, shown(&a), shown(&b));
        }
    }

    fn delegate(&mut self, method: &str, index: usize, a: Option<&Delegate<'_, '_>>, b: Option<&Delegate<'_, '_>>) {
        let method = Some(method);
        let name = |field: &str| format!("{index}.{field}");
        let id = |it: Option<&Delegate<'_, '_>>| it.map(|it| it.id.to_owned());
        self.text("delegate", method, &name("id"), id(a), id(b));
        self.bytes("delegate", method, &name("payload"), (a.map(|it| it.payload), b.map(|it| it.payload)));
        let specs = |it: Option<&Delegate<'_, '_>>| -> BTreeMap<String, Vec<u8>> {
            let all = it.map(|it| it.compile_specs).unwrap_or_default().iter();
            all.map(|it| {
                let value = it.value.map(|value| value.bytes.to_vec());
                (it.key.unwrap_or_default().to_owned(), value.unwrap_or_default())
            })
            .collect()
        };
        let (a, b) = (specs(a), specs(b));
        for key in both(&a, &b) {
            let shown = |it: &BTreeMap<String, Vec<u8>>| {
                it.get(key).map(|value| match std::str::from_utf8(value) {
                    Ok(text) => format!("{text:?}"),
                    Err(_) => m2m_record::writer::hex(value),
                })
            };
            self.text("delegate", method, &name(&format!("compile_specs.{key}")), shown(&a), shown(&b));
        }
    }

    fn instructions(&mut self, method: &str, a: &[String], b: &[String]) {
        for (at, old, new) in edits(a, b) {
            self.text("instruction", Some(method), &at.to_string(), old.cloned(), new.cloned());
        }
    }
}

/// Instructions as text: what is called on which types.
fn lines(plan: &ExecutionPlan<'_>, steps: &[Step]) -> Vec<String> {
    let types = |args: &[u64]| args.iter().map(|at| view::value_type(plan, *at)).collect::<Vec<_>>().join(", ");
    let line = |step: &Step| match &step.call {
        Action::Kernel { op, args } => format!("{op}({})", types(args)),
        Action::Delegate { delegate, args } => format!("delegate {delegate}({})", types(args)),
        Action::Move { from, to } => format!("move({})", types(&[*from, *to])),
        Action::JumpFalse { destination, .. } => format!("jump if false to {destination}"),
        Action::Free { value } => format!("free({})", types(&[*value])),
    };
    steps.iter().map(line).collect()
}

/// What has to be removed from `a` and added to make `b`, each with its position: in `a` for what is removed or replaced,
/// in `b` for what is added.
fn edits<'t>(a: &'t [String], b: &'t [String]) -> Vec<(usize, Option<&'t String>, Option<&'t String>)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let tail = tail.min(a.len().min(b.len()) - head);
    let (old, new) = (a.get(head..a.len() - tail).unwrap_or_default(), b.get(head..b.len() - tail).unwrap_or_default());
    let kept = if old.len().saturating_mul(new.len()) <= MOST_PAIRS { common(old, new) } else { Vec::new() };
    let mut edits = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (x, y) in kept.into_iter().chain([(old.len(), new.len())]) {
        while i < x || j < y {
            let (gone, come) = ((i < x).then(|| old.get(i)).flatten(), (j < y).then(|| new.get(j)).flatten());
            edits.push((head + if gone.is_some() { i } else { j }, gone, come));
            i += usize::from(gone.is_some());
            j += usize::from(come.is_some());
        }
        i = x + 1;
        j = y + 1;
    }
    edits
}

/// The positions of a longest common sequence.
fn common(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    let mut best = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            best[i * width + j] = match a[i] == b[j] {
                true => best[(i + 1) * width + j + 1] + 1,
                false => best[(i + 1) * width + j].max(best[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            i += 1;
            j += 1;
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn one_insertion_is_one_edit() {
        let (a, b) = (words("x y z"), words("x y new z"));
        assert_eq!(edits(&a, &b), [(2, None, Some(&b[2]))]);
        assert_eq!(edits(&b, &a), [(2, Some(&b[2]), None)]);
    }

    #[test]
    fn a_replaced_word_is_one_edit() {
        let (a, b) = (words("p x q y r"), words("p k q l r"));
        assert_eq!(edits(&a, &b), [(1, Some(&a[1]), Some(&b[1])), (3, Some(&a[3]), Some(&b[3]))]);
        assert_eq!(edits(&a, &a), []);
    }
}
