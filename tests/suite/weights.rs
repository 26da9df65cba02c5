//! Holds the two definitions of the counter-based weights together: what Rust makes must have the digests that
//! Python, which computed the reference output, wrote down.

use m2m_tests::model::Model;
use m2m_tests::{tools, weights};
use sha2::{Digest, Sha256};

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn resnet18_has_the_weights_and_input_of_its_reference_output() {
    let folder = tools::fixtures().join("resnet18");
    let expected: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap();
    let model = Model::parse(&std::fs::read_to_string(folder.join("program.json")).unwrap()).unwrap();
    let mut bytes = Vec::new();
    for (number, tensor) in model.state() {
        tensor.write(number, weights::range(&tensor.name, &tensor.shape), &mut bytes).unwrap();
    }
    assert_eq!(hex(Sha256::digest(&bytes)), expected["weights_sha256"].as_str().unwrap());
    let mut inputs = Vec::new();
    model.write_inputs(&mut inputs).unwrap();
    let data = &inputs[inputs.len() - 3 * 224 * 224 * 4..];
    assert_eq!(hex(Sha256::digest(data)), expected["input_sha256"].as_str().unwrap());
}
