"""The results of the stories as a table."""

import json
import os


def way_of(channel):
    """What follows the channel: `gateway`, `gateway, sandbox`, or nothing."""
    return channel.partition(", ")[2]


class Results:
    """What came of each story, by agent and channel; kept in a file, if there is one."""

    def __init__(self, path):
        self.path = path
        self.kept = {"versions": {}, "came": {}}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.kept = json.load(file)

    def has_version(self, agent, version):
        self.kept["versions"][agent] = version
        self.keep()

    def came(self, plan, failure, seconds):
        """Adds a result of (agent, channel, story)."""
        self.kept["came"]["/".join(plan)] = {"failure": failure, "seconds": round(seconds)}
        self.keep()

    def keep(self):
        if self.path:
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.kept, file, indent=1, sort_keys=True)

    def table(self, stories):
        """The tables in Markdown, one for each way (past the gateway, through it, in the sandbox)."""
        notes, tables = [], []
        plans = [tuple(key.split("/")) for key in self.kept["came"]]
        for way in sorted({way_of(channel) for _, channel, _ in plans}):
            of_way = [plan for plan in plans if way_of(plan[1]) == way]
            tables.append("\n".join(self.rows(stories, of_way, notes)))
        if notes:
            tables.append("\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1)))
        return "\n\n".join(tables) + "\n"

    def rows(self, stories, plans, notes):
        """A row for each story, a column for each agent and channel."""
        columns = sorted({plan[:2] for plan in plans})
        versions = self.kept["versions"]
        heads = [f"{agent} {versions.get(agent, '')}, {channel}" for agent, channel in columns]
        yield "| story | " + " | ".join(heads) + " |"
        yield "|---" * (len(heads) + 1) + "|"
        told = {plan[2] for plan in plans}
        for name, story in stories.items():
            if name in told:
                cells = [self.cell((*column, name), notes) for column in columns]
                yield f"| {name}: {story.__doc__.strip().splitlines()[0]} | " + " | ".join(cells) + " |"

    def cell(self, plan, notes):
        came = self.kept["came"].get("/".join(plan))
        if came is None:
            return "–"
        if came["failure"] is None:
            return f"yes, {came['seconds']} s"
        notes.append(f"{', '.join(plan)}: {came['failure'].splitlines()[0][:200]}")
        return f"**no** ({len(notes)})"
