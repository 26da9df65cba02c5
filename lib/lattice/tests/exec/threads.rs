//! The same bytes whatever the number of threads.

use crate::model::{Model, floats, ints};
use crate::scene::Random;
use m2m_lattice::plan::{Convolution, Kind, Relation, Window};
use m2m_lattice::schema::{Family, Op, PoolMode, VoxelReduction};
use m2m_record::DType;

#[test]
fn results_do_not_depend_on_threads() {
    let mut random = Random(5);
    let (points, channels) = (3000, 6);
    let mut model = Model::new();
    let positions = random.reals(points * 3, 4.0);
    let kind = Kind::Voxelize {
        points: model.tensor("p", floats(&[points, 3], &positions)),
        features: model.tensor("f", floats(&[points, channels], &random.reals(points * channels, 1.0))),
        batch_indices: model.tensor("b", ints(&[points], &vec![0; points])),
        active_rows: model.tensor("n", ints(&[1], &[points as i32])),
        voxel_size: [0.5; 3],
        origin: [0.0; 3],
        reduction: VoxelReduction::Mean,
        stride: [2; 3],
    };
    let mut value = model.sparse(Op::Voxelize, kind, DType::F32);
    for (relation, op, kernel, stride) in [
        (Relation::Submanifold, Op::SubmConv3d, 3, 1),
        (Relation::Transposed, Op::ConvTranspose3d, 3, 2),
        (Relation::Forward, Op::Conv3d, 2, 2),
    ] {
        let weight = random.reals(channels * kernel * kernel * kernel * channels, 0.3);
        let weight = model.weight(Family::Conv3d, &floats(&[channels, kernel, kernel, kernel, channels], &weight));
        let window = Window { kernel_size: [kernel as i64; 3], stride: [stride; 3], padding: [0; 3], dilation: [1; 3] };
        let conv = Convolution { relation, input: value, target: None, weight, bias: None, window, eps: None };
        value = model.sparse(op, Kind::Convolution(conv), DType::F32);
        model.returns(op.def().name, value);
    }
    let window = Window { kernel_size: [2; 3], stride: [2; 3], padding: [1; 3], dilation: [1; 3] };
    let pooled = Kind::Pool { input: value, mode: PoolMode::Avg, window };
    let pooled = model.sparse(Op::Pool3d, pooled, DType::F32);
    model.returns("pooled", pooled);
    let one = model.try_run(Some(1)).unwrap();
    assert_eq!(one.len(), 16);
    for threads in [2, 3, 8] {
        assert!(model.try_run(Some(threads)).unwrap() == one, "{threads} threads");
    }
}
