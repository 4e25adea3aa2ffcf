//! Trees of agents from a seed: the answers of each agent and the agents it spawns, as one script.

use fastrand::Rng;
use provost_event::Priority;

/// Agents that the root spawns.
pub(crate) const FOR_THE_ROOT: u32 = 200;
/// Maximum agents that others spawn.
const FOR_OTHERS: u32 = 60;
/// Maximum nesting depth.
const DEPTH_MAX: u32 = 3;

/// A tree's script, and its generator.
pub(crate) struct Tree {
    pub(crate) script: String,
    random: Rng,
    next: u32,
    /// Agents that others than the root may still spawn.
    left: u32,
    /// Agents whose script is still to be written, with their depth.
    unwritten: Vec<(u32, u32)>,
}

/// The goal of the `number`th spawned agent.
pub(crate) fn goal(number: u32) -> String {
    format!("task {number:04}.")
}

/// The last message of an agent that completes.
pub(crate) fn last_text(goal: &str) -> String {
    format!("{} is done", goal.trim_end_matches('.'))
}

impl Tree {
    /// The tree of `seed`: the root spawns [`FOR_THE_ROOT`] agents in waves, and these spawn more.
    pub(crate) fn of(seed: u64) -> Self {
        let script = String::new();
        let random = Rng::with_seed(seed);
        let mut tree = Self { script, random, next: 1, left: FOR_OTHERS, unwritten: Vec::new() };
        tree.write_root();
        tree.script.push_str("agents:\n");
        while let Some((number, depth)) = tree.unwritten.pop() {
            tree.write_agent(number, depth);
        }
        tree
    }

    fn write_root(&mut self) {
        self.script.push_str("answers:\n");
        let mut left = FOR_THE_ROOT;
        while left > 0 {
            let wave = self.random.u32(10..60).min(left);
            left -= wave;
            self.write_turn(wave, 0);
        }
        self.script.push_str("  - text: all is done\n");
    }

    fn write_agent(&mut self, number: u32, depth: u32) {
        let goal = goal(number);
        self.script.push_str(&format!("  - goal: \"{goal}\"\n    answers:\n"));
        for _ in 0..self.random.u32(0..4) {
            let asks = depth < DEPTH_MAX && self.left > 0 && self.random.u8(..) < 60;
            let wanted = if asks { self.random.u32(1..4).min(self.left) } else { 0 };
            self.left -= wanted;
            self.write_turn(wanted, depth);
        }
        let (delay, usage) = (self.random.u32(0..4), self.usage());
        let text = last_text(&goal);
        self.script.push_str(&format!("      - {{ text: {text}, delay_ms: {delay}, usage: {usage} }}\n"));
        self.script.push_str("    final_summary: { text: so far, usage: { input: 40, output: 3 } }\n");
    }

    /// An answer that spawns this many agents, or calls a tool.
    fn write_turn(&mut self, agents: u32, depth: u32) {
        let (delay, usage) = (self.random.u32(0..4), self.usage());
        let indent = if depth == 0 { "  " } else { "      " };
        self.script.push_str(&format!("{indent}- delay_ms: {delay}\n{indent}  usage: {usage}\n"));
        self.script.push_str(&format!("{indent}  tools:\n"));
        for _ in 0..agents {
            let number = self.next;
            self.next += 1;
            self.unwritten.push((number, depth + 1));
            let (tool, goal) = (self.priority().name(), goal(number));
            self.script.push_str(&format!("{indent}    - {tool}: {{ goal: \"{goal}\" }}\n"));
        }
        if agents == 0 {
            let number = self.random.u32(..);
            self.script.push_str(&format!("{indent}    - act: {{ number: {number} }}\n"));
        }
    }

    fn priority(&mut self) -> Priority {
        *self.random.choice(&Priority::ALL).unwrap()
    }

    /// One in thirty reports more than its reservation.
    fn usage(&mut self) -> String {
        let (input, output) = (self.random.u32(40..150), self.random.u32(5..60));
        let lied = if self.random.u8(..) < 8 { 3_000 } else { 0 };
        format!("{{ input: {input}, output: {} }}", output + lied)
    }
}
