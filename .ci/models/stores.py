"""Generates the data of the list stores for both languages from `x-stores`, and checks it against the contract."""
import json

from .swift import Swift
from .texts import NOTE, pascal, quoted

DO = {"upsert", "add", "patch", "patchEach", "remove", "byHand"}


class Store:
    def __init__(self, contract, name, said):
        self.contract, self.name = contract, name
        self.__dict__.update(said)
        self.writes, self.refused = said.get("writes", {}), said.get("refused")
        self.is_ascending, self.order = said["order"][0] == "+", said["order"][1:]
        self.check()

    def fail(self, what):
        raise SystemExit(f"client-models: the store {self.name}: {what}")

    def check(self):
        document = self.contract.document
        members = self.members({"$ref": f"#/components/schemas/{self.item}"})
        for member in (self.key, self.order):
            if member not in members:
                self.fail(f"{self.item} has no {member}")
        events = document["paths"]["/v1/stream"]["get"]["x-events"]
        for event, change in self.events.items():
            if event not in events:
                self.fail(f"no stream has {event}")
            if change["do"] not in DO:
                self.fail(f"{event} does {change['do']}, which is none of {sorted(DO)}")
            for member in [change.get("of"), change.get("by"), change.get("in"), *change.get("set", [])]:
                if member and member not in self.members(events[event]):
                    self.fail(f"{event} has no {member}")
        paths = {self.spelled(path): item for path, item in document["paths"].items()}
        for method, path in [("GET", self.path), *(write["call"].split(" ") for write in self.writes.values())]:
            if method.lower() not in paths.get(self.spelled(path.split("?")[0]), {}):
                self.fail(f"there is no {method} {path}")

    @staticmethod
    def spelled(path):
        """Returns the path with all its parameters alike. `me` names the caller."""
        return "/".join("{}" if part.startswith("{") or part == "me" else part for part in path.split("/"))

    def members(self, schema):
        schema = self.contract.resolved(schema)
        found = dict(schema.get("properties", {}))
        for part in schema.get("allOf", []):
            found |= self.members(part)
        return found


def stores(contract):
    return [Store(contract, name, said) for name, said in contract.document["x-stores"].items()]


def change_in_swift(change):
    named = [f"{name}: {quoted(change[name])}" for name in ("of", "by", "in") if name in change]
    if "set" in change:
        named.append(f"set: [{', '.join(map(quoted, change['set']))}]")
    if "isOnce" in change:
        named.append("isOnce: true")
    return f"ListChange(kind: .{change['do']}{''.join(f', {one}' for one in named)})"


def write_in_swift(write):
    method, path = write["call"].split(" ")
    named = [f"method: {quoted(method)}", f"path: {quoted(path)}", f"name: {quoted(write['as'])}"]
    if write["do"] == "remove":
        named.append("isRemoval: true")
    if "set" in write:
        members = (f"{quoted(name)}: {json.dumps(value)}" for name, value in write["set"].items())
        named.append(f"set: [{', '.join(members)}]")
    if "answer" in write:
        named.append(f"answer: {quoted(write['answer'])}")
    if "members" in write:
        named.append(f"members: [{', '.join(map(quoted, write['members']))}]")
    if "missing" in write:
        named.append("removesMissing: true")
    return f"ListWrite({', '.join(named)})"


def swift_stores(all_stores):
    writer = Swift()
    writer.add(0, f"// {NOTE}", "")
    for store in all_stores:
        item = f"Bellhop.{store.item}"
        writer.add(0, f"/// What the contract says of the list of the store `{store.name}` (`x-stores`).",
                   f"enum {pascal(store.name)}List: ListData {{", "    static let list = ListDescription(")
        writer.add(8, f"name: {quoted(store.__dict__['as'])}, path: {quoted(store.path)}, more: {quoted(store.more)},",
                   f"storedMax: {store.storedMax}, keptMax: {store.keptMax}, isAscending: {json.dumps(store.is_ascending)},")
        if store.refused:
            name, member = store.refused["event"], store.refused.get("id") or store.refused["ids"]
            several = ", areSeveral: true" if "ids" in store.refused else ""
            writer.add(8, f"refused: ListRefusal(event: {quoted(name)}, member: {quoted(member)}{several}),")
        writer.add(8, "events: [")
        for name, change in store.events.items():
            writer.add(12, f"{quoted(name)}: {change_in_swift(change)},")
        if store.writes:
            writer.add(8, "],", "writes: [")
            for name, write in store.writes.items():
                writer.add(12, f"{quoted(name)}: {write_in_swift(write)},")
            writer.add(8, "])")
        else:
            writer.add(8, "], writes: [:])")
        sign = "<" if store.is_ascending else ">"
        writer.add(4, "", f"static func key(_ item: {item}) -> String {{ item.{store.key} }}",
                   f"static func precedes(_ one: {item}, _ other: {item}) -> Bool {{",
                   f"    one.{store.order} {sign} other.{store.order}", "}")
        writer.add(0, "}", "")
    writer.lines.pop()
    return writer.text()


def in_typescript(value):
    """Returns a value on one line: names without quotes where they need none."""
    if isinstance(value, dict):
        names = (name if name.isidentifier() else quoted(name) for name in value)
        return f"{{ {', '.join(f'{name}: {in_typescript(one)}' for name, one in zip(names, value.values()))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_typescript, value))}]"
    return json.dumps(value)


TYPES = """
/** What an event does to a list: `of` is the member with the item or the change, `by` the one with the keys, `set` the
 * members that a patch takes, `in` the one with the name of the store. With `isOnce` the event is not repeated on a page
 * that was fetched meanwhile. */
export interface ListChange {
  do: "upsert" | "add" | "patch" | "patchEach" | "remove" | "byHand";
  of?: string;
  by?: string;
  in?: string;
  set?: string[];
  isOnce?: boolean;
}

/** A write of the user, which shows before it is answered. `answer`: the member of the answer with the item. `members`:
 * those of the answer that change the item. `missing`: what an answer with 404 does. */
export interface ListWrite {
  method: string;
  path: string;
  as: string;
  do: "patch" | "remove";
  set?: Record<string, unknown>;
  answer?: string;
  members?: string[];
  missing?: "remove";
}

/** What the contract says of the list of a store. */
export interface List {
  as: string;
  path: string;
  more: string;
  key: string;
  order: string;
  isAscending?: boolean;
  refused?: { event: string; id?: string; ids?: string };
  storedMax: number;
  keptMax: number;
  events: Record<string, ListChange>;
  writes?: Record<string, ListWrite>;
}
"""


def typescript_stores(all_stores):
    lines = [f"// {NOTE}", *TYPES.rstrip().splitlines()]
    for store in all_stores:
        said = store.__dict__
        lines += ["", f"export const {store.name}: List = {{"]
        head = {name: said[name] for name in ("as", "path", "more", "key", "order", "storedMax", "keptMax")}
        lines += [f"  {name}: {in_typescript(value)}," for name, value in head.items()]
        if store.is_ascending:
            lines.append("  isAscending: true,")
        if store.refused:
            lines.append(f"  refused: {in_typescript(store.refused)},")
        lines += ["  events: {", *(f"    {quoted(name)}: {in_typescript(one)}," for name, one in store.events.items()), "  },"]
        if store.writes:
            lines.append("  writes: {")
            for name, write in store.writes.items():
                method, path = write["call"].split(" ")
                rest = {member: value for member, value in write.items() if member != "call"}
                lines.append(f"    {name}: {in_typescript({'method': method, 'path': path} | rest)},")
            lines.append("  },")
        lines.append("};")
    return "\n".join(lines) + "\n"
