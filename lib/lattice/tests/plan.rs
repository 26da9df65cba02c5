//! Plans from records: what is made of good ones, and that each defect is refused with its line.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use m2m_lattice::plan::{self, BindError, Bound, Component, Input, Kind, Plan, Relation, Stored, ValueId, ValueType};
use m2m_lattice::schema::{InputRole, OutputRole, PoolMode, SCHEMA_DIGEST};
use m2m_record::{DType, writer::hex};
use sha2::{Digest as _, Sha256};

const SPARSE: &str = "!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f32>";

/// A strided convolution with a packed weight and a dense bias, and the mean of its rows.
fn lines() -> Vec<String> {
    let text = r#"
{"record":"begin","schema":"m2m.stream.v1"}
{"record":"source","format":"lattice","schema":"DIGEST","opset":{"lattice":2}}
{"record":"file","id":"f0","name":"weights.safetensors","path":"weights.safetensors","format":"safetensors","bytes":900}
{"record":"plan_argument","name":"arg0","abi_name":"x_coords","type":"tensor<?x4xi32>","role":"sparse_coords"}
{"record":"plan_argument","name":"arg1","abi_name":"x_features","type":"tensor<?x32xf32>","role":"sparse_features"}
{"record":"plan_argument","name":"arg2","abi_name":"x_active","type":"tensor<1xi32>","role":"sparse_active"}
{"record":"plan_op","name":"lattice.sparse.make","operands":["arg0","arg1","arg2"],"operand_types":["tensor<?x4xi32>","tensor<?x32xf32>","tensor<1xi32>"],"results":["v3"],"result_types":["SPARSE"],"attrs":{"coord_order":"batch_x_y_z","stride":[1,1,1]}}
{"record":"plan_op","name":"lattice.weight","operands":[],"operand_types":[],"results":["v4"],"result_types":["!lattice.weight<conv3d, f32>"],"attrs":{"layout":"conv3d_o_xyz_i","packing":{"map":{"kind":"int4","group_size":32,"scale_dtype":"f32","mode":"affine"}},"storage_key":"w","sym_name":"w"},"weights":[{"name":"w.weight","type":{"tensor":"u32","shape":[8,4,5]},"data":{"file":"f0","offset":100,"bytes":640}},{"name":"w.scales","type":{"tensor":"f32","shape":[8,1,5]},"data":{"file":"f0","offset":740,"bytes":160}},{"name":"w.biases","type":{"tensor":"f32","shape":[8,1,5]},"data":{"file":"f0","offset":740,"bytes":160}}]}
{"record":"plan_op","name":"lattice.weight","operands":[],"operand_types":[],"results":["v5"],"result_types":["!lattice.weight<bias, f32>"],"attrs":{"layout":"bias_c","packing":{"map":{"kind":"dense","group_size":0,"mode":""}},"storage_key":"b","sym_name":"b"},"weights":[{"name":"b","type":{"tensor":"f32","shape":[5]},"data":{"file":"f0","offset":80,"bytes":20}}]}
{"record":"plan_op","name":"lattice.normalized_conv_transpose3d","operands":["v3","v4","v5"],"operand_types":["SPARSE","!lattice.weight<conv3d, f32>","!lattice.weight<bias, f32>"],"results":["v6"],"result_types":["SPARSE"],"attrs":{"accumulation":"canonical_f32","dilation":[1,1,1],"eps":0.009999999776482582,"kernel_size":[2,2,2],"padding":[0,0,0],"stride":[2,2,2]},"loc":"14:5"}
{"record":"plan_op","name":"lattice.global_pool","operands":["v6"],"operand_types":["SPARSE"],"results":["v7"],"result_types":["tensor<?x5xf32>"],"attrs":{"batch_size":-1,"mode":"avg"}}
{"record":"plan_output","name":"v7","abi_name":"mean","type":"tensor<?x5xf32>","role":"tensor"}
{"record":"plan_output","name":"v6","abi_name":"rows","type":"SPARSE","role":"sparse_tensor"}
"#;
    let text = text.trim().replace("DIGEST", SCHEMA_DIGEST).replace("SPARSE", SPARSE);
    text.lines().map(|line| format!("{line}\n")).collect()
}

