//! Whatever the arguments of an operator are, preparing gives a graph or a reason, never a panic or an endless loop.

mod support;

use m2m_aten::schema;
use m2m_record::{Arg, DType, Float, Type};
use proptest::prelude::*;
use support::{Build, ty, v};

const SHAPES: [&str; 9] =
    ["f32[]", "f32[2]", "f32[2,3]", "f32[2,4,6]", "f32[1,4,4,4]", "f32[s0,4]", "i64[3]", "bf16[2,4,8,8]", "bool[2,3]"];

const INTS: [i64; 14] = [0, 1, 2, 3, 4, -1, -2, 7, 100, 4096, 1 << 31, 1 << 62, i64::MAX, i64::MIN];

/// Picks from a list of numbers, again and again.
struct Dice<'a> {
    rolls: &'a [u16],
    at: usize,
}

impl Dice<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        self.at += 1;
        usize::from(self.rolls[self.at % self.rolls.len()]) % sides
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

    fn arg(&mut self, arg: &schema::SchemaArg) -> Arg {
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

fn call(op: &str, rolls: &[u16]) {
    let schema = schema::find(op).expect("a known operator");
    let mut dice = Dice { rolls, at: 0 };
    let names: Vec<String> = (0..SHAPES.len()).map(|k| format!("x{k}")).collect();
    let inputs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(SHAPES).collect();
    let mut build = Build::new(&inputs);
    build.symbol("s0");
    let mut args = Vec::new();
    for arg in &schema.args {
        args.push(dice.arg(arg));
    }
    let count = schema.returns.len() + usize::from(schema.returns.iter().any(|r| r.is_list));
    let results: Vec<(String, Type)> =
        (0..count).map(|k| (format!("y{k}"), ty(SHAPES[dice.roll(SHAPES.len())]))).collect();
    let results: Vec<(&str, Type)> = results.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    build.node(op, args, &results);
    build.outputs(&results.iter().map(|(n, _)| *n).collect::<Vec<_>>());
    let all = m2m_aten::decompose::operators();
    let is_lowerable = |op: &str| support::CORE.contains(&op) || all.binary_search(&op).is_err();
    if let Ok(prepared) = m2m_aten::prepare(&build.0, &is_lowerable) {
        assert!(prepared.graph.nodes.len() < 200_000, "{op}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_survives_any_arguments(rolls in prop::collection::vec(any::<u16>(), 40)) {
        for op in m2m_aten::decompose::operators() {
            call(op, &rolls);
        }
    }
}
