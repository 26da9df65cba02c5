//! How PyTorch's CPU kernels store a matrix of 4-bit weights, which depends on the machine that packs it.
//!
//! Rows come in blocks, a block lies whole before the next, and in it column after column: for a column the numbers of
//! all its rows, two a byte. Source: PyTorch 2.13, `aten/src/ATen/native/cpu/int4mm_kernel.cpp`.

/// What the processor that packed can do, as `torch.backends.cpu.get_cpu_capability()` there says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PackedFor {
    /// Vectors of 512 bits.
    #[default]
    Avx512,
    /// Vectors of 256 bits.
    Avx2,
    /// Arm's vectors of 256 bits.
    Sve256,
    /// Arm's vectors of 128 bits.
    Neon,
    /// No vectors that PyTorch knows of.
    Default,
}

/// The rows that one block holds, and which two of them share a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Rows of a block; the last block may have fewer.
    pub block: i64,
    /// Whether byte `i` of a whole block's column holds rows `i` and `i + block/2`; otherwise rows `2i` and `2i + 1`. The first
    /// is in its low bits.
    pub in_halves: bool,
}

impl PackedFor {
    /// The layout.
    pub(crate) fn layout(self) -> Layout {
        match self {
            PackedFor::Avx512 => Layout { block: 64, in_halves: true },
            PackedFor::Avx2 => Layout { block: 32, in_halves: true },
            PackedFor::Sve256 | PackedFor::Default => Layout { block: 32, in_halves: false },
            PackedFor::Neon => Layout { block: 16, in_halves: false },
        }
    }

    /// What PyTorch takes this machine for: the least of what it can do and what `ATEN_CPU_CAPABILITY` says.
    pub fn of_this_machine() -> PackedFor {
        let asked = std::env::var("ATEN_CPU_CAPABILITY").unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let has_avx512 = has_avx2
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            match asked.as_str() {
                "default" => PackedFor::Default,
                "avx2" if has_avx2 => PackedFor::Avx2,
                _ if has_avx512 => PackedFor::Avx512,
                _ if has_avx2 => PackedFor::Avx2,
                _ => PackedFor::Default,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            if asked == "sve256" { PackedFor::Sve256 } else { PackedFor::Neon }
        }
    }

    /// The name, as a flag has it.
    pub fn name(self) -> &'static str {
        match self {
            PackedFor::Avx512 => "avx512",
            PackedFor::Avx2 => "avx2",
            PackedFor::Sve256 => "sve256",
            PackedFor::Neon => "neon",
            PackedFor::Default => "default",
        }
    }
}

/// Rows that every machine packs alike: a matrix of so many has one block, and that of pairs.
pub const PACKED_ALIKE: i64 = 16;
