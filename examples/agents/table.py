"""The results of the stories as a table."""

import json
import os


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
        """The table in Markdown: a row for each story, a column for each agent and channel."""
        columns = sorted({tuple(key.split("/")[:2]) for key in self.kept["came"]})
        versions = self.kept["versions"]
        heads = [f"{agent} {versions.get(agent, '')}, {channel}" for agent, channel in columns]
        lines = ["| story | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        notes = []
        told = {key.split("/")[2] for key in self.kept["came"]}
        for name, story in stories.items():
            if name not in told:
                continue
            cells = [self.cell((*column, name), notes) for column in columns]
            lines.append(f"| {name}: {story.__doc__.strip().splitlines()[0]} | " + " | ".join(cells) + " |")
        lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))] if notes else []
        return "\n".join(lines) + "\n"

    def cell(self, plan, notes):
        came = self.kept["came"].get("/".join(plan))
        if came is None:
            return "–"
        if came["failure"] is None:
            return f"yes, {came['seconds']} s"
        notes.append(f"{', '.join(plan)}: {came['failure'].splitlines()[0][:200]}")
        return f"**no** ({len(notes)})"
