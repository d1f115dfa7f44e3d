//! Room for the engine, which recurses over expressions and values.

use crate::ChatError;
use std::thread;

/// Enough for every depth that the limits on templates (`source.rs`) and values (`python/bounded.rs`) leave: 24 blocks in each other times 24 brackets times
/// 64 calls, at most a kilobyte each. Only what is used becomes memory.
const STACK: usize = 64 << 20;

/// Runs `work` on a thread of its own with a deep stack. A panic of the engine, of which none is known, ends there and is an error.
pub(crate) fn with_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, ChatError> + Send,
) -> Result<T, ChatError> {
    let failed = |problem: String| ChatError::Render { line: 0, problem };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("chat template".into())
            .stack_size(STACK);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| failed(format!("no thread to run it: {error}")))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(failed("the template engine panicked".into())))
    })
}
