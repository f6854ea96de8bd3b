"""Reads the public declarations of both clients, with their comments, for the pages of Docs/reference."""
import re

# The declarations of types.ts that apps use; the file also has the types that the client's parts share.
SHARED = ("Options", "Limits", "Bell", "Store", "Connection", "Status", "Refusal", "Event", "Answer", "Item", "Storage",
          "Network", "Lifecycle", "JSONValue", "Row")
STORES = ("badges", "notifications", "conversations", "requests", "shop", "community", "rows")
MODULES = (
    ("bellhop.js", "`connect` makes a bell with every feature.", ("index.ts", "types.ts")),
    ("bellhop.js/features", "The stores of a bell, and their commands.", ("features.ts", *(f"stores/{name}.ts" for name in STORES))),
    ("bellhop.js/offline", "The last state of the stores on the device.", ("offline.ts",)),
    ("bellhop.js/push", "Push messages.", ("push.ts",)),
    ("bellhop.js/react", "A provider and hooks for React 18 and React Native.", ("react.ts",)),
    ("bellhop.js/tanstack", "The bridge to TanStack Query.", ("tanstack.ts",)),
    ("bellhop.js/players", "Players for haptics and sound.", ("players.ts",)),
)
SWIFT = (
    ("The bell", "BellhopClient", ("Bell/Bell.swift", "Bell/Bell+Options.swift", "Bell/Bell+Topics.swift", "Bell/Features.swift")),
    ("Stores and commands", "BellhopClient", ("Bell/Store.swift", "Bell/Store+Commands.swift")),
    ("Calls", "BellhopCalls", ("BellhopClient.swift", "Streams/Tokens.swift", "TokenFailure.swift", "Calls/Pages.swift",
                               "Calls/Problem.swift")),
    ("Streams", "BellhopCalls", ("Streams/BellhopStream.swift",)),
    ("The device", "", ("BellhopClient/Outbox/ClientStorage.swift", "BellhopCalls/Platforms/NetworkMonitor.swift")),
)


def comment_of(lines):
    """Returns the text of a `/** … */` comment."""
    text = "\n".join(lines)
    plain = [re.sub(r"^\s*(/\*\*|\*/|\*(?!\*))?\s?", "", line).replace("*/", "").rstrip() for line in text.split("\n")]
    return "\n".join(plain).strip()


def chunks(text):
    """Yields the top-level declarations of a module: comment and code."""
    comment, code, is_comment = [], [], False
    for line in [*text.split("\n"), "export"]:
        if is_comment:
            comment.append(line)
            is_comment = "*/" not in line
        elif line[:1] in (" ", "}", ")", ">"):
            code.append(line)
        else:
            if code:
                yield comment_of(comment), "\n".join(code).rstrip()
                comment, code = [], []
            if line.startswith("/**"):
                comment, is_comment = [line], "*/" not in line
            elif line.startswith("export"):
                code = [line]
            elif line:
                comment = []


def interface(code):
    """Returns a declaration without the body of a function and without the value of a constant."""
    if code.startswith("export function"):
        return re.split(r" \{\n", code, maxsplit=1)[0] + ";"
    if code.startswith("export const"):
        return re.split(r" = ", code, maxsplit=1)[0] + ";"
    return code


def javascript(folder):
    """Returns the sections of the page on bellhop.js."""
    text = ""
    for module, sentence, files in MODULES:
        text += f"\n## {module}\n\n{sentence}\n"
        for file in files:
            for comment, code in chunks((folder / file).read_text(encoding="utf-8")):
                found = re.match(r"export (?:declare )?(interface|type|function|const|class) (\w+)", code)
                if not found or (file == "types.ts" and found[2] not in SHARED):
                    continue
                name = f"{found[2]}()" if found[1] == "function" else found[2]
                text += f"\n### `{name}`\n\n" + (f"{comment}\n\n" if comment else "")
                text += "```ts\n" + interface(code).removeprefix("export ") + "\n```\n"
    return text


TYPE = re.compile(r"^( *)(?:@\w+ )*(?:public )?(?:final )?(?:class|struct|enum|actor|protocol|extension) ([\w.]+)([^{]*)")
WORDS = {"DJ": "DJ", "VisibleRows": "visible rows"}
ATTRIBUTE = re.compile(r"@\w+(\(.*\))?$")
REQUIREMENT = re.compile(r"^ +(func|var) ")
PUBLIC = re.compile(r"^( *)(?:@\w+ )*public (?:private\(set\) |nonisolated |static |final |convenience )*"
                    r"(func|init|var|let|case|class|struct|enum|actor|protocol|subscript)\b")


def signature(lines, start):
    """Returns a declaration on one line, without its body."""
    text, depth = "", 0
    for line, following in zip(lines[start:start + 12], [*lines[start + 1:], ""]):
        text += " " + line.strip()
        depth += line.count("(") - line.count(")")
        is_continued = line.rstrip().endswith(("->", "<", ",")) or following.strip().startswith(("->", ")"))
        if depth <= 0 and not is_continued:
            break
    text = re.sub(r"\s*\{.*", "", text.strip())
    text = re.sub(r"@(discardableResult|MainActor) |public (private\(set\) )?|nonisolated |final ", "", text)
    text = re.sub(r"\( +", "(", re.sub(r" +\)", ")", text))
    return re.sub(r"^(let|var) ([\w]+) = (.*)$", r"\1 \2", text)


def swift_members(text):
    """Yields the public members of a Swift file: the enclosing type, the signature and the first paragraph of the
    comment."""
    lines, types, comment = text.split("\n"), [], []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("///"):
            comment.append(stripped.removeprefix("///").strip())
            continue
        indent = len(line) - len(line.lstrip())
        while stripped and types and indent <= types[-1][0]:
            types.pop()
        found = TYPE.match(line)
        public = PUBLIC.match(line) or types and types[-1][2] and REQUIREMENT.match(line)
        owner = ".".join(name for _, name, _ in types)
        if public and not found:
            yield owner, signature(lines, number), first_paragraph(comment)
        elif found:
            of = re.match(r" where Machine == (\w+)Machine", found[3])
            name = f"{found[2]} of {WORDS.get(of[1], of[1].lower())}" if of else found[2]
            if public and comment:
                yield ".".join([*([owner] if owner else []), name]), "", first_paragraph(comment)
            types.append((len(found[1]), name, " protocol " in f" {line}" and "public" in line))
        if stripped and not ATTRIBUTE.match(stripped):
            comment = []


def first_paragraph(comment):
    paragraph = []
    for line in comment:
        if not line or line.startswith(("- Parameter", "- Returns", "- Throws", "```")):
            break
        paragraph.append(line)
    return re.sub(r"<doc:(\w+)>", r"the article \1", " ".join(paragraph)).replace("``", "`").replace("|", "\\|")


def swift(folder):
    """Returns the sections of the page on BellhopClient."""
    text = ""
    for title, module, files in SWIFT:
        text += f"\n## {title}\n"
        owners = {}
        for file in files:
            for owner, declaration, comment in swift_members((folder / module / file).read_text(encoding="utf-8")):
                owners.setdefault(owner, []).append((declaration, comment))
        for owner, members in owners.items():
            if not any(declaration for declaration, _ in members):
                continue
            text += f"\n### {owner or 'Functions'}\n\n"
            text += "".join(f"{comment}\n\n" for declaration, comment in members if not declaration and comment)
            text += "| member | meaning |\n|---|---|\n"
            text += "".join(f"| `{declaration}` | {comment} |\n" for declaration, comment in members if declaration)
    return re.sub(r"\n{3,}", "\n\n", text)
