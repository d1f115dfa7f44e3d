//! `Engine::decode` and the operations on sequences.

use crate::{
    fake::Fake,
    tiny::{END, Layers, Tiny, gguf, letters},
};
use puna_engine::{Engine, EngineError, EngineOptions, Feed, Want};
use puna_graph::BackendError;
use puna_tokenizer::TokenId;

const BOTH: [Layers; 2] = [Layers::Full, Layers::Window(100)];

#[test]
fn a_call_that_is_refused_changes_nothing_and_the_next_one_works() {
    type Wrong = fn(&EngineError) -> bool;
    for layers in BOTH {
        let mut tiny = Tiny::new(layers, 320, 64);
        let (a, b) = (
            tiny.sequence(&letters(70, 1)),
            tiny.sequence(&letters(130, 2)),
        );
        let gone = tiny.engine.sequence();
        tiny.engine.remove(gone);
        let before = tiny.state(&[a, b]);
        tiny.fake.take_runs();
        let (few, many, wrong) = (letters(3, 3), letters(190, 4), [TokenId(1), TokenId(29)]);
        let refused: [(&[_], Wrong); 6] = [
            (&[(a, &few[..]), (b, &few), (a, &few)], |e| {
                matches!(e, EngineError::DuplicateSequence(_))
            }),
            // Each alone would fit.
            (&[(a, &many[..180]), (b, &many)], |e| {
                matches!(e, EngineError::CacheFull { .. })
            }),
            (&[(a, &few), (b, &wrong)], |e| {
                matches!(
                    e,
                    EngineError::UnknownToken {
                        token: 29,
                        vocabulary: 29
                    }
                )
            }),
            (&[(a, &few), (gone, &few)], |e| {
                matches!(e, EngineError::UnknownSequence(_))
            }),
            (&[(a, &few), (b, &letters(191, 5))], |e| {
                matches!(
                    e,
                    EngineError::ContextExceeded {
                        tokens: 321,
                        context: 320
                    }
                )
            }),
            (&[(a, &[]), (b, &[])], |e| matches!(e, EngineError::Empty)),
        ];
        for (feeds, is_expected) in refused {
            let error = tiny.feed(feeds).unwrap_err();
            assert!(is_expected(&error), "{error}");
            assert!(tiny.state(&[a, b]) == before, "{error}");
            assert!(tiny.fake.take_runs().is_empty(), "{error}");
        }
        tiny.feed(&[(a, &few), (b, &few)]).unwrap();
    }
}

#[test]
fn after_a_failed_run_the_rest_can_be_fed_again_and_no_page_is_lost() {
    for layers in BOTH {
        for failing in 1..=3 {
            let mut tiny = Tiny::new(layers, 512, 64);
            let (a, b) = (tiny.engine.sequence(), tiny.engine.sequence());
            let (first, second) = (letters(60, 1), letters(20, 2));
            // Rows of logits are 32 in a run: 32 of `first`, then 28 and 4 of `second`, then 16.
            tiny.fake.fail_in(failing);
            let error = tiny.feed(&[(a, &first), (b, &second)]).unwrap_err();
            assert!(matches!(
                error,
                EngineError::Backend(BackendError::Memory { .. })
            ));
            let (tokens, pages) = tiny.state(&[a, b]);
            let done = [tokens[0].len(), tokens[1].len()];
            assert_eq!(done, [[0, 0], [32, 0], [60, 4]][failing - 1]);
            let needed = done.map(|n| n.div_ceil(64)).iter().sum::<usize>();
            assert!(pages.iter().all(|n| *n == needed), "{pages:?}");
            if done[0] < 60 {
                tiny.feed(&[(a, &first[done[0]..]), (b, &second[done[1]..])])
                    .unwrap();
            } else {
                tiny.feed(&[(b, &second[done[1]..])]).unwrap();
            }
            assert_eq!(tiny.engine.tokens(a).unwrap(), first);
            assert_eq!(tiny.engine.tokens(b).unwrap(), second);
            tiny.engine.remove(a);
            tiny.engine.remove(b);
            assert!(tiny.engine.pages_in_use().iter().all(|n| *n == 0));
        }
    }
}

