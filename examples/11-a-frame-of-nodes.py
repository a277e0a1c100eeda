"""For a notebook: rows in, a table and a picture out.  `placed` alone in a cell shows both."""

from kubesched.notebook import place


class FastDisks:
    def score(self, cycle, pod, node):
        return {"nvme": 100, "ssd": 60}.get(node.labels.get("disk"), 0)


nodes = [
    {"name": "n1", "cpu": 4, "label.disk": "nvme"},
    {"name": "n2", "cpu": 8, "label.disk": "ssd"},
    {"name": "n3", "cpu": 8},
]
placed = place(nodes, [{"name": "web", "cpu": 1}, {"name": "db", "cpu": 2}], FastDisks())

print(placed)
for row in placed.table("db"):
    print(row)
print(placed._repr_html_()[:60], "…")
