//! How often the engine asks for memory while it decodes. A program of its own, since it counts for the whole process.

#[path = "engine/fake.rs"]
mod fake;
#[path = "engine/tiny.rs"]
mod tiny;

use allocation_counter::{AllocationInfo, measure};
use puna_engine::{Feed, SeqId, Want};
use tiny::{Layers, Tiny, letters};

/// Decodes one token of each sequence so often.
fn decode(tiny: &mut Tiny, sequences: &[SeqId], times: usize) {
    let tokens = letters(times, 1);
    for token in tokens.chunks(1) {
        let mut feeds = [Feed {
            sequence: sequences[0],
            tokens: token,
            want: Want::Last,
        }; 8];
        for (feed, sequence) in feeds.iter_mut().zip(sequences) {
            feed.sequence = *sequence;
        }
        let feeds = &feeds[..sequences.len()];
        tiny.engine.decode(feeds, &mut |_, _, _| {}).unwrap();
    }
}

#[test]
fn a_decoded_token_asks_for_memory_once() {
    for layers in [Layers::Full, Layers::Window(100)] {
        for parallel in [1, 2, 8] {
            let mut tiny = Tiny::new(layers, 4096, 512);
            let sequences: Vec<_> = (0..parallel).map(|_| tiny.engine.sequence()).collect();
            // Past the first page and the window; buffers have their size.
            decode(&mut tiny, &sequences, 130);
            tiny.fake.log_no_runs();
            let times = 60;
            let AllocationInfo { count_total, .. } =
                measure(|| decode(&mut tiny, &sequences, times));
            // The runs of the batch, which borrow the page tables; the tokens of the test itself; and as much again for lists of
            // tokens and pages that outgrow their place now and then.
            let most = times + 1 + 2 * parallel;
            assert!(
                (times..=most).contains(&(count_total as usize)),
                "{count_total} for {times} tokens of {parallel} sequences, expected {times} to {most}"
            );
        }
    }
}
