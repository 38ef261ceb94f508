"""A day in the life of a Python program: parse, build objects, sort, format, throw away."""
import json
import re
import sys


class Item:
    def __init__(self, number, name, tags):
        self.number = number
        self.name = name
        self.tags = tags


def build(count):
    return [Item(i, "name %d" % (i * 7919 % count), ["t%d" % (i % k) for k in (3, 5, 7)]) for i in range(count)]


def main():
    rounds = int(sys.argv[1])
    total = 0
    for number in range(rounds):
        items = build(3000)
        text = json.dumps([{"number": i.number, "name": i.name, "tags": i.tags} for i in items])
        back = json.loads(text)
        words = re.findall(r"[a-z]+ \d+", text)
        index = {}
        for entry in back:
            index.setdefault(entry["tags"][number % 3], []).append(entry["name"])
        items.sort(key=lambda item: (item.name, item.number))
        total += sum(len(" ".join(names).split()) for names in index.values()) + len(words) + len(set(words))
    print(total)


main()