#[test]
fn forks_share_pages_until_one_of_them_writes() {
    for layers in BOTH {
        let mut tiny = Tiny::new(layers, 640, 512);
        let a = tiny.sequence(&letters(90, 1));
        let b = tiny.engine.fork(a).unwrap();
        let c = tiny.engine.fork(b).unwrap();
        let pages = |tiny: &Tiny| *tiny.engine.pages_in_use().last().unwrap();
        assert_eq!(pages(&tiny), 2);
        tiny.feed(&[(b, &letters(3, 7))]).unwrap();
        assert_eq!(pages(&tiny), 3, "one copied page");
        // Two sequences that share a page write to it in one run: one of them copies.
        tiny.feed(&[(a, &letters(5, 8)), (c, &letters(4, 9))])
            .unwrap();
        assert_eq!(pages(&tiny), 4);
        tiny.feed(&[
            (a, &letters(50, 1)),
            (b, &letters(50, 2)),
            (c, &letters(50, 3)),
        ])
        .unwrap();
        assert_eq!(
            pages(&tiny),
            7,
            "the first page of all three, and two of each"
        );
        for (sequence, left) in [(a, 5), (c, 3), (b, 0)] {
            tiny.engine.remove(sequence);
            assert_eq!(pages(&tiny), left);
        }
        assert!(tiny.engine.pages_in_use().iter().all(|n| *n == 0));
        assert!(matches!(
            tiny.engine.fork(a),
            Err(EngineError::UnknownSequence(_))
        ));
    }
}

#[test]
fn a_failed_run_of_a_fork_leaves_the_other_one_its_pages() {
    let mut tiny = Tiny::new(Layers::Full, 512, 512);
    let a = tiny.sequence(&letters(90, 1));
    let b = tiny.engine.fork(a).unwrap();
    tiny.fake.fail_in(1);
    tiny.feed(&[(b, &letters(100, 2))]).unwrap_err();
    assert_eq!(tiny.engine.tokens(b).unwrap().len(), 90);
    tiny.feed(&[(a, &letters(30, 3)), (b, &letters(30, 4))])
        .unwrap();
    tiny.engine.remove(b);
    assert_eq!(tiny.engine.pages_in_use(), [2]);
    tiny.engine.remove(a);
    assert_eq!(tiny.engine.pages_in_use(), [0]);
}

#[test]
fn going_back_and_on_again_sees_only_what_is_left() {
    for layers in BOTH {
        let mut tiny = Tiny::new(layers, 640, 64);
        let a = tiny.sequence(&letters(200, 1));
        tiny.engine.truncate(a, 190).unwrap();
        tiny.feed(&[(a, &letters(60, 2))]).unwrap();
        // Another text with the same beginning.
        let mut other = tiny.engine.tokens(a).unwrap()[..240].to_vec();
        other.extend(letters(5, 9));
        let kept = tiny.engine.reuse(a, &other).unwrap();
        assert_eq!(kept, 240);
        tiny.feed(&[(a, &other[kept..])]).unwrap();
        // So far back a window does not reach, and all is computed anew.
        let far = [&other[..100], &letters(40, 3)].concat();
        let kept = tiny.engine.reuse(a, &far).unwrap();
        assert_eq!(kept, if layers == Layers::Full { 100 } else { 0 });
        tiny.feed(&[(a, &far[kept..])]).unwrap();
        assert_eq!(tiny.engine.tokens(a).unwrap(), far);
        let pages = tiny.engine.pages_in_use();
        assert_eq!(*pages.last().unwrap(), far.len().div_ceil(64));
    }
}

#[test]
fn a_window_gives_its_pages_back_and_a_long_text_fits_beside_it() {
    let mut tiny = Tiny::new(Layers::Window(64), 2048, 64);
    let a = tiny.sequence(&letters(1500, 1));
    let [window, full] = tiny.engine.pages_in_use()[..] else {
        panic!("two groups");
    };
    assert!(window <= 2, "{window}");
    assert_eq!(full, 1500usize.div_ceil(64));
    tiny.engine.remove(a);
    assert_eq!(tiny.engine.pages_in_use(), [0, 0]);
}

#[test]
fn logits_come_for_the_tokens_that_want_them() {
    let mut tiny = Tiny::new(Layers::Full, 512, 16);
    let tokens = letters(40, 1);
    let feeds = [Want::None, Want::Last, Want::All].map(|want| Feed {
        sequence: tiny.engine.sequence(),
        tokens: &tokens,
        want,
    });
    let mut got = Vec::new();
    tiny.engine
        .decode(&feeds, &mut |feed, token, _| got.push((feed, token)))
        .unwrap();
    let expected: Vec<_> = [(1, 39)]
        .into_iter()
        .chain((0..40).map(|i| (2, i)))
        .collect();
    assert_eq!(got, expected);
    let most = tiny.fake.take_runs().iter().map(|r| r.iter().sum()).max();
    assert_eq!(most, Some(16));
}

#[test]
fn a_model_with_an_op_that_the_backend_lacks_is_refused_by_its_tensor() {
    let fake = Fake {
        lacks: Some("linear"),
        ..Fake::default()
    };
    let options = EngineOptions::default();
    let opened = Engine::from_gguf(gguf(Layers::Full, END), &fake, &options);
    let error = opened.err().unwrap().to_string();
    assert_eq!(
        error,
        "the fake has no linear for tensor `blk.0.attn_q.weight` of type F32"
    );
}
