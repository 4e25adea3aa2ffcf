//! Ordinary command lines of developers, under rules that a developer would write: how many need approval.

use provost_event::Permission;

use crate::permissions::{command, permissions};

const LINES: &str = include_str!("shell_everyday.txt");

/// The rules of a developer who doesn't want to be asked about ordinary commands.
const ALLOWED: &[&str] = &[
    "cargo", "git", "find", "xargs", "grep", "rg", "ls", "cat", "head", "tail", "sed", "awk", "wc", "sort",
    "uniq", "cut", "tr", "diff", "jq", "curl", "echo", "printf", "cd", "pwd", "mkdir", "touch", "cp", "mv",
    "ln", "chmod", "npm", "npx", "yarn", "pnpm", "node", "python", "python3", "pytest", "pip", "make", "go",
    "docker", "env", "timeout", "time", "nice", "nohup", "tar", "unzip", "date", "du", "df", "which",
    "command", "type", "ps", "sleep", "true", "tee", "gh", "bash", "sh", "source", "export", "unset", "set",
    "read", "[", "[[", "test", "basename", "seq", "i=", "-d",
];

fn asked(rules: &[String]) -> Vec<String> {
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let permissions = permissions(&rules);
    let lines = LINES.lines().map(|line| line.replace('␤', "\n"));
    lines.filter(|line| permissions.judge("shell", &command(line)).permission != Permission::Allow).collect()
}

#[test]
fn everyday_commands_are_seldom_asked_about() {
    let allow = ALLOWED.iter().map(|name| {
        if name.ends_with('=') { format!("allow shell({name}*)") } else { format!("allow shell({name} *)") }
    });
    let allow: Vec<String> = allow.chain(["default ask".to_owned()]).collect();
    let deny: Vec<String> =
        ["rm", "sudo", "git push", "dd", "mkfs"].iter().map(|name| format!("deny shell({name} *)")).collect();
    let (by_allow, by_deny) = (asked(&allow), asked(&deny));
    assert!(LINES.lines().count() >= 150);
    expect_test::expect![[r#"
        under a list of what is allowed:
        rg -l foo | xargs sed -n 1,5p
        cat > notes.txt <<'EOF'
        hello
        EOF
        while read -r line; do echo "$line"; done < f
        export PATH="$HOME/.cargo/bin:$PATH"
        under a list of what is denied:
        git push origin main
    "#]]
    .assert_eq(&format!(
        "under a list of what is allowed:\n{}\nunder a list of what is denied:\n{}\n",
        by_allow.join("\n"),
        by_deny.join("\n")
    ));
}
