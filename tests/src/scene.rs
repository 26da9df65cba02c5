//! A sparse model of the usual kind and a scene for it: a network of two levels down and up again over voxels of rolling
//! ground and of walls. The weights are counter-based numbers; nothing here computes what comes out.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Channels of a voxel of the scene.
const CHANNELS: usize = 4;

/// What the schema of the dialect that the graph is written in is called.
const DIGEST: &str = "1380f1e819fc0eb1af587202ecec3c14ec2c981d249333c5061f0263f82072ad";

const SPARSE: &str = "!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f32>";

/// A tensor to be stored: name, safetensors dtype, shape, bytes.
type Stored = (String, &'static str, Vec<usize>, Vec<u8>);

/// Numbers in an order that looks random (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From -1 to 1.
    fn real(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn below(&mut self, end: u64) -> i32 {
        (self.next() % end) as i32
    }
}

/// Distinct voxels, three in four on ground that is as large as it must be to be nearly covered, the others on walls.
fn voxels(count: usize, numbers: &mut Numbers) -> Vec<[i32; 4]> {
    let side = ((count as f64).sqrt() * 0.95) as u64 + 8;
    let mut seen = HashSet::new();
    let mut voxels = Vec::with_capacity(count);
    while voxels.len() < count {
        let (u, v) = (numbers.below(side), numbers.below(side));
        let ground = (12.0 + 8.0 * (f64::from(u) / 30.0).sin() * (f64::from(v) / 40.0).cos()) as i32;
        let voxel = if numbers.below(4) < 3 {
            [0, u, v, ground]
        } else {
            let wall = numbers.below(side / 64 + 1) * 64;
            [0, wall, v, numbers.below(24)]
        };
        if seen.insert(voxel) {
            voxels.push(voxel);
        }
    }
    voxels
}

/// A graph under construction, with the weights that it binds.
#[derive(Default)]
struct Graph {
    body: String,
    count: usize,
    weights: Vec<(String, Vec<usize>)>,
}

impl Graph {
    /// Adds a line `%N = TEXT`, and gives its value.
    fn line(&mut self, text: &str) -> String {
        self.count += 1;
        let _ = writeln!(self.body, "    %{} = {text}", self.count);
        format!("%{}", self.count)
    }

    fn weight(&mut self, family: &str, layout: &str, shape: &[usize]) -> String {
        let key = format!("w{}", self.weights.len());
        self.weights.push((key.clone(), shape.to_vec()));
        self.line(&format!(
            "lattice.weight @{key} {{storage_key = \"{key}\", layout = #lattice.weight_layout<{layout}>, \
             packing = #lattice.packing<dense>}} : !lattice.weight<{family}, f32>"
        ))
    }

    /// A convolution of `[in, out]` channels over a cubic kernel; with a stride of 2, one down or, onto a target, up.
    fn conv(&mut self, op: &str, operands: &[&str], kernel: usize, [inner, out]: [usize; 2]) -> String {
        let weight = self.weight("conv3d", "conv3d_o_xyz_i", &[out, kernel, kernel, kernel, inner]);
        let window = match op {
            "subm_conv3d" => "dilation = array<i64: 1, 1, 1>",
            _ => "stride = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, dilation = array<i64: 1, 1, 1>",
        };
        let types = vec![SPARSE; operands.len()].join(", ");
        let x = self.line(&format!(
            "lattice.{op} {}, {weight} {{kernel_size = array<i64: {kernel}, {kernel}, {kernel}>, {window}, \
             accumulation = \"canonical_f32\"}} : ({types}, !lattice.weight<conv3d, f32>) -> {SPARSE}",
            operands.join(", ")
        ));
        self.activated(&x, out)
    }

    /// Normalized and cut off below zero.
    fn activated(&mut self, x: &str, channels: usize) -> String {
        let rows = format!("tensor<?x{channels}xf32>");
        let features = self.features(x, channels);
        let vectors = ["channel", "bias", "channel", "channel"].map(|family| {
            let layout = if family == "bias" { "bias_c" } else { "channel_c" };
            self.weight(family, layout, &[channels])
        });
        let normalized = self.line(&format!(
            "lattice.batch_norm {features}, {} {{eps = 1.5 : f32}} : ({rows}, !lattice.weight<channel, f32>, \
             !lattice.weight<bias, f32>, !lattice.weight<channel, f32>, !lattice.weight<channel, f32>) -> {rows}",
            vectors.join(", ")
        ));
        let cut = self.line(&format!(
            "lattice.activation {normalized} {{kind = #lattice.activation<relu>, approximate = \
             #lattice.gelu_approx<none>, alpha = 0.0 : f32, beta = 1.0 : f32, threshold = 20.0 : f32}} : ({rows}) -> {rows}"
        ));
        self.line(&format!("lattice.sparse.with_features {x}, {cut} : ({SPARSE}, {rows}) -> {SPARSE}"))
    }

    fn features(&mut self, x: &str, channels: usize) -> String {
        self.count += 1;
        let name = format!("%{}", self.count);
        let _ = writeln!(
            self.body,
            "    {name}:3 = lattice.sparse.decompose {x} : {SPARSE} -> (tensor<?x4xi32>, tensor<?x{channels}xf32>, \
             tensor<1xi32>)"
        );
        format!("{name}#1")
    }

    fn cat(&mut self, a: &str, b: &str) -> String {
        self.line(&format!(
            "lattice.sparse.cat {a}, {b} {{join = #lattice.join<inner>}} : ({SPARSE}, {SPARSE}) -> {SPARSE}"
        ))
    }
}

/// The network: its text and the weights that it binds.
fn network() -> (String, Vec<(String, Vec<usize>)>) {
    let mut g = Graph::default();
    let x = g.line(&format!(
        "lattice.sparse.make %coords, %features, %active {{stride = array<i64: 1, 1, 1>, coord_order = \
         #lattice.coord<batch_x_y_z>}} : (tensor<?x4xi32>, tensor<?x{CHANNELS}xf32>, tensor<1xi32>) -> {SPARSE}"
    ));
    let x = g.conv("subm_conv3d", &[&x], 3, [CHANNELS, 32]);
    let x = g.conv("subm_conv3d", &[&x], 3, [32, 32]);
    let fine = g.conv("subm_conv3d", &[&x], 3, [32, 32]);
    let x = g.conv("conv3d", &[&fine], 2, [32, 64]);
    let x = g.conv("subm_conv3d", &[&x], 3, [64, 64]);
    let middle = g.conv("subm_conv3d", &[&x], 3, [64, 64]);
    let x = g.conv("conv3d", &[&middle], 2, [64, 128]);
    let x = g.conv("subm_conv3d", &[&x], 3, [128, 128]);
    let x = g.conv("target_conv_transpose3d", &[&x, &middle], 2, [128, 64]);
    let x = g.cat(&x, &middle);
    let x = g.conv("subm_conv3d", &[&x], 3, [128, 64]);
    let x = g.conv("target_conv_transpose3d", &[&x, &fine], 2, [64, 32]);
    let x = g.cat(&x, &fine);
    let x = g.conv("subm_conv3d", &[&x], 3, [64, 32]);
    let features = g.features(&x, 32);
    let head = g.weight("linear", "linear_o_i", &[20, 32]);
    let y = g.line(&format!(
        "lattice.linear {features}, {head} : (tensor<?x32xf32>, !lattice.weight<linear, f32>) -> tensor<?x20xf32>"
    ));
    let text = format!(
        "module attributes {{\n    lattice.ir_version = 2, lattice.schema_digest = \"{DIGEST}\",\n    \
         lattice.input_names = [\"x_coords\", \"x_features\", \"x_active\"],\n    \
         lattice.input_roles = [\"sparse_coords\", \"sparse_features\", \"sparse_active\"],\n    \
         lattice.output_names = [\"logits\"], lattice.output_roles = [\"tensor\"],\n    \
         lattice.weight_file = \"weights.safetensors\"\n}} {{\n  func.func @forward(%coords: tensor<?x4xi32>, %features: \
         tensor<?x{CHANNELS}xf32>, %active: tensor<1xi32>) -> tensor<?x20xf32> {{\n{}    return {y} : \
         tensor<?x20xf32>\n  }}\n}}\n",
        g.body
    );
    (text, g.weights)
}

/// A safetensors file.
fn safetensors(tensors: &[Stored]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let start = data.len();
        data.extend_from_slice(bytes);
        let value = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name.clone(), value);
    }
    let mut text = serde_json::Value::Object(header).to_string();
    let padded = (text.len() + 8).next_multiple_of(64) - 8;
    text.extend(std::iter::repeat_n(' ', padded - text.len()));
    [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &data].concat()
}

