/// Who stands below whom.
struct Forest<'a> {
    drawing: Drawing,
    below: BTreeMap<Option<u32>, Vec<&'a Node>>,
}

impl<'a> Forest<'a> {
    fn of(nodes: &'a [Node], drawing: Drawing) -> Self {
        let mut below: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for node in nodes {
            below.entry(node.parent).or_default().push(node);
        }
        Self { drawing, below }
    }

    fn children(&self, of: Option<u32>) -> &[&'a Node] {
        self.below.get(&of).map_or(&[], Vec::as_slice)
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        // A tree may be deeper than the stack; what is to be drawn next is on top.
        let mut open = self.shown(None, &[]);
        while let Some(Shown { guides, place, what }) = open.pop() {
            let branch = match place {
                Place::Top => "",
                Place::Last => self.drawing.branches.last,
                Place::Amid => self.drawing.branches.fork,
            };
            let stem = self.stem(&guides, branch);
            match what {
                What::Agent(node) => {
                    rows.push(agent_row(&stem, node));
                    let mut below = guides;
                    match place {
                        Place::Top => {}
                        Place::Last => below.push(false),
                        Place::Amid => below.push(true),
                    }
                    open.extend(self.shown(Some(node.number()), &below));
                }
                What::Sum(nodes) => rows.push(sum_row(&stem, &nodes, self.drawing.branches)),
            }
        }
        rows
    }

    /// The lines that lead down to a row, and its own branch.
    fn stem(&self, guides: &[bool], branch: &str) -> String {
        let Branches { through, more, .. } = self.drawing.branches;
        let left_out = guides.len().saturating_sub(LEVELS_MAX);
        let start = if left_out > 0 { more } else { "" };
        let lines = guides.iter().skip(left_out).map(|goes_on| if *goes_on { through } else { "  " });
        format!("{start}{}{branch}", lines.collect::<String>())
    }

    /// What is drawn directly below an agent, the last first.
    fn shown(&self, of: Option<u32>, guides: &[bool]) -> Vec<Shown<'a>> {
        let children = self.children(of);
        let sums_up = self.drawing.extent == Extent::SummedUp;
        let sums_done = sums_up && children.iter().filter(|node| self.is_over(node)).count() > DONE_MAX;
        let in_line = children.iter().filter(|node| node.state == State::InLine).count();
        let mut room_in_line = if sums_up && in_line > IN_LINE_MAX { IN_LINE_MAX - 1 } else { usize::MAX };
        let (mut all, mut later, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for node in children {
            if node.state == State::InLine {
                match room_in_line.checked_sub(1) {
                    Some(left) => {
                        room_in_line = left;
                        all.push(What::Agent(node));
                    }
                    None => later.push(*node),
                }
            } else if sums_done && self.is_over(node) {
                done.push(*node);
            } else {
                all.push(What::Agent(node));
            }
        }
        all.extend([later, done].into_iter().filter(|sum| !sum.is_empty()).map(What::Sum));
        let last = all.len().saturating_sub(1);
        let place = |at: usize| match of {
            None => Place::Top,
            Some(_) if at == last => Place::Last,
            Some(_) => Place::Amid,
        };
        let shown = all.into_iter().enumerate();
        let shown = shown.map(|(at, what)| Shown { guides: guides.to_vec(), place: place(at), what });
        let mut shown = shown.collect::<Vec<_>>();
        shown.reverse();
        shown
    }

    /// Whether its work is over, and that of those who worked for it.
    fn is_over(&self, node: &Node) -> bool {
        node.is_done() && self.children(Some(node.number())).iter().all(|below| below.is_done())
    }
}

/// A row to be drawn.
struct Shown<'a> {
    /// Whether the line of each level above goes on below this row.
    guides: Vec<bool>,
    place: Place,
    what: What<'a>,
}

/// Where a row stands among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nobody is above it.
    Top,
    Amid,
    Last,
}

enum What<'a> {
    Agent(&'a Node),
    /// Several, in one row.
    Sum(Vec<&'a Node>),
}

