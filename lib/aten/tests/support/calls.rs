//! Programs of one call with any arguments, most of them wrong.

use std::hash::{DefaultHasher, Hash, Hasher};

use m2m_aten::schema::{self, SchemaArg};
use m2m_record::{Arg, DType, Float, Type};

use super::{Build, ty, v};

/// The inputs `x0`, `x1` and on of each program.
const SHAPES: [&str; 14] = [
    "f32[2,3]",
    "f32[1,4,4,4]",
    "f32[2,4,6]",
    "f32[2]",
    "i64[3]",
    "f32[s0,4]",
    "f32[]",
    "bf16[2,4,8,8]",
    "bool[2,3]",
    "i64[2,4]",
    "f32[0,3]",
    "c64[2,4]",
    "f32[1,2,4,4,4]",
    "f32[3037000500,3037000500]",
];

const INTS: [i64; 14] = [0, 1, 2, 3, 4, -1, -2, 7, 100, 4096, 1 << 31, 1 << 62, i64::MAX, i64::MIN];

/// Numbers that the seed, the operator and the case decide.
struct Dice {
    key: u64,
    count: u64,
}

/// A number out of others.
fn mixed(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.count += 1;
        (mixed((self.key, self.count)) % sides as u64) as usize
    }

    fn int(&mut self) -> i64 {
        // Small numbers most of the time, so that rules get far.
        let sides = if self.roll(4) == 0 { INTS.len() } else { 8 };
        INTS[self.roll(sides)]
    }

    fn one(&mut self, ty: &str) -> Arg {
        match ty {
            "Tensor" => v(&format!("x{}", self.roll(SHAPES.len()))),
            "int" | "SymInt" => Arg::Int(self.int()),
            "float" => Arg::Float(Float([0.0, 0.5, 1.0, -2.0, f64::NAN, f64::INFINITY][self.roll(6)])),
            "bool" => Arg::Bool(self.roll(2) == 1),
            "Scalar" => [Arg::Int(self.int()), Arg::from(0.5), Arg::Bool(true)][self.roll(3)].clone(),
            "ScalarType" => Arg::DType([DType::F32, DType::I64, DType::BF16, DType::Bool][self.roll(4)]),
            "str" => Arg::from(["ij,jk->ik", "same", "valid", "reflect", "constant", "xy", "...i,i"][self.roll(7)]),
            "MemoryFormat" => Arg::MemoryFormat("contiguous".into()),
            "Device" => Arg::Device("cpu".into()),
            "Layout" => Arg::Layout("strided".into()),
            _ => Arg::Null,
        }
    }

    fn arg(&mut self, arg: &SchemaArg) -> Arg {
        if (arg.is_optional || arg.default == Some(Arg::Null)) && self.roll(2) == 0 {
            return Arg::Null;
        }
        if !arg.is_list {
            return self.one(arg.ty);
        }
        let count = self.roll(4);
        Arg::List((0..arg.size.unwrap_or(count)).map(|_| self.one(arg.ty)).collect())
    }
}

/// Which input the first tensor among arguments is.
fn first_tensor(args: &[Arg]) -> Option<usize> {
    let mut first = None;
    for arg in args {
        arg.for_each_value(&mut |name| first = first.or_else(|| name.strip_prefix('x')?.parse().ok()));
    }
    first
}

/// The program of a case: all inputs, the call and its results.
pub fn program(op: &str, seed: u64, case: u64) -> Build {
    let schema = schema::find(op).expect("a known operator");
    let mut dice = Dice { key: mixed((seed, op, case)), count: 0 };
    let names: Vec<String> = (0..SHAPES.len()).map(|k| format!("x{k}")).collect();
    let inputs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(SHAPES).collect();
    let mut build = Build::new(&inputs);
    build.symbol("s0");
    let args: Vec<Arg> = schema.args.iter().map(|arg| dice.arg(arg)).collect();
    let count = schema.returns.len() + usize::from(schema.returns.iter().any(|r| r.is_list));
    // Half of the results are of the type of the first tensor, which many operators give.
    let first = first_tensor(&args).unwrap_or_default();
    let results: Vec<(String, Type)> = (0..count)
        .map(|k| (format!("y{k}"), ty(SHAPES[if dice.roll(2) == 0 { first } else { dice.roll(SHAPES.len()) }])))
        .collect();
    let results: Vec<(&str, Type)> = results.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    build.node(op, args, &results);
    build.outputs(&results.iter().map(|(n, _)| *n).collect::<Vec<_>>());
    build
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}; expected a number")))
}

/// Tries cases of operators: `attempt` says what is wrong with one. `M2M_ROBUST_CASES` of each operator, `cases` where
/// nothing is said; `M2M_ROBUST_SEED`; `M2M_ROBUST_OP` is the only operator.
pub fn survive(ops: &[&str], cases: u64, attempt: &dyn Fn(&Build) -> Result<(), String>) {
    let seed = number("M2M_ROBUST_SEED").unwrap_or(1);
    let cases = number("M2M_ROBUST_CASES").unwrap_or(cases);
    let only = std::env::var("M2M_ROBUST_OP").ok();
    let mut wrong = Vec::new();
    for op in ops.iter().filter(|op| only.as_deref().is_none_or(|only| only == **op)) {
        let failed = (0..cases).find_map(|case| {
            let program = program(op, seed, case);
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(&program)));
            let why = tried.unwrap_or_else(|_| Err("a panic".into())).err()?;
            Some(format!("{op}: case {case}: {why} on {:?}", program.0.root.nodes[0]))
        });
        wrong.extend(failed);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
