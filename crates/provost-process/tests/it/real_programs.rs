//! Real interactive programs at a supervised terminal: each prompt is recognised, answered as its options say, and
//! the program ends. If a program isn't installed its test says so; with `CI=true` it fails.

use std::fs;
use std::path::Path;

use provost_event::{AskKind, Exit, OptionMeaning};

use crate::real_program::{Program, installed};

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn a_shell_waits_asks_for_consent_and_waits_again() {
    installed!("bash");
    let bash = Program::start("bash", &["--noprofile", "--norc"]).await;
    bash.waits("$").await;
    bash.types("read -p 'Deploy to production? [y/N] ' answer; echo \"got <$answer>\"\r").await;
    let ask = bash.asks("Deploy to production?").await;
    assert_eq!(ask.kind, AskKind::Other);
    bash.answers(&ask, OptionMeaning::Deny).await;
    bash.waits("$").await;
    assert!(bash.shows("got <n>").await);
    bash.types("exit 3\r").await;
    assert_eq!(bash.ends().await, Exit::Code(3));
}

#[tokio::test]
async fn the_same_question_asked_again_has_another_fingerprint() {
    installed!("bash");
    let script =
        "for file in one two; do read -p 'Apply this change? [y/N] ' answer; echo $answer >> answers; done";
    let bash = Program::start("bash", &["-c", script]).await;
    let first = bash.asks("Apply this change?").await;
    bash.answers(&first, OptionMeaning::ApproveOnce).await;
    let second = bash.asks("Apply this change?").await;
    bash.answers(&second, OptionMeaning::Deny).await;
    assert_ne!(first.fingerprint, second.fingerprint);
    let answers = bash.path().join("answers");
    assert_eq!((bash.ends().await, text(&answers).as_str()), (Exit::Code(0), "y\nn\n"));
}

#[tokio::test]
async fn a_python_prompt_waits_and_its_input_asks() {
    installed!("python3");
    let python = Program::start("python3", &["-q"]).await;
    python.waits(">>>").await;
    python.types("name = input('Name of the release: ')\r").await;
    python.waits("Name of the release:").await;
    python.types("tern\r").await;
    python.waits(">>>").await;
    python.types("open('name', 'w').write(name) and exit()\r").await;
    let name = python.path().join("name");
    assert_eq!((python.ends().await, text(&name).as_str()), (Exit::Code(0), "tern"));
}

#[tokio::test]
async fn getpass_is_a_password_prompt_and_the_secret_is_never_shown() {
    installed!("python3");
    let script = "import getpass; open('length', 'w').write(str(len(getpass.getpass('Vault secret: '))))";
    let python = Program::start("python3", &["-c", script]).await;
    python.wants_secret("Vault secret:").await;
    python.types_secret("tern-4711-arctic").await;
    let length = python.path().join("length");
    assert!(!python.shows("4711").await);
    assert_eq!((python.ends().await, text(&length).as_str()), (Exit::Code(0), "16"));
}

#[tokio::test]
async fn ssh_keygen_asks_to_overwrite_then_twice_for_a_passphrase() {
    installed!("ssh-keygen");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "an old one\n").unwrap();
    let keygen = Program::start_in(folder, "ssh-keygen", &["-t", "ed25519", "-f", "key"]).await;
    let ask = keygen.asks("Overwrite").await;
    keygen.answers(&ask, OptionMeaning::ApproveOnce).await;
    keygen.wants_secret("passphrase").await;
    keygen.types_secret("tern-4711").await;
    keygen.wants_secret("again").await;
    keygen.types_secret("tern-4711").await;
    let key = keygen.path().join("key");
    assert_eq!(keygen.ends().await, Exit::Code(0));
    assert!(text(&key).contains("PRIVATE KEY"));
}

#[tokio::test]
async fn git_add_p_asks_for_each_hunk() {
    installed!("git");
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (1..40).map(|line| line.to_string()).collect();
    fs::write(folder.path().join("numbers"), lines.join("\n")).unwrap();
    for args in [&["init", "-q"][..], &["add", "numbers"]] {
        Program::run_in(folder.path(), "git", args);
    }
    fs::write(
        folder.path().join("numbers"),
        lines.join("\n").replace("3\n4", "3\n3a\n4").replace("\n38", "\n37a\n38"),
    )
    .unwrap();
    let git = Program::start_in(folder, "git", &["-c", "color.ui=never", "add", "-p"]).await;
    let first = git.asks("Stage this hunk").await;
    git.answers(&first, OptionMeaning::ApproveOnce).await;
    let second = git.asks("Stage this hunk").await;
    git.answers(&second, OptionMeaning::Deny).await;
    assert_eq!(git.ends().await, Exit::Code(0));
    let staged = Program::run_in(git.path(), "git", &["diff", "--cached", "--unified=0"]);
    assert!(staged.contains("+3a") && !staged.contains("+37a"), "{staged}");
}

