//! Pipes that break and pipes that repeat: a stream cut at any byte is refused by whoever reads it, with status 2 and
//! no output file; a reader that goes away ends the writer by SIGPIPE, a full disk with status 2; and the same input
//! gives the same bytes in any folder.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use m2m_tests::tools;

/// Runs `check` for every proper prefix of `stream`, on all cores, each thread in a folder of its own.
fn every_cut(stream: &[u8], check: impl Fn(&[u8], &Path) -> Result<(), String> + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = |thread| {
            let folder = tools::work_dir().unwrap();
            let cuts = (thread..stream.len()).step_by(threads);
            cuts.filter_map(|cut| {
                check(&stream[..cut], folder.path()).err().map(|text| format!("cut at {cut}: {text}"))
            })
            .collect::<Vec<_>>()
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} cuts went wrong:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}

/// The tool must refuse the cut stream with status 2 and leave no `out`.
fn refused(tool: &str, args: &[&str], cut: &[u8], folder: &Path) -> Result<(), String> {
    let output = tools::run(tool, args, folder, cut).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(2) {
        return Err(format!("{tool}: {}: {said}", output.status));
    }
    if !said.starts_with(&format!("{tool}: <stdin>")) {
        return Err(format!("{tool} does not name its input: {said}"));
    }
    // Whatever was passed on must not be a whole stream, so that the next stage fails too.
    if output.stdout.windows(15).any(|window| window == b"{\"record\":\"end\"") {
        return Err(format!("{tool} wrote an end record"));
    }
    if folder.join("out").exists() {
        return Err(format!("{tool} left out behind"));
    }
    Ok(())
}

fn lowered(fixture: &str, folder: &Path) -> Vec<u8> {
    let stream = tools::capture(fixture, folder).unwrap();
    tools::expect_success("m2m-lower", tools::run::<&str>("m2m-lower", &[], folder, &stream).unwrap()).unwrap()
}

fn hash_refuses_a_stream_cut_at_any_byte() {
    let folder = tools::work_dir().unwrap();
    let stream = tools::capture("extra_files", folder.path()).unwrap();
    every_cut(&stream, |cut, folder| {
        std::fs::write(folder.join("cut.ndjson"), cut).unwrap();
        let output = tools::run("m2m-hash", &["--check", "cut.ndjson"], folder, b"").unwrap();
        match output.status.code() {
            Some(1 | 2) => Ok(()),
            _ => Err(output.status.to_string()),
        }
    });
}

fn lower_refuses_a_stream_cut_at_any_byte() {
    let folder = tools::work_dir().unwrap();
    let stream = tools::capture("extra_files", folder.path()).unwrap();
    every_cut(&stream, |cut, folder| {
        refused("m2m-lower", &["-o", "out"], cut, folder)?;
        if cut.len() % 16 == 0 { refused("m2m-lower", &[], cut, folder) } else { Ok(()) }
    });
}

fn bundle_refuses_a_stream_cut_at_any_byte() {
    let folder = tools::work_dir().unwrap();
    let stream = lowered("extra_files", folder.path());
    every_cut(&stream, |cut, folder| refused("m2m-bundle", &["-o", "out"], cut, folder));
}

/// Every file of a folder by name.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

fn the_pipe_gives_the_same_bytes_again_and_elsewhere() {
    for fixture in ["resnet_block", "gpt2_tiny_dynseq", "tied_shared", "layout_flat"] {
        let bundles = [(), ()].map(|()| {
            let folder = tools::work_dir().unwrap();
            let stream = lowered(fixture, folder.path());
            let output = tools::run("m2m-bundle", &["-o", "out"], folder.path(), &stream).unwrap();
            tools::expect_success("m2m-bundle", output).unwrap();
            contents(&folder.path().join("out"))
        });
        assert!(bundles[0].contains_key("model.mlir") && bundles[0].contains_key("receipt.json"), "{fixture}");
        for (name, bytes) in &bundles[0] {
            assert!(bundles[1].get(name) == Some(bytes), "{fixture}: {name} differs between two runs");
        }
        assert_eq!(bundles[0].len(), bundles[1].len(), "{fixture}");
    }
}

