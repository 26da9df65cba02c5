//! Inputs that do not fit are refused, with the names of the tensor and of the row.

use crate::model::{Model, Tensor, floats, halves, ints};
use m2m_lattice::exec::{Options, run};
use m2m_lattice::plan::{Convolution, Kind, Relation, ValueId, Window};
use m2m_lattice::schema::{BinaryOp, Family, Join, Op, PointInterpolation, PoolMode, VoxelReduction};
use m2m_record::DType;

const UNIT: Window = Window { kernel_size: [1; 3], stride: [1; 3], padding: [0; 3], dilation: [1; 3] };

/// What `sparse.make` says of a value.
fn made(coords: &[[i32; 4]], features: Tensor, active: i32, stride: [i64; 3]) -> String {
    let mut model = Model::new();
    let x = model.components("x", coords, features, active);
    let y = model.make(x, stride);
    model.returns("y", y);
    model.refused()
}

#[test]
fn make_names_tensor_and_row() {
    let three = || floats(&[3, 1], &[0.0; 3]);
    let good = [[0, 0, 0, 0], [0, 2, 0, 0], [0, 4, 0, 0]];
    let at = "lattice.sparse.make at 7:3: ";
    // Rows that are not active must be divisible too, but may repeat.
    let odd = [[0, 0, 0, 0], [0, 2, 0, 0], [0, 4, -3, 0]];
    assert_eq!(
        made(&odd, three(), 2, [2, 2, 2]),
        format!("{at}x_coords: row 2: coordinate (batch 0, x 4, y -3, z 0) is no multiple of the stride [2, 2, 2]")
    );
    let twice = [[0, 4, 0, 0], [0, 0, 0, 0], [0, 4, 0, 0]];
    assert_eq!(
        made(&twice, three(), 3, [2, 2, 2]),
        format!("{at}x_coords: row 2: coordinate (batch 0, x 4, y 0, z 0) is that of row 0; expected each once")
    );
    assert_eq!(made(&good, three(), -1, [1; 3]), format!("{at}x_active: is -1; expected 0 to 3 active rows"));
    assert_eq!(made(&good, three(), 4, [1; 3]), format!("{at}x_active: is 4; expected 0 to 3 active rows"));
    let found = made(&good, floats(&[2, 1], &[0.0; 2]), 2, [1; 3]);
    assert!(found.starts_with(&format!("{at}x_features: has 2 rows; expected those of the coordinates, 3")), "{found}");
    for stride in [[0, 1, 1], [1, -2, 1], [1, 1, 1 << 40]] {
        let found = made(&good, three(), 3, stride);
        assert!(found.starts_with(&format!("{at}stride is {stride:?}; expected numbers above 0")), "{found}");
    }
    let mut model = Model::new();
    let x = model.components("x", &twice, three(), 2);
    let y = model.make(x, [2; 3]);
    model.returns("y", y);
    assert_eq!(model.run().coords("y"), twice);
}

#[test]
fn arguments_are_held_to_their_types() {
    let mut model = Model::new();
    let x = model.tensor("x", Tensor { dtype: DType::F64, shape: vec![1, 1], bytes: vec![0; 8] });
    model.returns("y", x);
    assert_eq!(model.refused(), "x: is f64; the engine lattice takes f32, f16, bf16 and i32");
    let mut model = Model::new();
    let x = model.tensor("x", Tensor { dtype: DType::F32, shape: vec![2, 3], bytes: vec![0; 20] });
    model.returns("y", x);
    assert_eq!(model.refused(), "x: f32 [2, 3] has 20 bytes");
    let mut model = Model::new();
    let x = model.tensor("x", Tensor { dtype: DType::F32, shape: vec![1 << 40, 1 << 40], bytes: vec![] });
    model.returns("y", x);
    assert!(model.refused().starts_with("x: a tensor of [1099511627776, 1099511627776] has more than"));
    let found = run(&model.plan, &|_, _| None, Options::default()).unwrap_err();
    assert_eq!(found.to_string(), "x: no value; expected tensor<?x?xf32>");
    model.plan.values[0] = m2m_lattice::plan::ValueType::Tensor { shape: vec![None, Some(3)], dtype: DType::F32 };
    let given =
        |_: usize, _: &str| Some(m2m_lattice::exec::Given { dtype: DType::F32, shape: &[1, 2], bytes: &[0; 8] });
    let found = run(&model.plan, &given, Options::default()).unwrap_err();
    assert_eq!(found.to_string(), "x: is f32 [1, 2]; the plan says tensor<?x3xf32>");
}

