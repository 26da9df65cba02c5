//! Compiles the C++ part of the feature `jit`: registrations, rewrites and run-time functions that MLIR's C API lacks.

#[cfg(feature = "jit")]
const SOURCES: [&str; 6] = [
    "src/jit/cpp/register.cpp",
    "src/jit/cpp/prepare.cpp",
    "src/jit/cpp/kernel_plan.cpp",
    "src/jit/cpp/kernel_emit.cpp",
    "src/jit/cpp/outline.cpp",
    "src/jit/cpp/runtime.cpp",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "jit")]
    compile();
}

#[cfg(feature = "jit")]
fn compile() {
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    println!("cargo:rerun-if-changed=src/jit/cpp/kernel.h");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").flag("-fno-rtti").flag("-fno-exceptions").opt_level(2).debug(false).warnings(false);
    build.include(include_dir()).files(SOURCES).compile("m2m_jit");
}

/// Headers of the same LLVM that mlir-sys links.
#[cfg(feature = "jit")]
fn include_dir() -> std::path::PathBuf {
    let prefix = std::env::var_os("MLIR_SYS_220_PREFIX").map(std::path::PathBuf::from).unwrap_or_default();
    let config = prefix.join("bin").join("llvm-config");
    let output = std::process::Command::new(&config).arg("--includedir").output().unwrap_or_else(|error| {
        panic!("{} does not run ({error}); set MLIR_SYS_220_PREFIX to LLVM 22", config.display())
    });
    std::path::PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
