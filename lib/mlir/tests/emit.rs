//! Functions built, verified, printed in every form and read back.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Stdio};

use m2m_mlir::types::{DYNAMIC, tensor};
use m2m_mlir::{
    Builder, CmpF, CmpI, Context, Error, Expr, Form, Iter, Locations, Map, Module, Size, Type, Value, attr, context,
    new_module, operations, parse, print, verify,
};

/// Builds `@forward` from types by dtype and shape, verifies it, and checks that every form reads back.
fn check(
    arguments: &[(&str, &[i64])],
    results: &[(&str, &[i64])],
    body: impl for<'c> FnOnce(&Builder<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, Error>,
) -> String {
    let context = context();
    let module = new_module(&context);
    let b = Builder::new(&context, &module);
    let list = |items: &[(&str, &[i64])]| -> Vec<Type<'_>> {
        items.iter().map(|(dtype, dims)| tensor(dims, b.elem(dtype).unwrap())).collect()
    };
    b.function("forward", &list(arguments), &list(results), &[], body).unwrap();
    let mut count = 0;
    operations(&module, |_, _| count += 1);
    assert_eq!(b.ordinal(), count, "every operation has its ordinal");
    verify(&context, &module).unwrap();
    round_trips(&context, &module)
}

fn round_trips(context: &Context, module: &Module<'_>) -> String {
    let text = |module: &Module<'_>| String::from_utf8(print(module, Form::Generic, Locations::Omit).unwrap()).unwrap();
    let generic = text(module);
    for form in [Form::Generic, Form::Pretty, Form::Bytecode] {
        let bytes = print(module, form, Locations::Omit).unwrap();
        let again = parse(context, &bytes).unwrap();
        assert_eq!(text(&again), generic, "{form:?}");
    }
    accepted_by_mlir_opt(&generic);
    generic
}

