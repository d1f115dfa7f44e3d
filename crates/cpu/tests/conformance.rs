//! The backend passes the suite of `puna-graph`, with the same bits from every kernel set and any number of threads.

use puna_cpu::{CpuBackend, Set};
use puna_graph::conformance::{cases, check};

#[test]
fn every_case_agrees_with_the_reference_and_has_the_same_bits_in_every_set_and_with_any_threads() {
    let backends: Vec<(String, CpuBackend)> = Set::available()
        .into_iter()
        .map(|set| (set, 1))
        .chain([(Set::best(), 2), (Set::best(), 3)])
        .map(|(set, threads)| {
            let backend = CpuBackend::new(threads, Some(set)).expect("an available set");
            (format!("{} with {threads} threads", set.name()), backend)
        })
        .collect();
    let mut failures = Vec::new();
    for case in cases().expect("the cases are well made") {
        let mut first: Option<Vec<u32>> = None;
        for (name, backend) in &backends {
            match check(backend, &case) {
                Err(error) => failures.push(format!("{name}: {error}")),
                Ok(bits) if first.as_ref().is_some_and(|f| *f != bits) => {
                    failures.push(format!(
                        "{name}: {}: other bits than {}",
                        case.name, backends[0].0
                    ));
                }
                Ok(bits) => first = first.or(Some(bits)),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