/// What a convolution says of one row at a coordinate.
fn convolved(coord: [i32; 4], stride: [i64; 3], relation: Relation, window: Window, weight: &Tensor) -> String {
    let mut model = Model::new();
    let x = model.components("x", &[coord], floats(&[1, 1], &[1.0]), 1);
    let input = model.make(x, stride);
    let weight = model.weight(Family::Conv3d, weight);
    let conv = Convolution { relation, input, target: None, weight, bias: None, window, eps: None };
    let y = model.sparse(Op::Conv3d, Kind::Convolution(conv), DType::F32);
    model.returns("y", y);
    model.refused()
}

#[test]
fn coordinates_stay_within_32_bits() {
    let two = floats(&[1, 2, 1, 1, 1], &[1.0; 2]);
    let window = Window { kernel_size: [2, 1, 1], stride: [1; 3], padding: [0; 3], dilation: [1; 3] };
    let edge = [0, i32::MAX, 0, 0];
    assert_eq!(
        convolved(edge, [1; 3], Relation::Transposed, window, &two),
        format!(
            "lattice.conv3d at 7:3: input: row 0: coordinate (batch 0, x {}, y 0, z 0) spreads to one that does not fit 32 bits",
            i32::MAX
        )
    );
    let far = Window { dilation: [i64::from(i32::MAX); 3], stride: [1; 3], ..window };
    let found = convolved([0, 9, 0, 0], [1; 3], Relation::Generative, far, &two);
    assert!(found.contains("row 0: coordinate (batch 0, x 9, y 0, z 0) spreads"), "{found}");
    let coarse = Window { stride: [1 << 20; 3], ..UNIT };
    let found = convolved([0, 0, 0, 0], [1 << 20; 3], Relation::Forward, coarse, &floats(&[1, 1], &[1.0]));
    assert!(found.ends_with("the stride 1048576 of the input times 1048576 does not fit 32 bits"), "{found}");
    let fine = Window { stride: [2; 3], ..UNIT };
    let found = convolved([0, 0, 0, 0], [3; 3], Relation::Transposed, fine, &floats(&[1, 1], &[1.0]));
    assert!(found.contains("the input has stride [3, 3, 3]"), "{found}");
}

/// Far apart rows and far reaching windows are neither wrong nor slow: what nothing can reach is not tried.
#[test]
fn windows_of_any_size_are_searched_where_rows_are() {
    let big = i64::from(i32::MAX);
    for (kernel_size, dilation) in [([1, big, 1], [1; 3]), ([1, 3, 1], [1, big, 1]), ([46340, 1, 46340], [1; 3])] {
        let mut model = Model::new();
        let coords = [[0, 5, 0, 5], [0, 5, -1, 5], [1, 5, 0, 5], [0, i32::MIN, 1, 5]];
        let x = model.components("x", &coords, floats(&[4, 1], &[1.0, 2.0, 4.0, 8.0]), 4);
        let input = model.make(x, [1; 3]);
        let window = Window { kernel_size, stride: [1; 3], padding: [0; 3], dilation };
        let kind = Kind::Pool { input, mode: PoolMode::Sum, window };
        let y = model.sparse(Op::Pool3d, kind, DType::F32);
        model.returns("y", y);
        let expected = match kernel_size {
            [1, _, 1] if dilation == [1; 3] => [3.0, 3.0, 4.0, 8.0],
            // An even kernel begins at its row: nothing is ahead of any.
            _ => [1.0, 2.0, 4.0, 8.0],
        };
        assert_eq!(model.run().features("y"), expected, "{kernel_size:?} {dilation:?}");
    }
    let mut model = Model::new();
    let x = model.components("x", &[[0; 4]], floats(&[1, 1], &[1.0]), 1);
    let input = model.make(x, [1; 3]);
    let window = Window { kernel_size: [big, 1, 1], ..UNIT };
    let kind = Kind::PoolTranspose { input, target: None, window };
    let y = model.sparse(Op::PoolTranspose3d, kind, DType::F32);
    model.returns("y", y);
    assert!(model.refused().contains("1 active rows times 2147483647 kernel positions"), "{}", model.refused());
}

