//! The reference: relations by looking every cell of a dense grid up, nothing sorted and nothing hashed.

use m2m_lattice::plan::{Relation, Window};

/// A dense grid of cells that each hold the first row that lies there.
pub struct Grid {
    low: [i64; 4],
    size: [usize; 4],
    cells: Vec<Option<usize>>,
}

impl Grid {
    pub fn new(coords: &[[i64; 4]]) -> Grid {
        let low: [i64; 4] = std::array::from_fn(|a| coords.iter().map(|c| c[a]).min().unwrap_or(0));
        let high: [i64; 4] = std::array::from_fn(|a| coords.iter().map(|c| c[a]).max().unwrap_or(0));
        let size: [usize; 4] = std::array::from_fn(|a| (high[a] - low[a] + 1) as usize);
        let mut grid = Grid { low, size, cells: vec![None; size.iter().product()] };
        for (row, coord) in coords.iter().enumerate() {
            let at = grid.index(coord).unwrap();
            grid.cells[at].get_or_insert(row);
        }
        grid
    }

    fn index(&self, coord: &[i64; 4]) -> Option<usize> {
        let mut axes = coord.iter().zip(self.low).zip(self.size);
        axes.try_fold(0, |index, ((x, low), size)| {
            let at = usize::try_from(x - low).ok().filter(|at| *at < size)?;
            Some(index * size + at)
        })
    }

    pub fn at(&self, coord: &[i64; 4]) -> Option<usize> {
        self.index(coord).and_then(|at| self.cells[at])
    }
}

/// An edge: row in, row out, kernel position.
pub struct Edge {
    pub input: usize,
    pub output: usize,
    pub position: [i64; 3],
}

fn distinct(coords: impl Iterator<Item = [i64; 4]>) -> Vec<[i64; 4]> {
    let mut seen: Vec<[i64; 4]> = Vec::new();
    for coord in coords {
        if !seen.contains(&coord) {
            seen.push(coord);
        }
    }
    seen
}

fn positions(kernel: [i64; 3]) -> Vec<[i64; 3]> {
    let mut all = Vec::new();
    for i in 0..kernel[0] {
        for j in 0..kernel[1] {
            for k in 0..kernel[2] {
                all.push([i, j, k]);
            }
        }
    }
    all
}

/// Each axis of a coordinate by its number, the batch kept.
fn each(coord: &[i64; 4], change: impl Fn(usize, i64) -> i64) -> [i64; 4] {
    [coord[0], change(0, coord[1]), change(1, coord[2]), change(2, coord[3])]
}

/// The rows out and the edges of a relation, in logical coordinates.
pub fn relation(
    relation: Relation,
    w: &Window,
    inputs: &[[i64; 4]],
    targets: Option<&[[i64; 4]]>,
) -> (Vec<[i64; 4]>, Vec<Edge>) {
    let all = positions(w.kernel_size);
    let centred = |axis: usize, p: i64| {
        let k = w.kernel_size[axis];
        (if k % 2 == 1 { p - (k - 1) / 2 } else { p }) * w.dilation[axis]
    };
    let spread =
        |coord: &[i64; 4], p: &[i64; 3]| each(coord, |a, x| x * w.stride[a] + p[a] * w.dilation[a] - w.padding[a]);
    let mut edges = Vec::new();
    match relation {
        Relation::Forward | Relation::Submanifold | Relation::Target => {
            let down = |coord: &[i64; 4]| each(coord, |a, x| (x as f64 / w.stride[a] as f64).floor() as i64);
            let same = w.stride == [1; 3] && w.padding == [0; 3];
            let outputs = match targets {
                Some(targets) => targets.to_vec(),
                None if same => inputs.to_vec(),
                None => distinct(inputs.iter().map(down)),
            };
            let grid = Grid::new(inputs);
            for (output, coord) in outputs.iter().enumerate() {
                for p in &all {
                    let from = each(coord, |a, x| x * w.stride[a] + centred(a, p[a]) - w.padding[a]);
                    edges.extend(grid.at(&from).map(|input| Edge { input, output, position: *p }));
                }
            }
            (outputs, edges)
        }
        Relation::Transposed => {
            let outputs = distinct(inputs.iter().flat_map(|coord| all.iter().map(move |p| spread(coord, p))));
            let grid = Grid::new(&outputs);
            for (input, coord) in inputs.iter().enumerate() {
                for p in &all {
                    let output = grid.at(&spread(coord, p)).unwrap();
                    edges.push(Edge { input, output, position: *p });
                }
            }
            (outputs, edges)
        }
        Relation::TargetTransposed => {
            let outputs = targets.unwrap().to_vec();
            let grid = Grid::new(inputs);
            for (output, coord) in outputs.iter().enumerate() {
                for p in &all {
                    // Every cell of the input's grid is tried: the one that spreads to the target is the edge.
                    let back = each(coord, |a, x| x + w.padding[a] - p[a] * w.dilation[a]);
                    if (0..3).any(|a| back[a + 1].rem_euclid(w.stride[a]) != 0) {
                        continue;
                    }
                    let from = each(&back, |a, x| x / w.stride[a]);
                    edges.extend(grid.at(&from).map(|input| Edge { input, output, position: *p }));
                }
            }
            (outputs, edges)
        }
        Relation::Generative => {
            let outputs = inputs.iter().flat_map(|coord| all.iter().map(move |p| spread(coord, p))).collect();
            for input in 0..inputs.len() {
                for (at, p) in all.iter().enumerate() {
                    edges.push(Edge { input, output: input * all.len() + at, position: *p });
                }
            }
            (outputs, edges)
        }
    }
}

/// Coordinates in wide numbers, divided by a stride.
pub fn logical(coords: &[[i32; 4]], stride: [i64; 3]) -> Vec<[i64; 4]> {
    coords.iter().map(|c| each(&c.map(i64::from), |a, x| x / stride[a])).collect()
}

/// Coordinates times a stride.
pub fn physical(coords: &[[i64; 4]], stride: [i64; 3]) -> Vec<[i32; 4]> {
    coords.iter().map(|c| each(c, |a, x| x * stride[a]).map(|x| i32::try_from(x).unwrap())).collect()
}