fn capture_gives_the_same_bytes_again_and_elsewhere() {
    for name in tools::model_names(&tools::fixtures()).unwrap() {
        let streams = [(), ()].map(|()| tools::capture(&name, tools::work_dir().unwrap().path()).unwrap());
        assert!(streams[0] == streams[1], "{name}: two captures differ");
    }
}

/// The tools that write to standard output: name, arguments, and whether they read a captured or a lowered stream.
const WRITERS: [(&str, &[&str], Option<bool>); 7] = [
    ("m2m-capture", &["fixtures/mlp/model.pt2"], None),
    ("m2m-hash", &["fixtures/mlp/model.pt2"], None),
    ("m2m-pte", &["fixtures/pte/full.pte"], None),
    ("m2m-etdump", &["fixtures/etdump/many.etdump"], None),
    ("m2m-lattice-verify", &["--list", "ops"], None),
    ("m2m-lower", &[], Some(false)),
    (
        "m2m-run",
        &[
            "--engine",
            "mlir",
            "--inputs",
            "fixtures/mlp/inputs.safetensors",
            "--compare",
            "fixtures/mlp/outputs.safetensors",
        ],
        Some(true),
    ),
];

/// Runs each writer with the standard output that `stdout` makes, and gives its output to `check`.
fn every_writer(stdout: impl Fn() -> Stdio, check: impl Fn(&str, Output)) {
    let folder = tools::work_dir().unwrap();
    let captured = tools::capture("mlp", folder.path()).unwrap();
    let writers = WRITERS.iter().filter(|(tool, ..)| !(tools::without_mlir() && tools::MLIR_TOOLS.contains(tool)));
    for (tool, args, reads) in writers {
        let input = match reads {
            None => Vec::new(),
            Some(false) => captured.clone(),
            Some(true) => lowered("mlp", folder.path()),
        };
        std::fs::write(folder.path().join("input"), input).unwrap();
        let mut command = Command::new(tools::tool(tool).unwrap());
        command.args(*args).current_dir(folder.path()).stdout(stdout());
        command.stdin(std::fs::File::open(folder.path().join("input")).unwrap());
        check(tool, command.output().unwrap());
    }
}

fn a_closed_pipe_ends_every_writer_silently() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer.into()
    };
    every_writer(closed, |tool, output| {
        assert_eq!(output.status.signal(), Some(13), "{tool}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{tool}");
    });
}

fn a_full_disk_is_an_error_of_every_writer() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into();
    every_writer(full, |tool, output| {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{tool}: {said}");
        assert!(said.starts_with(&format!("{tool}: ")) && said.contains("No space left"), "{tool}: {said}");
    });
}

fn nothing_on_standard_input_is_an_error_of_every_reader() {
    for (tool, args) in
        [("m2m-lower", &["-o", "out"][..]), ("m2m-run", &["--golden", "out"]), ("m2m-bundle", &["-o", "out"])]
    {
        if tools::without_mlir() && tools::MLIR_TOOLS.contains(&tool) {
            continue;
        }
        refused(tool, args, b"", tools::work_dir().unwrap().path()).unwrap();
    }
}

m2m_tests::suite! {
    plain a_closed_pipe_ends_every_writer_silently,
    plain a_full_disk_is_an_error_of_every_writer,
    plain nothing_on_standard_input_is_an_error_of_every_reader,
    plain hash_refuses_a_stream_cut_at_any_byte,
    mlir lower_refuses_a_stream_cut_at_any_byte,
    mlir bundle_refuses_a_stream_cut_at_any_byte,
    mlir the_pipe_gives_the_same_bytes_again_and_elsewhere,
    plain capture_gives_the_same_bytes_again_and_elsewhere,
}
