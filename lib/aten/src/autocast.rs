//! What autocast does to the operands of an operator on the CPU.
//!
//! An exported region says that autocast is on; the casts are not in its graph, because PyTorch makes them when it
//! dispatches. The lists are those of the operators registered for the dispatch key `AutocastCPU` of PyTorch 2.13.
//! Operands that are no floats, and those of `f64`, stay as they are.

use m2m_record::DType;

/// To which type the operands of an operator go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// To the region's own type.
    Lower,
    /// To `f32`.
    Single,
    /// To the widest of the operands, at least the region's own type.
    Widest,
}

/// What runs in the region's type.
const LOWER: &[&str] = &[
    "_addmm_activation",
    "_native_multi_head_attention",
    "addbmm",
    "addmm",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "linalg_vecdot",
    "linear",
    "matmul",
    "mkldnn_rnn_layer",
    "mm",
    "prelu",
    "scaled_dot_product_attention",
];

/// What PyTorch composes of contractions that are in [`LOWER`]: nothing else in them depends on the type.
const CONTRACTIONS: &[&str] = &["chain_matmul", "einsum", "inner", "linalg_multi_dot", "tensordot"];

/// What takes the widest type of its operands.
const WIDEST: &[&str] = &["cat", "index_copy", "stack"];

/// What runs in `f32`.
const SINGLE: &[&str] = &[
    "_grid_sampler_2d_cpu_fallback",
    "_lu_with_info",
    "adaptive_avg_pool3d",
    "adaptive_max_pool3d",
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "ctc_loss",
    "fake_quantize_per_tensor_affine",
    "fft_fft",
    "fft_fft2",
    "fft_fftn",
    "fft_hfft",
    "fft_ifft",
    "fft_ifft2",
    "fft_ifftn",
    "fft_ihfft",
    "fft_irfft",
    "fft_irfft2",
    "fft_irfftn",
    "fft_rfft",
    "fft_rfft2",
    "fft_rfftn",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "geqrf",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "hinge_embedding_loss",
    "huber_loss",
    "inverse",
    "kl_div",
    "l1_loss",
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "linalg_cond",
    "linalg_eig",
    "linalg_eigh",
    "linalg_eigvals",
    "linalg_eigvalsh",
    "linalg_householder_product",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_lstsq",
    "linalg_matrix_rank",
    "linalg_qr",
    "linalg_solve",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_tensorinv",
    "linalg_tensorsolve",
    "lu_solve",
    "margin_ranking_loss",
    "max_pool3d",
    "max_unpool2d",
    "max_unpool3d",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_margin_loss_forward",
    "nanquantile",
    "nll_loss",
    "nll_loss2d",
    "orgqr",
    "ormqr",
    "pinverse",
    "poisson_nll_loss",
    "polar",
    "prod",
    "qr",
    "quantile",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "smooth_l1_loss",
    "soft_margin_loss",
    "stft",
    "svd",
    "trace",
    "triangular_solve",
    "triplet_margin_loss",
    "view_as_complex",
];

/// What happens to the operands of an operator; `None` where nothing does.
pub(crate) fn policy(op: &str) -> Option<Policy> {
    let name = op.strip_prefix("aten.")?.split('.').next()?;
    let has = |list: &[&str]| list.binary_search(&name).is_ok();
    if has(LOWER) || has(CONTRACTIONS) || op == "aten._convolution.deprecated" {
        return Some(Policy::Lower);
    }
    if has(SINGLE) {
        return Some(Policy::Single);
    }
    has(WIDEST).then_some(Policy::Widest)
}

impl Policy {
    /// The type for operands of these types in a region of type `own`.
    pub(crate) fn target(self, own: DType, operands: impl IntoIterator<Item = DType>) -> DType {
        let is_single = operands.into_iter().any(|dtype| dtype == DType::F32);
        match self {
            Policy::Lower => own,
            Policy::Widest if !is_single => own,
            Policy::Single | Policy::Widest => DType::F32,
        }
    }
}

/// Whether autocast may cast an operand of a type.
pub(crate) fn is_eligible(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_have_nothing_in_common() {
        let lists = [LOWER, CONTRACTIONS, WIDEST, SINGLE];
        for list in lists {
            assert!(list.is_sorted_by(|a, b| a < b), "{list:?}");
        }
        let mut all = lists.concat();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b), "a name is in two lists");
    }

    #[test]
    fn operators_are_found_by_name() {
        assert_eq!(policy("aten.linear.default"), Some(Policy::Lower));
        assert_eq!(policy("aten.conv2d.padding"), Some(Policy::Lower));
        assert_eq!(policy("aten.mse_loss.default"), Some(Policy::Single));
        assert_eq!(policy("aten.cat.default"), Some(Policy::Widest));
        assert_eq!(policy("aten.softmax.int"), None);
        assert_eq!(policy("aten.linear_.default"), None);
        assert_eq!(policy("mine.linear.default"), None);
    }

    #[test]
    fn the_widest_operand_counts() {
        let target = |policy: Policy, operands: &[DType]| policy.target(DType::BF16, operands.iter().copied());
        assert_eq!(target(Policy::Widest, &[DType::BF16, DType::BF16]), DType::BF16);
        assert_eq!(target(Policy::Widest, &[DType::BF16, DType::F32]), DType::F32);
        assert_eq!(target(Policy::Lower, &[DType::F32]), DType::BF16);
        assert_eq!(target(Policy::Single, &[DType::BF16]), DType::F32);
    }
}