/// Writes a bundle into `folder`, and `inputs.safetensors` of a scene of so many voxels beside its files.
pub fn write(folder: &Path, count: usize) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut numbers = Numbers(1);
    let (text, weights) = network();
    fs::write(folder.join("graph.mlir"), text)?;
    // Weights of a convolution shrink with what they are summed over; those of norms stay below 1.
    let weights = weights.into_iter().map(|(name, shape)| {
        let (count, out): (usize, usize) = (shape.iter().product(), shape[0]);
        let reach = if shape.len() > 1 { 1.0 / ((count / out.max(1)) as f32).sqrt() } else { 0.9 };
        let bytes = (0..count).flat_map(|_| (numbers.real() * reach).to_le_bytes()).collect();
        (name, "F32", shape, bytes)
    });
    let weights: Vec<Stored> = weights.collect();
    fs::write(folder.join("weights.safetensors"), safetensors(&weights))?;
    let voxels = voxels(count, &mut numbers);
    let coords = voxels.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let features = (0..count * CHANNELS).flat_map(|_| numbers.real().to_le_bytes()).collect();
    let active = i32::try_from(count).map_err(io::Error::other)?.to_le_bytes().to_vec();
    let inputs = [
        ("x_coords".to_owned(), "I32", vec![count, 4], coords),
        ("x_features".to_owned(), "F32", vec![count, CHANNELS], features),
        ("x_active".to_owned(), "I32", vec![1], active),
    ];
    fs::write(folder.join("inputs.safetensors"), safetensors(&inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel of 3 finds about as many voxels as on a surface: the nine of a plane, fewer at gaps and more at slopes.
    #[test]
    fn scenes_are_as_dense_as_surfaces_are() {
        let voxels = voxels(20_000, &mut Numbers(1));
        let index: HashSet<[i32; 4]> = voxels.iter().copied().collect();
        let near = |[b, x, y, z]: [i32; 4]| {
            (0..27).filter(|k| index.contains(&[b, x + k / 9 - 1, y + k / 3 % 3 - 1, z + k % 3 - 1])).count()
        };
        let found = voxels.iter().map(|voxel| near(*voxel)).sum::<usize>() as f64 / voxels.len() as f64;
        assert!((5.0..12.0).contains(&found), "{found}");
    }
}
