module attributes {
  lattice.ir_version = 2 : i32,
  lattice.schema_digest = "1380f1e819fc0eb1af587202ecec3c14ec2c981d249333c5061f0263f82072ad",
  lattice.input_names = ["x_coords", "x_features", "x_active"],
  lattice.input_roles = ["sparse_coords", "sparse_features", "sparse_active"],
  lattice.output_names = ["y", "z"],
  lattice.output_roles = ["sparse_tensor", "tensor"],
  lattice.weight_file = "weights.safetensors"
} {
  func.func @forward(%c: tensor<?x4xi32> {a.b}, %f: tensor<?x32xf16>, %n: tensor<1xi32> loc("here")) -> (!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>, tensor<7x5xf16>) {
    %x = lattice.sparse.make %c, %f, %n {stride = array<i64: 4, 2, 1>, coord_order = #lattice.coord<batch_x_y_z>} : (tensor<?x4xi32>, tensor<?x32xf16>, tensor<1xi32>) -> !lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>
    %w = lattice.weight @"a b" {storage_key = "w", layout = #lattice.weight_layout<conv3d_o_xyz_i>, packing = #lattice.packing<int8, group_size = 32, scale_dtype = f16, mode = affine>} : !lattice.weight<conv3d, f16>
    %y = lattice.conv_transpose3d %x, %w {kernel_size = array<i64: 2, 2, 1>, stride = array<i64: 2, 2, 1>, padding = array<i64: 0, 1, 0>, dilation = array<i64: 1, 1, 300>, accumulation = "canonical_f32"} : (!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>, !lattice.weight<conv3d, f16>) -> !lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16> loc("model.py":1:2)
    %d:3 = lattice.sparse.decompose %y : !lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16> -> (tensor<?x4xi32>, tensor<?x?xf16>, tensor<1xi32>)
    %g = lattice.sparse.with_features %y, %d#1 : (!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>, tensor<?x?xf16>) -> !lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>
    %p = lattice.global_pool %g {mode = #lattice.pool_mode<max>, batch_size = 7} : (!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>) -> tensor<7x5xf16>
    %q = lattice.activation %p {kind = #lattice.activation<leaky_relu>, approximate = #lattice.gelu_approx<none>, alpha = 0.01 : f32, beta = 1.0 : f32, threshold = -2.5 : f32} : (tensor<7x5xf16>) -> tensor<7x5xf16>
    return %g, %q : !lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>, tensor<7x5xf16>
  }
}
