//! What a plan refuses, and what it does when a run fails.

use super::*;
use puna_graph::{
    CacheLayer, CacheType, GraphBuilder, PageId, Run, SharedBytes, Weight, ops::ActivationKind,
};
use puna_quant::ElementType;

const WIDTH: usize = 32;

/// An embedding of four tokens, and attention with one head that looks as far back as `reach`.
fn graph(reach: Reach) -> Graph {
    let bytes: SharedBytes = Arc::new(vec![0u8; 4 * WIDTH * 4]);
    let range = 0..4 * WIDTH * 4;
    let table = Weight::new("table", ElementType::F32, [4, WIDTH], bytes, range).unwrap();
    let mut g = GraphBuilder::new();
    let x = g.embed(&table, 1.0);
    let layer = CacheLayer {
        kv_heads: 1,
        key_dim: WIDTH,
        value_dim: WIDTH,
        reach,
    };
    let y = g.attention([x; 3], 1, layer, 1.0, None).unwrap();
    let y = g.activation(y, ActivationKind::Silu);
    let out = g.select_outputs(y).unwrap();
    g.finish(out)
}

fn layout(graph: &Graph) -> CacheLayout {
    CacheLayout::new(graph.cache_layers(), CacheType::F32, CacheType::F32)
}

fn plan(graph: &Graph, layout: &CacheLayout, threads: usize) -> Result<CpuPlan, BackendError> {
    let pool = Arc::new(Pool::new(threads).unwrap());
    let options = PlanOptions::new(8);
    CpuPlan::new(graph.clone(), layout, &options, pool, Kernels::best())
}

/// Runs one token of two sequences, the second of which has page `page`; the first has page 0.
fn run(plan: &mut CpuPlan, layout: &CacheLayout, page: u32) -> Result<usize, BackendError> {
    let layouts = kv_layouts(layout, &layout.layers)?;
    let mut cache = CpuCache::new(layout, layouts, &[2])?;
    let tables = [[vec![PageId(0)]], [vec![PageId(page)]]];
    let runs = [0, 1].map(|i| Run {
        rows: i..i + 1,
        first_position: 0,
        pages: &tables[i],
    });
    let batch = Batch {
        tokens: &[1, 2],
        runs: &runs,
        outputs: &[0, 1],
    };
    plan.run(&batch, &mut cache).map(<[f32]>::len)
}

#[test]
fn a_cache_of_other_layers_is_refused() {
    let (full, window) = (graph(Reach::Full), graph(Reach::Window(3)));
    assert!(plan(&full, &layout(&full), 1).is_ok());
    let none = CacheLayout::new(&[], CacheType::F32, CacheType::F32);
    for other in [layout(&window), none] {
        let refused = plan(&full, &other, 1).err();
        assert!(matches!(refused, Some(BackendError::Unsupported { .. })));
    }
}

#[test]
fn two_sequences_may_not_write_the_same_page() {
    let graph = graph(Reach::Full);
    let layout = layout(&graph);
    let mut plan = plan(&graph, &layout, 1).unwrap();
    assert_eq!(run(&mut plan, &layout, 1).unwrap(), 2 * WIDTH);
    let error = run(&mut plan, &layout, 0).unwrap_err();
    assert!(matches!(error, BackendError::Batch(_)), "{error}");
    assert_eq!(run(&mut plan, &layout, 1).unwrap(), 2 * WIDTH);
}

#[test]
fn a_run_that_panics_is_an_error_and_the_last_of_its_plan() {
    for threads in [1, 2] {
        let graph = graph(Reach::Full);
        let layout = layout(&graph);
        let mut plan = plan(&graph, &layout, threads).unwrap();
        assert!(run(&mut plan, &layout, 1).is_ok());
        // The embedding does not fit its buffer any more.
        let len = std::mem::replace(&mut plan.buffers[0].len, WIDTH - 1);
        let error = run(&mut plan, &layout, 1).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, BackendError::Internal { .. }) && text.contains("`table`"),
            "{text}"
        );
        plan.buffers[0].len = len;
        let error = run(&mut plan, &layout, 1).unwrap_err();
        assert!(matches!(error, BackendError::Internal { .. }), "{error}");
    }
}

#[test]
fn a_profile_has_the_work_of_every_run_and_changes_no_result() {
    for threads in [1, 2] {
        let graph = graph(Reach::Window(3));
        let layout = layout(&graph);
        let mut plan = plan(&graph, &layout, threads).unwrap();
        assert!(plan.take_profile().is_none());
        assert!(plan.start_profile());
        for _ in 0..3 {
            assert_eq!(run(&mut plan, &layout, 1).unwrap(), 2 * WIDTH);
        }
        let profile = plan.take_profile().unwrap();
        assert_eq!(profile.runs, 3);
        let steps = profile.steps.iter();
        let names: Vec<_> = steps.map(|s| (s.name.as_str(), s.kind.as_str())).collect();
        let expected = [
            ("table", "embed+store"),
            ("layer 0", "attention"),
            ("", "activation"),
            ("", "select"),
        ];
        assert_eq!(names, expected);
        // Two tokens a run; each stores a key and a value, and sees its own alone.
        let row = WIDTH as u64 * 4;
        let attention = profile.steps[1].work;
        assert_eq!(profile.steps[0].work.weight_bytes, 3 * 2 * row);
        assert_eq!(profile.steps[0].work.cache_bytes, 3 * 2 * 2 * row);
        assert_eq!(attention.cache_bytes, 3 * 2 * 2 * row);
        assert_eq!(attention.float_ops, 3 * 2 * 2 * 2 * WIDTH as u64);
        assert_eq!(profile.steps[1].fastest_work.bytes(), 2 * 2 * row);
        let times: std::time::Duration = profile.steps.iter().map(|s| s.time).sum();
        assert!(!times.is_zero() && times <= profile.time);
        assert!(plan.take_profile().is_none(), "it has ended");
        run(&mut plan, &layout, 1).unwrap();
    }
}
