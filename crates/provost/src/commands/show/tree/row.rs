fn agent_row(stem: &str, node: &Node) -> Row {
    let of = |limit: Option<String>| limit.map(|limit| format!("/{limit}")).unwrap_or_default();
    let budget = node.budget;
    Row {
        label: format!("{stem}{}", labelled(node.number(), &one_line(&node.name, NAME_WIDTH))),
        state: state_in_words(&node.state),
        priority: node.priority.map(|priority| priority.to_string()).unwrap_or_default(),
        turns: format!("{}{}", node.turns, of(node.turns_max.map(|max| max.to_string()))),
        tokens: format!("{}{}", tokens(node.tokens), of(budget.tokens.map(tokens))),
        cost: format!("{}{}", money(node.cost), of(budget.money.map(|money| money.to_string()))),
        time: format!("{}{}", duration(node.worked_ms), of(budget.wall_time_ms.map(duration))),
        goal: one_line(&node.goal, GOAL_WIDTH),
        style: style(&node.state),
    }
}

fn money(cost: Option<MicroDollars>) -> String {
    cost.map_or_else(|| "?".to_owned(), |cost| cost.to_string())
}

fn style(state: &State) -> Style {
    let plain = Style::new();
    match state {
        State::Working => plain,
        State::Asks | State::Rests(_) => plain.yellow(),
        State::InLine | State::Yields(_) | State::Furloughed(_) => plain.cyan(),
        State::Done(Outcome::Completed { .. }) => plain.dim(),
        State::Done(_) => plain.red(),
    }
}

/// How an agent stands, in a few words.
pub(super) fn state_in_words(state: &State) -> String {
    let way = |to: &Option<u32>| to.map(|to| format!(" for {to}")).unwrap_or_default();
    match state {
        State::InLine | State::Working | State::Asks => state.word().to_owned(),
        State::Yields(to) => format!("makes way{}", way(to)),
        State::Furloughed(to) => format!("furloughed{}", way(to)),
        State::Rests(outcome) => format!("rests: {}", in_short(outcome)),
        State::Done(Outcome::Completed { verdict: None }) => "done".to_owned(),
        State::Done(Outcome::Completed { verdict: Some(verdict) }) => format!("done, verdict {verdict}"),
        State::Done(outcome) => in_short(outcome),
    }
}

fn in_short(outcome: &Outcome) -> String {
    one_line(&visible(&outcome_in_words(outcome)), REASON_WIDTH)
}

fn sum_row(stem: &str, nodes: &[&Node], branches: Branches) -> Row {
    let in_line = nodes.iter().all(|node| node.state == State::InLine);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in nodes.iter().filter_map(|node| node.state.outcome()) {
        *outcomes.entry(outcome.word()).or_default() += 1;
    }
    let completed = outcomes.get("completed") == Some(&nodes.len());
    let outcomes = outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>();
    let sum = |of: fn(&Node) -> u64| nodes.iter().map(|node| of(node)).fold(0, u64::saturating_add);
    let add = |sum: MicroDollars, node: &&Node| node.cost.map(|cost| sum + cost);
    let cost = nodes.iter().try_fold(MicroDollars(0), add);
    let (what, style) = match (in_line, completed) {
        (true, _) => ("more in line", Style::new().cyan()),
        (false, true) => ("done", Style::new().dim()),
        (false, false) => ("done", Style::new().red()),
    };
    let shown = |text: String| if in_line { String::new() } else { text };
    Row {
        label: format!("{stem}{} {} {what}", branches.more, nodes.len()),
        state: outcomes.join(", "),
        priority: String::new(),
        turns: shown(sum(|node| node.turns.into()).to_string()),
        tokens: shown(tokens(sum(|node| node.tokens))),
        cost: shown(money(cost)),
        time: shown(duration(sum(|node| node.worked_ms))),
        goal: String::new(),
        style,
    }
}