/// LLVM's own tool reads what is printed, where it is installed.
fn accepted_by_mlir_opt(text: &str) {
    let piped = Command::new("mlir-opt-22").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = piped else { return };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generic_adds_with_broadcasting() {
    let text = check(&[("f32", &[2, 3]), ("f32", &[3])], &[("f32", &[2, 3])], |b, arguments| {
        let out = b.empty(&b.sizes(arguments[0])?, b.elem("f32")?)?;
        let ins = [(arguments[0], Map::identity(2)), (arguments[1], Map::dims(2, &[1]))];
        let sum = b.elementwise(&ins, out, |b, x| {
            let sum = b.addf(x[0], x[1])?;
            let zero = b.const_float(b.elem("f32")?, 0.0)?;
            let positive = b.cmpf(CmpF::Ogt, sum, zero)?;
            b.select(positive, sum, zero)
        })?;
        Ok(vec![sum])
    });
    assert!(text.contains("affine_map<(d0, d1) -> (d1)>"), "{text}");
    assert!(text.contains("\"arith.cmpf\""), "{text}");
}

#[test]
fn dynamic_sizes_are_read_from_operands() {
    let text = check(&[("bf16", &[DYNAMIC, 4])], &[("bf16", &[4, DYNAMIC])], |b, arguments| {
        let sizes = b.sizes(arguments[0])?;
        let out = b.empty(&[sizes[1], sizes[0]], b.elem("bf16")?)?;
        Ok(vec![b.transpose(arguments[0], out, &[1, 0])?])
    });
    assert!(text.contains("\"tensor.dim\""), "{text}");
}

#[test]
fn matmul_and_convolutions_have_their_bodies() {
    let arguments: [(&str, &[i64]); 4] =
        [("f32", &[2, 3]), ("f32", &[4, 3]), ("f32", &[1, 4, 8, 8]), ("f32", &[6, 4, 3, 3])];
    let text = check(&arguments, &[("f32", &[2, 4]), ("f32", &[1, 6, 3, 3])], |b, arguments| {
        let f32_type = b.elem("f32")?;
        let zero = b.const_float(f32_type, 0.0)?;
        let out = b.fill(zero, b.empty(&[2.into(), 4.into()], f32_type)?)?;
        let maps = [Map::dims(3, &[0, 2]), Map::dims(3, &[1, 2]), Map::dims(3, &[0, 1])];
        let attributes = [("indexing_maps", attr::maps(b.context(), &maps))];
        let product = b.named("linalg.matmul", &[arguments[0], arguments[1]], &[out], &attributes)?;
        let out = b.fill(zero, b.empty(&[1.into(), 6.into(), 3.into(), 3.into()], f32_type)?)?;
        let attributes = [
            ("strides", attr::int64_vector(b.context(), &[2, 2])),
            ("dilations", attr::int64_vector(b.context(), &[1, 1])),
        ];
        let conv = b.named("linalg.conv_2d_nchw_fchw", &[arguments[2], arguments[3]], &[out], &attributes)?;
        Ok(vec![product[0], conv[0]])
    });
    assert_eq!(text.matches("\"arith.mulf\"").count(), 2, "{text}");
}

#[test]
fn plain_matmul_pools_and_depthwise_verify() {
    let arguments: [(&str, &[i64]); 4] =
        [("f32", &[2, 3, 4]), ("f32", &[2, 4, 5]), ("f32", &[1, 3, 6, 6]), ("f32", &[3, 2, 2])];
    check(&arguments, &[("f32", &[2, 3, 5]), ("f32", &[1, 3, 5, 5]), ("f32", &[1, 3, 5, 5])], |b, arguments| {
        let f32_type = b.elem("f32")?;
        let zero = b.const_float(f32_type, 0.0)?;
        let lowest = b.const_float_bits(f32_type, 0xFF80_0000)?;
        let out = b.fill(zero, b.empty(&[2.into(), 3.into(), 5.into()], f32_type)?)?;
        let product = b.named("linalg.batch_matmul", &arguments[..2], &[out], &[])?[0];
        let empty = b.empty(&[1.into(), 3.into(), 5.into(), 5.into()], f32_type)?;
        let window = b.empty(&[2.into(), 2.into()], f32_type)?;
        let steps = [
            ("strides", attr::int64_vector(b.context(), &[1, 1])),
            ("dilations", attr::int64_vector(b.context(), &[1, 1])),
        ];
        let init = b.fill(lowest, empty)?;
        let pool = b.named("linalg.pooling_nchw_max", &[arguments[2], window], &[init], &steps)?[0];
        let init = b.fill(zero, empty)?;
        let depthwise =
            b.named("linalg.depthwise_conv_2d_nchw_chw", &[arguments[2], arguments[3]], &[init], &steps)?[0];
        Ok(vec![product, pool, depthwise])
    });
}

#[test]
fn slices_pads_and_reshapes_verify() {
    check(
        &[("i64", &[2, 6]), ("i64", &[DYNAMIC, 6])],
        &[("i64", &[4, 3]), ("i64", &[DYNAMIC, 3, 2])],
        |b, arguments| {
            let one = Size::Static(1);
            let every_other =
                b.extract_slice(arguments[0], &[0.into(), 0.into()], &[2.into(), 3.into()], &[one, 2.into()])?;
            let seven = b.const_int(b.elem("i64")?, 7)?;
            let padded = b.pad(every_other, &[1.into(), 0.into()], &[1.into(), 0.into()], seven)?;
            let flat = b.collapse_shape(padded, &[vec![0, 1]])?;
            let square = b.expand_shape(flat, &[vec![0, 1]], &[4.into(), 3.into()])?;
            let rows = b.size(arguments[1], 0)?;
            let split = b.expand_shape(arguments[1], &[vec![0], vec![1, 2]], &[rows, 3.into(), 2.into()])?;
            Ok(vec![square, split])
        },
    );
}

#[test]
fn concat_joins_static_and_dynamic_parts() {
    check(&[("f16", &[2, 3]), ("f16", &[2, DYNAMIC])], &[("f16", &[2, DYNAMIC])], |b, arguments| {
        Ok(vec![b.concat(arguments, 1)?])
    });
}

#[test]
fn control_flow_and_reductions_verify() {
    check(&[("f32", &[4, 5])], &[("f32", &[4]), ("f32", &[])], |b, arguments| {
        let f32_type = b.elem("f32")?;
        let zero = b.const_float(f32_type, 0.0)?;
        let init = b.fill(zero, b.empty(&[4.into()], f32_type)?)?;
        let sums = b.reduce(&[arguments[0]], &[init], &[1], |b, x| Ok(vec![b.addf(x[0], x[1])?]))?[0];
        let (low, high, step) = (b.const_index(0)?, b.const_index(4)?, b.const_index(1)?);
        let total = b.for_loop((low, high, step), &[zero], |b, at, carried| {
            let item = b.extract(sums, &[at])?;
            let negative = b.cmpf(CmpF::Olt, item, zero)?;
            let size = b.if_else(negative, &[f32_type], |b| Ok(vec![b.negf(item)?]), |_| Ok(vec![item]))?;
            Ok(vec![b.addf(carried[0], size[0])?])
        })?[0];
        let halved = b.while_loop(
            &[total],
            &[f32_type],
            |b, x| {
                let one = b.const_float(f32_type, 1.0)?;
                Ok((b.cmpf(CmpF::Ogt, x[0], one)?, vec![x[0]]))
            },
            |b, x| Ok(vec![b.mulf(x[0], b.const_float(f32_type, 0.5)?)?]),
        )?;
        let rows = b.dim(arguments[0], 0)?;
        b.assert(b.cmpi(CmpI::Sle, rows, high)?, "rows <= 4")?;
        Ok(vec![sums, b.from_elements(&[], &halved)?])
    });
}

#[test]
fn tags_and_locations_are_on_node_operations_only() {
    let context = context();
    let module = new_module(&context);
    let b = Builder::new(&context, &module);
    let kind = tensor(&[2], b.elem("f32").unwrap());
    b.function("forward", &[kind], &[kind], &[], |b, arguments| {
        b.set_tag(Some("prepared:3"));
        b.set_named_location("fc1", Some(("model.py", 12)));
        let exp = b.elementwise(&[(arguments[0], Map::identity(1))], arguments[0], |b, x| b.unary("math.exp", x[0]))?;
        b.set_tag(None);
        Ok(vec![exp])
    })
    .unwrap();
    verify(&context, &module).unwrap();
    let text = String::from_utf8(print(&module, Form::Generic, Locations::Write).unwrap()).unwrap();
    assert_eq!(text.matches("m2m.node = \"prepared:3\"").count(), 1, "{text}");
    assert!(text.contains("loc(\"fc1\"(\"model.py\":12:0))") || text.contains("\"model.py\":12:0"), "{text}");
    round_trips(&context, &module);
}

#[test]
fn constants_keep_their_bits() {
    let context = context();
    let module = new_module(&context);
    let b = Builder::new(&context, &module);
    for (dtype, bits) in [
        ("f32", 0x7FC0_1234),
        ("bf16", 0xFF81),
        ("f16", 1),
        ("f64", 0x8000_0000_0000_0000),
        ("f8e4m3fn", 0x7E),
        ("f8e8m0fnu", 0),
    ] {
        let value = attr::float_bits(&context, b.elem(dtype).unwrap(), bits).unwrap();
        let module = new_module(&context);
        Builder::new(&context, &module).constant(b.elem(dtype).unwrap(), value).unwrap();
        verify(&context, &module).unwrap();
    }
    let u8_type = b.elem("u8").unwrap();
    assert_eq!(attr::int(u8_type, 255).to_string(), "-1 : i8");
    assert_eq!(attr::int(b.elem("u64").unwrap(), -1).to_string(), "-1 : i64");
    let third = attr::float(&context, b.elem("f64").unwrap(), 1.0 / 3.0);
    assert_eq!(third.to_string(), "0.33333333333333331 : f64");
    let flags = attr::dense(tensor(&[3], b.elem("bool").unwrap()), &[1, 0, 1]).unwrap();
    assert_eq!(flags.to_string(), "dense<[true, false, true]> : tensor<3xi1>");
    let eights = attr::dense(tensor(&[2], b.elem("f8e5m2").unwrap()), &[0x3C, 0xBC]).unwrap();
    assert_eq!(eights.to_string(), "dense<[1.000000e+00, -1.000000e+00]> : tensor<2xf8E5M2>");
    assert!(attr::dense(tensor(&[2], b.elem("f32").unwrap()), &[0; 7]).is_err());
}

#[test]
fn wrong_modules_are_refused_with_the_reason() {
    let context = context();
    let module = new_module(&context);
    let b = Builder::new(&context, &module);
    let (f32_type, i32_type) = (b.elem("f32").unwrap(), b.elem("i32").unwrap());
    b.function("forward", &[f32_type, i32_type], &[f32_type], &[], |b, x| Ok(vec![b.addf(x[0], x[1])?])).unwrap();
    let error = verify(&context, &module).unwrap_err().to_string();
    assert!(error.contains("'arith.addf' op operand #1 must be floating-point-like, but got 'i32'"), "{error}");
    let error = parse(&context, b"\"func.func\"(").unwrap_err().to_string();
    assert!(error.contains("expected"), "{error}");
    assert!(b.elem("q7").is_err());
}

#[test]
fn convolution_maps_hold_strides_and_dilations() {
    let text = check(&[("f32", &[1, 1, 9]), ("f32", &[1, 1, 3])], &[("f32", &[1, 1, 3])], |b, arguments| {
        let f32_type = b.elem("f32")?;
        let out = b.fill(b.const_float(f32_type, 0.0)?, b.empty(&[1.into(), 1.into(), 3.into()], f32_type)?)?;
        let input = Map::new(4, vec![Expr::Dim(0), Expr::Const(0), Expr::linear(&[(2, 2), (3, 2)], 0)]);
        let kernel = Map::new(4, vec![Expr::Dim(1), Expr::Const(0), Expr::Dim(3)]);
        let iterators = [Iter::Parallel, Iter::Parallel, Iter::Parallel, Iter::Reduction];
        let ins = [(arguments[0], input), (arguments[1], kernel)];
        b.generic(&ins, &[(out, Map::dims(4, &[0, 1, 2]))], &iterators, |b, x| {
            Ok(vec![b.addf(x[2], b.mulf(x[0], x[1])?)?])
        })
    });
    assert!(text.contains("d2 * 2 + d3 * 2"), "{text}");
}

fn three<'c>(b: &Builder<'c>) -> Result<Vec<Value<'c>>, m2m_mlir::Error> {
    Ok(vec![b.addi(b.const_index(2)?, b.const_index(1)?)?])
}