fn read(lines: &[String]) -> Result<Plan, plan::Error> {
    let mut text = lines.concat();
    let digest = hex(&Sha256::digest(text.as_bytes()));
    let end = format!("{{\"record\":\"end\",\"status\":\"ok\",\"records\":{},\"sha256\":\"{digest}\"}}\n", lines.len());
    text.push_str(&end);
    plan::read(text.as_bytes())
}

#[test]
fn a_plan_is_typed_and_numbered() {
    let plan = read(&lines()).unwrap();
    assert_eq!(plan.arguments.len(), 3);
    assert_eq!(plan.arguments[0].role, InputRole::SparseCoords);
    assert_eq!(plan.values.len(), 8);
    assert_eq!(plan.values[3], ValueType::Sparse { dtype: DType::F32 });
    let ops: Vec<usize> = plan.ops.iter().map(|op| op.result().0).collect();
    assert_eq!(ops, [3, 4, 5, 6, 7]);
    let Kind::Weight(weight) = &plan.ops[1].kind else { panic!("{:?}", plan.ops[1]) };
    let Stored::Packed(packed) = &weight.stored else { panic!("{weight:?}") };
    assert_eq!((packed.bits, packed.group_size, packed.scales.shape.as_slice()), (4, 32, &[8, 1, 5][..]));
    let Kind::Convolution(conv) = &plan.ops[3].kind else { panic!("{:?}", plan.ops[3]) };
    assert_eq!((conv.relation, conv.eps, conv.bias), (Relation::Transposed, Some(0.01), Some(ValueId(5))));
    assert_eq!((conv.window.volume(), conv.window.padding, conv.target), (8, [0; 3], None));
    assert_eq!(plan.ops[3].loc.as_deref(), Some("14:5"));
    let Kind::GlobalPool { mode, batch_size, .. } = &plan.ops[4].kind else { panic!("{:?}", plan.ops[4]) };
    assert_eq!((*mode, *batch_size), (PoolMode::Avg, None));
    assert_eq!(plan.outputs[1].role, OutputRole::SparseTensor);
    assert_eq!(plan.files.len(), 1);
}

/// What is wrong after one line has been changed, with the line.
fn refused(line: usize, from: &str, to: &str) -> String {
    let mut lines = lines();
    let changed = lines[line - 1].replacen(from, to, 1);
    assert_ne!(changed, lines[line - 1], "{from} is not in line {line}");
    lines[line - 1] = changed;
    let error = read(&lines).expect_err("the change is a defect");
    format!("{}: {error}", error.line().unwrap_or(0))
}

