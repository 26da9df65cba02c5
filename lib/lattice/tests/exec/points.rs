//! Points into voxels and out of them, against a dense grid.

use crate::dense::Grid;
use crate::model::{Model, floats, ints};
use crate::scene::Random;
use m2m_lattice::plan::Kind;
use m2m_lattice::schema::{Op, PointInterpolation, VoxelReduction};
use m2m_record::DType;

const SIZE: [f64; 3] = [0.5, 0.4, 0.3];
const ORIGIN: [f64; 3] = [0.1, -0.2, 0.0];

fn position(point: &[f32]) -> [f32; 3] {
    std::array::from_fn(|a| (point[a] - ORIGIN[a] as f32) / SIZE[a] as f32)
}

#[test]
fn voxelize_gathers_points() {
    for seed in 0..60 {
        for reduction in VoxelReduction::ALL.iter().copied() {
            let mut random = Random(seed);
            let count = random.int(1, 40) as usize;
            let points = random.reals(count * 3, 1.0);
            let features = random.whole(count * 2);
            let batches: Vec<i32> = (0..count).map(|_| random.int(0, 2)).collect();
            let active = random.int(0, count as i32) as usize;
            let mut model = Model::new();
            let kind = Kind::Voxelize {
                points: model.tensor("p", floats(&[count, 3], &points)),
                features: model.tensor("f", floats(&[count, 2], &features)),
                batch_indices: model.tensor("b", ints(&[count], &batches)),
                active_rows: model.tensor("n", ints(&[1], &[active as i32])),
                voxel_size: SIZE,
                origin: ORIGIN,
                reduction,
                stride: [1, 2, 3],
            };
            let y = model.sparse(Op::Voxelize, kind, DType::F32);
            model.returns("y", y);
            let found = model.run();
            let mut voxels: Vec<([i32; 4], Vec<usize>)> = Vec::new();
            for row in 0..active {
                let [x, y, z] = position(&points[row * 3..row * 3 + 3]).map(|x| x.floor() as i32);
                let coord = [batches[row], x, y, z];
                match voxels.iter_mut().find(|(each, _)| *each == coord) {
                    Some((_, rows)) => rows.push(row),
                    None => voxels.push((coord, vec![row])),
                }
            }
            let coords: Vec<[i32; 4]> = voxels.iter().map(|([b, x, y, z], _)| [*b, *x, y * 2, z * 3]).collect();
            assert_eq!(found.coords("y"), coords, "{seed}");
            assert_eq!(found.ints("y.active"), [coords.len() as i32], "{seed}");
            let values = found.features("y");
            for (at, (_, rows)) in voxels.iter().enumerate() {
                for channel in 0..2 {
                    let sum: f32 = rows.iter().map(|row| features[row * 2 + channel]).sum();
                    let size: f32 = rows.iter().map(|row| features[row * 2 + channel].abs()).sum();
                    let value = values[at * 2 + channel];
                    match reduction {
                        VoxelReduction::Sum => assert_eq!(value, sum, "{seed}"),
                        // The weight and each product round once, each of the sums once more.
                        VoxelReduction::Mean => {
                            let bound = (rows.len() + 3) as f32 * f32::EPSILON * size / rows.len() as f32;
                            assert!((value - sum / rows.len() as f32).abs() <= bound, "{value} {sum} {seed}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn devoxelize_interpolates() {
    for seed in 0..60 {
        for interpolation in PointInterpolation::ALL.iter().copied() {
            let mut random = Random(seed + 500);
            let rows = random.int(1, 60) as usize;
            let stride = [2, 1, 3];
            let coords = random.coords(rows, 2, stride);
            let voxels_active = random.int(0, rows as i32) as usize;
            let features = random.whole(rows * 2);
            let count = random.int(1, 30) as usize;
            let points = random.reals(count * 3, 1.2);
            let batches: Vec<i32> = (0..count).map(|_| random.int(0, 1)).collect();
            let active = random.int(0, count as i32) as usize;
            let mut model = Model::new();
            let x = model.components("x", &coords, floats(&[rows, 2], &features), voxels_active as i32);
            let points_id = model.tensor("p", floats(&[count, 3], &points));
            let batch_indices = model.tensor("b", ints(&[count], &batches));
            let point_active_rows = model.tensor("n", ints(&[1], &[active as i32]));
            let voxels = model.make(x, stride);
            let kind = Kind::Devoxelize {
                points: points_id,
                voxels,
                batch_indices,
                point_active_rows,
                voxel_size: SIZE,
                origin: ORIGIN,
                interpolation,
            };
            let y = model.dense(Op::Devoxelize, kind, DType::F32, 2);
            model.returns("y", y);
            let values = model.run().floats("y");
            let grid = Grid::new(&crate::dense::logical(&coords[..voxels_active], stride));
            for point in 0..count {
                let at = position(&points[point * 3..point * 3 + 3]);
                for channel in 0..2 {
                    let look = |cell: [f64; 3]| {
                        let cell = [i64::from(batches[point]), cell[0] as i64, cell[1] as i64, cell[2] as i64];
                        grid.at(&cell).map_or(0.0, |row| f64::from(features[row * 2 + channel]))
                    };
                    let mut expected = 0.0f64;
                    if point < active {
                        match interpolation {
                            PointInterpolation::Nearest => {
                                expected = look(at.map(|x| f64::from((x + 0.5).floor())));
                            }
                            PointInterpolation::Linear => {
                                for corner in 0..8 {
                                    let bits = [corner & 1, corner >> 1 & 1, corner >> 2 & 1];
                                    let base = at.map(|x| f64::from(x).floor());
                                    let cell = std::array::from_fn(|a| base[a] + f64::from(bits[a]));
                                    let weight: f64 = (0..3)
                                        .map(|a| {
                                            let part = f64::from(at[a]) - base[a];
                                            if bits[a] == 1 { part } else { 1.0 - part }
                                        })
                                        .product();
                                    expected += weight * look(cell);
                                }
                            }
                        }
                    }
                    // At most eight terms of size 4 whose weights add up to 1, each rounded about five times.
                    let bound = 4.0 * 16.0 * f64::from(f32::EPSILON);
                    let value = f64::from(values[point * 2 + channel]);
                    assert!((value - expected).abs() <= bound, "{value} {expected} {interpolation} {seed}");
                }
            }
        }
    }
}