/// One constant a value and function: in regions of loops too, but not in bodies of linalg operations, nor from one region
/// in the next.
#[test]
fn constants_are_made_once_where_they_are_seen() {
    let context = m2m_mlir::context();
    let module = new_module(&context);
    let b = Builder::new(&context, &module);
    let done = b.function("f", &[b.index_type()], &[b.index_type()], &[], |b, arguments| {
        let one = b.const_index(1)?;
        assert_eq!(b.const_index(1)?, one);
        assert_ne!(b.const_int(b.elem("i64")?, 1)?, one);
        let is_less = b.cmpi(m2m_mlir::CmpI::Slt, arguments[0], one)?;
        let picked = b.if_else(is_less, &[b.index_type()], three, three)?;
        let out = b.empty(&[4.into()], b.index_type())?;
        b.elementwise(&[], out, |b, _| b.addi(b.index(0)?, b.const_index(1)?))?;
        Ok(vec![b.addi(picked[0], b.const_index(2)?)?])
    });
    done.expect("every operation is right");
    m2m_mlir::verify(&context, &module).expect("values are used where they are seen");
    let text = print(&module, Form::Generic, Locations::Omit).expect("a module prints");
    let text = String::from_utf8(text).expect("MLIR is UTF-8");
    let count = |value: &str| text.matches(&format!("arith.constant\"() <{{value = {value}}}>")).count();
    assert_eq!((count("1 : index"), count("2 : index"), count("1 : i64")), (2, 3, 1), "{text}");
}