#[test]
fn every_defect_is_refused_at_its_line() {
    let cases = [
        (2, SCHEMA_DIGEST, "1234", "2: schema digest"),
        (2, "\"lattice\":2", "\"lattice\":1", "2: IR version"),
        (4, "sparse_coords", "coords", "4: input role"),
        (5, "\"x_features\"", "\"x_coords\"", "5: ABI name \"x_coords\" is given twice"),
        (5, "\"arg1\"", "\"arg0\"", "5: label \"arg0\" is defined twice"),
        (5, "tensor<?x32xf32>", "tensor<?x32xquant>", "5: type"),
        (7, "sparse.make", "sparse.made", "7: operation"),
        (7, "\"arg2\"]", "\"arg9\"]", "7: lattice.sparse.make: operand \"arg9\" is not defined"),
        (7, ",\"arg2\"]", "]", "7: lattice.sparse.make: 2 operands"),
        (7, "\"coord_order\":\"batch_x_y_z\",", "", "7: lattice.sparse.make: attribute \"coord_order\" is missing"),
        (7, "\"stride\":[1,1,1]", "\"stride\":[1,1]", "7: lattice.sparse.make: attribute \"stride\""),
        (7, "\"stride\":[1,1,1]", "\"stride\":[1,1,1],\"x\":1", "7: lattice.sparse.make: unknown attribute \"x\""),
        (7, "\"arg0\",\"arg1\"", "\"arg1\",\"arg0\"", "7: lattice.sparse.make: operand \"arg1\" is said to be"),
        (7, "[\"v3\"]", "[]", "7: lattice.sparse.make: 0 results"),
        (8, "\"kind\":\"int4\"", "\"kind\":\"int2\"", "8: lattice.weight: attribute \"packing\" has kind"),
        (8, "\"group_size\":32", "\"group_size\":-1", "8: lattice.weight: attribute \"packing\" has group_size -1"),
        (8, "conv3d_o_xyz_i", "linear_o_i", "8: lattice.weight: family conv3d with layout linear_o_i"),
        (9, "bias_c", "bias", "9: lattice.weight: attribute \"layout\" is \"bias\""),
        (
            9,
            ",\"weights\":[",
            ",\"weights\":[{\"name\":\"b\",\"type\":{\"none\":true},\"data\":{\"missing\":true}},",
            "9: lattice.weight: stored tensor \"b\"",
        ),
        (10, "canonical_f32", "fast", "10: lattice.normalized_conv_transpose3d: attribute \"accumulation\""),
        (
            10,
            "\"kernel_size\":[2,2,2]",
            "\"kernel_size\":[65536,65536,1]",
            "10: lattice.normalized_conv_transpose3d: attribute",
        ),
        (
            10,
            "\"padding\":[0,0,0]",
            "\"padding\":[0,0,-1]",
            "10: lattice.normalized_conv_transpose3d: attribute \"padding\"",
        ),
        (11, "\"batch_size\":-1", "\"batch_size\":-2", "11: lattice.global_pool: batch_size -2"),
        (11, "\"mode\":\"avg\"", "\"mode\":\"min\"", "11: lattice.global_pool: attribute \"mode\" is \"min\""),
        (12, "\"v7\"", "\"v8\"", "12: returns \"v8\", which nothing defines"),
        (12, "tensor<?x5xf32>", "tensor<?x4xf32>", "12: returns \"v7\" as"),
        (13, "\"rows\"", "\"mean\"", "13: ABI name \"mean\" is given twice"),
    ];
    for (line, from, to, expected) in cases {
        let found = refused(line, from, to);
        assert!(found.starts_with(expected), "{expected:?} expected, found {found:?}");
    }
}

#[test]
fn a_plan_must_return_something() {
    let lines = lines();
    let error = read(&lines[..11]).expect_err("nothing is returned");
    assert!(error.to_string().contains("must return at least one value"), "{error}");
}

#[test]
fn arguments_bind_by_position_and_name() {
    let plan = read(&lines()).unwrap();
    assert_eq!(plan.inputs(), [Input::Sparse { name: "x".into(), first: 0 }]);
    let whole =
        [Bound::Part(0, Component::Coords), Bound::Part(0, Component::Features), Bound::Part(0, Component::Active)];
    assert_eq!(plan.bind(0, &["x"]).unwrap(), whole);
    let mixed = plan.bind(1, &["x_active", "x_features"]).unwrap();
    assert_eq!(mixed, [Bound::Positional(0), Bound::Named(1), Bound::Named(0)]);
    assert_eq!(plan.bind(4, &[]), Err(BindError::TooMany { given: 4, takes: 3 }));
    assert_eq!(plan.bind(1, &["x_active"]), Err(BindError::Missing(vec!["x_features".into()])));
    assert_eq!(plan.bind(0, &["x", "x_active"]), Err(BindError::Twice("x_active".into())));
    assert_eq!(plan.bind(1, &["x"]), Err(BindError::Twice("x_coords".into())));
    assert!(matches!(plan.bind(0, &["y"]), Err(BindError::Unexpected { .. })));
}