/// What `voxelize` or `devoxelize` says of two points.
fn pointed(points: &[f32], batches: &[i32], active: i32, into: bool) -> String {
    let mut model = Model::new();
    let x = model.components("x", &[[0; 4]], floats(&[1, 1], &[1.0]), 1);
    let p = model.tensor("p", floats(&[points.len() / 3, 3], points));
    let f = model.tensor("f", floats(&[2, 1], &[1.0; 2]));
    let b = model.tensor("b", ints(&[batches.len()], batches));
    let n = model.tensor("n", ints(&[1], &[active]));
    let (voxel_size, origin) = ([0.5; 3], [0.0; 3]);
    let y = if into {
        let kind = Kind::Voxelize {
            points: p,
            features: f,
            batch_indices: b,
            active_rows: n,
            voxel_size,
            origin,
            reduction: VoxelReduction::Sum,
            stride: [1; 3],
        };
        model.sparse(Op::Voxelize, kind, DType::F32)
    } else {
        let voxels = model.make(x, [1; 3]);
        let interpolation = PointInterpolation::Linear;
        let kind = Kind::Devoxelize {
            points: p,
            voxels,
            batch_indices: b,
            point_active_rows: n,
            voxel_size,
            origin,
            interpolation,
        };
        model.dense(Op::Devoxelize, kind, DType::F32, 2)
    };
    model.returns("y", y);
    match model.try_run(None) {
        Ok(_) => "done".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn points_that_are_nowhere_are_named() {
    for into in [true, false] {
        for bad in [f32::NAN, f32::INFINITY, -3e9, 1.2e9] {
            let points = [0.0, 0.0, 0.0, 1.0, bad, 0.0];
            let found = pointed(&points, &[0, 0], 2, into);
            assert!(
                found.contains(&format!("at 7:3: p: row 1: the point [1.0, {bad:?}, 0.0] lies in no voxel")),
                "{found}"
            );
            // A row that is not active may hold anything.
            assert_eq!(pointed(&points, &[0, 0], 1, into), "done");
        }
        let points = [0.0; 6];
        assert!(pointed(&points, &[0], 1, into).contains("b: has shape [1]; expected [2]"));
        assert!(pointed(&points, &[0, 0], 3, into).contains("n: is 3; expected 0 to 2"));
        assert!(pointed(&points, &[0, 0], -1, into).contains("n: is -1; expected 0 to 2"));
    }
    assert!(pointed(&[0.0; 9], &[0; 3], 1, true).contains("f: has 2 rows; expected 3"));
}

#[test]
fn an_index_outside_of_the_table_is_named() {
    for bad in [3, -1, i32::MIN] {
        let mut model = Model::new();
        let input = model.tensor("i", ints(&[2], &[2, bad]));
        let weight = model.weight(Family::Embedding, &floats(&[3, 1], &[0.0; 3]));
        let y = model.dense(Op::EmbeddingLookup, Kind::EmbeddingLookup { input, weight }, DType::F32, 2);
        model.returns("y", y);
        let expected = format!("lattice.embedding_lookup at 7:3: i: row 1: index {bad}; the table has 3 entries");
        assert_eq!(model.refused(), expected);
    }
}

#[test]
fn weights_are_held_to_window_and_features() {
    let window = Window { kernel_size: [3, 1, 5], ..UNIT };
    let shown = |weight: &Tensor| convolved([0; 4], [1; 3], Relation::Submanifold, window, weight);
    let found = shown(&floats(&[1, 5, 1, 3, 1], &[0.0; 15]));
    assert!(found.contains("weight \"w\" has shape [1, 5, 1, 3, 1]; expected [out, 3, 1, 5, in]"), "{found}");
    let found = shown(&floats(&[1, 3, 1, 5, 2], &[0.0; 30]));
    assert!(found.contains("for 1 channels in"), "{found}");
    let found = shown(&halves(&[1, 3, 1, 5, 1], &[0.0; 15]));
    assert!(found.contains("weight \"w\" is f16; the features are f32"), "{found}");
}

/// A batch number that would need 2^31 rows, and a batch_size of any size.
#[test]
fn results_that_no_memory_holds_are_refused() {
    for (coord, batch_size) in [([i32::MAX, 0, 0, 0], None), ([0; 4], Some(u64::MAX)), ([0; 4], Some(1 << 33))] {
        let mut model = Model::new();
        let x = model.components("x", &[coord], floats(&[1, 1], &[1.0]), 1);
        let input = model.make(x, [1; 3]);
        let kind = Kind::GlobalPool { input, mode: PoolMode::Sum, batch_size };
        let y = model.dense(Op::GlobalPool, kind, DType::F32, 2);
        model.returns("y", y);
        assert!(model.refused().contains("more than 1073741824 elements"), "{}", model.refused());
    }
    for stride in [[0, 1, 1], [1, -1, 1], [1 << 62, 1, 1], [1000, 1000, 1000]] {
        let mut model = Model::new();
        let x = model.components("x", &[[0; 4]], floats(&[1, 1], &[1.0]), 1);
        let input = model.make(x, [1000; 3]);
        let y = model.sparse(Op::TrilinearUpsample3d, Kind::Upsample { input, target: None, stride }, DType::F32);
        model.returns("y", y);
        assert!(model.refused().contains(&format!("stride is {stride:?}; expected")), "{}", model.refused());
    }
}

/// Two values whose sides do not go together.
fn joined(strides: [[i64; 3]; 2], features: [Tensor; 2], make: fn(ValueId, ValueId) -> (Op, Kind)) -> String {
    let mut model = Model::new();
    let [f, g] = features;
    let a = model.components("a", &[[0; 4]], f, 1);
    let b = model.components("b", &[[0; 4]], g, 1);
    let (lhs, rhs) = (model.make(a, strides[0]), model.make(b, strides[1]));
    let (op, kind) = make(lhs, rhs);
    let y = model.sparse(op, kind, DType::F32);
    model.returns("y", y);
    model.refused()
}

#[test]
fn sides_of_a_join_go_together() {
    let one = || floats(&[1, 1], &[1.0]);
    let add = |lhs, rhs| {
        let (lhs_fill, rhs_fill) = (0.0, 0.0);
        (Op::SparseBinary, Kind::Binary { lhs, rhs, op: BinaryOp::Add, join: Join::Outer, lhs_fill, rhs_fill })
    };
    let found = joined([[1; 3], [2, 1, 1]], [one(), one()], add);
    assert!(found.ends_with("lhs has stride [1, 1, 1], rhs [2, 1, 1]; expected the same"), "{found}");
    let found = joined([[1; 3]; 2], [one(), floats(&[1, 2], &[1.0; 2])], add);
    assert!(found.ends_with("lhs is f32 with 1 channels, rhs f32 with 2; expected the same"), "{found}");
    let cat = |lhs, rhs| (Op::SparseCat, Kind::Cat { lhs, rhs, join: Join::Inner });
    let found = joined([[1; 3]; 2], [one(), halves(&[1, 1], &[1.0])], cat);
    assert!(found.ends_with("lhs is f32, rhs f16; expected the same"), "{found}");
    let target = |input, target| {
        let window = Window { stride: [2; 3], ..UNIT };
        (Op::PoolTranspose3d, Kind::PoolTranspose { input, target: Some(target), window })
    };
    let found = joined([[4; 3], [1; 3]], [one(), one()], target);
    assert!(found.ends_with("the target has stride [1, 1, 1]; expected [2, 2, 2]"), "{found}");
}

/// A generative convolution whose kernel is larger than its stride gives coordinates twice; what looks one up finds the
/// first row that has it.
#[test]
fn lookups_take_the_first_of_equal_rows() {
    let mut model = Model::new();
    let x = model.components("x", &[[0; 4], [0, 1, 0, 0]], floats(&[2, 1], &[1.0, 10.0]), 2);
    let t = model.components("t", &[[0, 1, 0, 0], [0, 5, 0, 0]], floats(&[2, 1], &[0.0; 2]), 2);
    let (input, target) = (model.make(x, [1; 3]), model.make(t, [1; 3]));
    let weight = model.weight(Family::Conv3d, &floats(&[1, 2, 1, 1, 1], &[1.0, 3.0]));
    let window = Window { kernel_size: [2, 1, 1], ..UNIT };
    let relation = Relation::Generative;
    let conv = Convolution { relation, input, target: None, weight, bias: None, window, eps: None };
    let spread = model.sparse(Op::GenerativeConvTranspose3d, Kind::Convolution(conv), DType::F32);
    let kind = Kind::Reindex { input: spread, target, fill: -1.0 };
    let y = model.sparse(Op::SparseReindex, kind, DType::F32);
    model.returns("spread", spread);
    model.returns("y", y);
    let found = model.run();
    assert_eq!(found.features("spread"), [1.0, 3.0, 10.0, 30.0]);
    assert_eq!(found.coords("spread"), [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]]);
    assert_eq!(found.features("y"), [3.0, -1.0]);
}
