//! Where the program writes: nothing is left half written, and a closed or full output is no crash.

mod tiny;

use std::fs::{self, File};
use tiny::{Kind, Tiny};

#[test]
fn logits_that_end_early_leave_the_old_file() {
    let tiny = Tiny::new(Kind::Chat);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npy");
    fs::write(&path, "old").unwrap();
    let npy = path.to_str().unwrap();
    // A token that the vocabulary does not have.
    let output = tiny.output("eval", &["--tokens", "1,4294967295", "--npy", npy]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn logits_written_over_the_model_do_not_disturb_the_run() {
    let tiny = Tiny::new(Kind::Chat);
    let model = tiny.model.to_str().unwrap();
    let output = tiny.output("eval", &["--tokens", "1,2,3", "--npy", model]);
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read(&tiny.model).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_error_changes_no_exit_code() {
    let tiny = Tiny::new(Kind::Chat);
    for (arguments, code) in [
        (&["run", "-n", "2", "-p", "hello", "--no-mmap"][..], 0),
        (&["eval", "--tokens", "4294967295"], 1),
        (&["eval", "--bogus"], 2),
    ] {
        let mut program = tiny.command();
        program.arg(arguments[0]).arg("-m").arg(&tiny.model);
        program.args(&arguments[1..]);
        program.stderr(File::options().write(true).open("/dev/full").unwrap());
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn sizes_beyond_all_bounds_are_errors_and_no_faults() {
    let tiny = Tiny::new(Kind::Chat);
    let most = usize::MAX.to_string();
    for (flags, code) in [
        (["-d", most.as_str()], 1),
        (["-p", most.as_str()], 1),
        (["--parallel", most.as_str()], 1),
        (["--disturb", most.as_str()], 2),
        (["-t", "1025"], 2),
    ] {
        let mut arguments = vec!["-n", "2", "-r", "1", "--no-ceilings"];
        arguments.extend(flags);
        let output = tiny.output("bench", &arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {error}");
        assert!(!error.contains("internal fault"), "{error}");
    }
}
