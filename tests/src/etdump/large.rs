//! Dumps of any size, written as flatcc lays them out: one vtable for all tables of a kind, names with each event.

use super::record::Method;

/// Events of one execution: name and instruction.
const EVENTS: [(&str, i32); 19] = [
    ("native_call_convolution.out", 0),
    ("OPERATOR_CALL", 0),
    ("native_call_relu.out", 1),
    ("OPERATOR_CALL", 1),
    ("native_call_convolution.out", 2),
    ("OPERATOR_CALL", 2),
    ("native_call_relu.out", 3),
    ("OPERATOR_CALL", 3),
    ("native_call_max_pool2d_with_indices.out", 4),
    ("OPERATOR_CALL", 4),
    ("native_call_view_copy.out", 5),
    ("OPERATOR_CALL", 5),
    ("native_call_permute_copy.out", 6),
    ("OPERATOR_CALL", 6),
    ("native_call_addmm.out", 7),
    ("OPERATOR_CALL", 7),
    ("native_call__softmax.out", 8),
    ("OPERATOR_CALL", 8),
    ("Method::execute", -1),
];

/// The record that belongs to [`large`].
pub const LARGE: Method = Method {
    name: "forward",
    inputs: &["w", "x"],
    nodes: &[
        ("c0", "aten.convolution.default", &["x", "w"], &["c0"], 1, "a.conv", 1),
        ("r0", "aten.relu.default", &["c0"], &["r0"], 2, "a", 2),
        ("c1", "aten.convolution.default", &["r0", "w"], &["c1"], 3, "b.conv", 3),
        ("r1", "aten.relu.default", &["c1"], &["r1"], 4, "b", 4),
        ("p0", "aten.max_pool2d_with_indices.default", &["r1"], &["i0", "i1"], 5, "", 5),
        ("v0", "aten.view_copy.default", &["i0"], &["v0"], 6, "", 6),
        ("t0", "aten.permute_copy.default", &["w"], &["t0"], 7, "fc", 7),
        ("l0", "aten.addmm.default", &["v0", "t0"], &["l0"], 7, "fc", 7),
        ("s0", "aten._softmax.default", &["l0"], &["s0"], 8, "", 8),
    ],
    handles: r#"{"0":1,"1":2,"2":3,"3":4,"4":5,"5":6,"6":7,"7":7,"8":8}"#,
    delegates: "{}",
    outputs: "{}",
};

struct Out(Vec<u8>);

impl Out {
    fn u16s(&mut self, all: &[u16]) {
        all.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
    }

    fn u32(&mut self, x: u32) {
        self.0.extend(x.to_le_bytes());
    }

    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    /// Makes the offset at `at` lead here.
    fn lead(&mut self, at: usize) {
        let offset = (self.0.len() - at) as u32;
        self.0[at..at + 4].copy_from_slice(&offset.to_le_bytes());
    }

    /// Begins a table with the vtable at `vtable`.
    fn table(&mut self, vtable: usize) {
        let back = self.0.len() as i64 - vtable as i64;
        self.0.extend((back as i32).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend(text.as_bytes());
        self.0.push(0);
        self.align(4);
    }
}

/// A dump of `runs` executions of 19 events each.
pub fn large(runs: usize) -> Vec<u8> {
    let mut out = Out(vec![0; 4]);
    out.0.extend(b"ED00");
    let root_vtable = out.0.len();
    out.u16s(&[8, 12, 4, 8]);
    let run_vtable = out.0.len();
    out.u16s(&[12, 16, 4, 8, 0, 12]);
    let event_vtable = out.0.len();
    out.u16s(&[6, 8, 4]);
    out.align(4);
    let profile_vtable = out.0.len();
    // Name, chain, instruction, both kinds of delegate id and metadata unset, start, end.
    out.u16s(&[20, 32, 4, 8, 12, 0, 0, 0, 16, 24]);
    out.align(4);
    out.lead(0);
    out.table(root_vtable);
    out.u32(0);
    let runs_at = out.0.len();
    out.u32(0);
    out.lead(runs_at);
    out.u32(runs as u32);
    let first = out.0.len();
    out.0.resize(first + 4 * runs, 0);
    for run in 0..runs {
        out.lead(first + 4 * run);
        write_run(&mut out, run, run_vtable, event_vtable, profile_vtable);
    }
    let mut file = (out.0.len() as u32).to_le_bytes().to_vec();
    file.extend(out.0);
    file
}

fn write_run(out: &mut Out, run: usize, run_vtable: usize, event_vtable: usize, profile_vtable: usize) {
    out.table(run_vtable);
    let name_at = out.0.len();
    out.u32(0);
    out.0.extend((-1i32).to_le_bytes());
    let events_at = out.0.len();
    out.u32(0);
    out.lead(name_at);
    out.text("Execute");
    out.lead(events_at);
    out.u32(EVENTS.len() as u32);
    let first = out.0.len();
    out.0.resize(first + 4 * EVENTS.len(), 0);
    let begin = 1_000_000 * (run as u64 + 1);
    for (number, (name, instruction)) in EVENTS.iter().enumerate() {
        out.lead(first + 4 * number);
        out.table(event_vtable);
        let profile_at = out.0.len();
        out.u32(0);
        out.lead(profile_at);
        out.table(profile_vtable);
        let name_at = out.0.len();
        out.u32(0);
        let framework = *instruction < 0;
        let chain: i32 = if framework { -1 } else { 0 };
        out.0.extend(chain.to_le_bytes());
        out.0.extend(instruction.max(&0).to_le_bytes());
        // Counted, so that every run differs, and so that calls lie around kernels.
        let wobble = (run as u64 * 7919 + number as u64 * 104_729) % 997;
        let slot = begin + 50_000 * *instruction.max(&0) as u64;
        let (start, end) = match (framework, number % 2) {
            (true, _) => (begin - 100, begin + 500_000),
            (false, 0) => (slot + 200, slot + 20_000 + wobble),
            (false, _) => (slot, slot + 22_000 + wobble),
        };
        out.0.extend(start.to_le_bytes());
        out.0.extend(end.to_le_bytes());
        out.lead(name_at);
        out.text(name);
    }
}