#[tokio::test]
async fn apt_get_asks_before_it_removes() {
    installed!("apt-get");
    let folder = tempfile::tempdir().unwrap();
    // A package of its own, which exists nowhere else; refused, it changes nothing.
    fs::write(folder.path().join("status"), PACKAGE).unwrap();
    for made in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    let here = folder.path().display();
    let state = format!("Dir::State={here}");
    let status = format!("Dir::State::status={here}/status");
    let cache = format!("Dir::Cache={here}");
    let args =
        ["-o", &state, "-o", &status, "-o", &cache, "-o", "Debug::NoLocking=1", "remove", "provost-sample"];
    let apt = Program::start_in(folder, "apt-get", &args).await;
    let ask = apt.asks("Do you want to continue?").await;
    apt.answers(&ask, OptionMeaning::Deny).await;
    assert_eq!(apt.ends().await, Exit::Code(1));
}

const PACKAGE: &str = "Package: provost-sample\nStatus: install ok installed\nInstalled-Size: 12\n\
    Maintainer: nobody <nobody@example.org>\nArchitecture: all\nVersion: 1\nDescription: stands in for a package\n\n";

#[tokio::test]
async fn less_waits_at_each_screenful() {
    installed!("less");
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..200).map(|line| format!("{line}: Continue? [y/N] password:")).collect();
    fs::write(folder.path().join("lines"), lines.join("\n")).unwrap();
    let less = Program::start_in(folder, "less", &["lines"]).await;
    less.waits("lines").await;
    less.types(" ").await;
    less.waits(":").await;
    less.types("G").await;
    less.waits("END").await;
    less.types("q").await;
    assert_eq!(less.ends().await, Exit::Code(0));
}

#[tokio::test]
async fn vim_waits_and_asks_before_it_loses_changes() {
    installed!("vim");
    let vim = Program::start("vim", &["-u", "NONE", "-i", "NONE", "-n", "notes"]).await;
    vim.waits("").await;
    vim.types("iterns\u{1b}").await;
    vim.until_shown("terns").await;
    vim.types(":confirm quit\r").await;
    let ask = vim.asks("es, (N)o").await;
    vim.answers(&ask, OptionMeaning::ApproveOnce).await;
    let notes = vim.path().join("notes");
    assert_eq!((vim.ends().await, text(&notes).as_str()), (Exit::Code(0), "terns\n"));
}

#[tokio::test]
async fn gdb_waits_and_asks_about_a_breakpoint() {
    installed!("gdb");
    let gdb = Program::start("gdb", &["-q", "-nx"]).await;
    gdb.waits("(gdb)").await;
    gdb.types("break nowhere\r").await;
    let ask = gdb.asks("pending on future shared library load").await;
    gdb.answers(&ask, OptionMeaning::Deny).await;
    gdb.waits("(gdb)").await;
    gdb.types("help all\r").await;
    gdb.waits("--Type <RET> for more").await;
    gdb.types("q\r").await;
    gdb.waits("(gdb)").await;
    gdb.types("quit\r").await;
    assert_eq!(gdb.ends().await, Exit::Code(0));
}

#[tokio::test]
async fn a_dialog_of_whiptail_is_answered_by_its_buttons() {
    installed!("whiptail");
    let question = ["--yesno", "Remove all packages?", "10", "50"];
    for (meaning, code) in [(OptionMeaning::ApproveOnce, 0), (OptionMeaning::Deny, 1)] {
        let whiptail = Program::start("whiptail", &question).await;
        let ask = whiptail.asks("").await;
        whiptail.answers(&ask, meaning).await;
        assert_eq!(whiptail.ends().await, Exit::Code(code));
    }
}

#[tokio::test]
async fn a_field_of_whiptail_waits_and_its_password_box_wants_a_secret() {
    installed!("whiptail");
    let script = "whiptail --inputbox 'Host name?' 10 50 2> host; whiptail --passwordbox 'Root password' 10 50 2> secret";
    let whiptail = Program::start("sh", &["-c", script]).await;
    whiptail.waits("").await;
    whiptail.types("tern\r").await;
    whiptail.wants_secret("").await;
    whiptail.types("arctic\r").await;
    let (host, secret) = (whiptail.path().join("host"), whiptail.path().join("secret"));
    assert_eq!(
        (whiptail.ends().await, text(&host).as_str(), text(&secret).as_str()),
        (Exit::Code(0), "tern", "arctic")
    );
}
