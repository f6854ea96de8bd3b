"""Generates the TypeScript side: the types of bellhop.js/models."""
from .contract import Model, Type
from .texts import NOTE, Writer, paragraphs, quoted

OWN_EVENTS = """
/**
 * The events that your app publishes, by their names, with their data. Empty, it allows every name that is not one of
 * Bellhop's, with unknown data. Declare your events to have both checked:
 *
 *     declare module "bellhop.js/models" {
 *       interface OwnEvents {
 *         "order:ready": { orderId: string };
 *       }
 *     }
 */
export interface OwnEvents {}
"""
# Maps the path of a call to the path of the contract.
PATHS = """
type Steps<Path extends string> = Path extends `${infer Step}/${infer Rest}` ? [Step, ...Steps<Rest>] : [Path];
type WithoutQuery<Path extends string> = Path extends `${infer Bare}?${string}` ? Bare : Path;
type Fits<Given, Known> = Given extends [infer Step, ...infer Rest]
  ? Known extends [infer Place, ...infer Places]
    ? Place extends `{${string}}`
      ? Fits<Rest, Places>
      : Step extends Place
      ? Fits<Rest, Places>
      : false
    : false
  : Known extends []
  ? true
  : false;

/** What the contract says of a call, `OperationOf<"GET", "/v1/shops/s1/queue">`, or never. */
export type OperationOf<Method extends string, Path extends string> = {
  [Name in keyof Operations]: Name extends `${Method} ${infer Known}`
    ? Fits<Steps<WithoutQuery<Path>>, Steps<Known>> extends true
      ? Operations[Name]
      : never
    : never;
}[keyof Operations];

/** The body of an answer that is no refusal. */
export type AnswerTo<Method extends string, Path extends string> = OperationOf<Method, Path>["answer"];

/** The body that a call is given. It has only words that this version of the contract knows. */
export type BodyOf<Method extends string, Path extends string> = Exact<OperationOf<Method, Path>["body"]>;

// `string` and Word are assignable to each other, so only this comparison tells them apart.
type IsWord<Given> = (<T>() => T extends Given ? 1 : 2) extends <T>() => T extends Word ? 1 : 2 ? true : false;
type Exact<Given> = Given extends string
  ? IsWord<Given> extends true
    ? never
    : Given
  : Given extends (infer Item)[]
  ? Exact<Item>[]
  : Given extends object
  ? { [Name in keyof Given]: Exact<Given[Name]> }
  : Given;

/** An event of a stream with its data read; `id` is where to resume. */
export type StreamEvent = { [Name in keyof Events]: { name: Name; data: Events[Name]; id: string } }[keyof Events];
"""


class TypeScript(Writer):
    def doc(self, indent, text):
        lines = paragraphs((text or "").replace("*/", "* /"), 114 - indent)
        if len(lines) == 1:
            self.add(indent, f"/** {lines[0]} */")
        elif lines:
            self.add(indent, "/**", *[f" * {line}" for line in lines], " */")

    def model(self, model):
        name = model.path.replace(".", "")
        if model.kind == "words":
            if model.path == model.name:
                self.doc(0, model.doc)
                self.union(f"export type {name} =", [quoted(value) for value in model.values] + ["Word"])
                self.add(0, "")
            return
        self.doc(0, model.doc)
        if model.kind == "choice":
            self.union(f"export type {name} =", [variant[2] for variant in model.variants])
        else:
            self.add(0, f"export interface {name} {{")
            for field in model.fields:
                self.doc(2, field.doc)
                mark = "" if field.required else "?"
                self.member(f"  {field.name}{mark}:", field.type.in_typescript)
            self.add(0, "}")
        self.add(0, "")
        for nested in model.nested:
            self.model(nested)

    def member(self, head, type):
        if len(head) + len(type) < 118 or "(" in type:
            self.add(0, f"{head} {type};")
        else:
            self.union(head, type.split(" | "))

    def union(self, head, options):
        """Formats a union on one line, or on several if it is long."""
        line = f"{head} {' | '.join(options)};"
        if len(line) <= 120:
            return self.add(0, line)
        indent = len(head) - len(head.lstrip()) + 2
        self.add(0, head)
        line = ""
        for option in options:
            if len(line) + len(option) > 112 - indent:
                self.add(indent, line)
                line = ""
            line += f"{' ' if line else ''}| {option}"
        self.add(indent, line + ";")


def typescript(contract, operations, events):
    writer = TypeScript()
    writer.add(0, f"// {NOTE}", "",
               "/** A word that only a newer service knows. */",
               "export type Word = string & Record<never, never>;", "",
               "/** A page of a list; `next` is the cursor of the next one. */",
               "export interface Page<Item> {", "  items: Item[];", "  next: string | null;", "}", "")
    for model in contract.models.values():
        writer.model(model)
    codes = contract.components["schemas"]["Problem"]["x-codes"]
    contract.type({"$ref": "#/components/schemas/Problem"}, "")
    problem = Model("object", "Problem", "Problem", "What a refusal says (RFC 9457).")
    schema = dict(contract.components["schemas"]["Problem"])
    problem.fields = contract.fields(schema, problem)
    for field in problem.fields:
        if field.name == "code":
            field.type = Type("", "ProblemCode")
    writer.model(problem)
    writer.union("export type ProblemCode =", [quoted(code) for code in sorted(codes)] + ["Word"])
    writer.add(0, "", "/** The events of a stream, by their names, with their data. */", "export interface Events {")
    for name, type in events:
        writer.add(2, f"{quoted(name)}: {type.in_typescript};")
    writer.add(0, "}", "", *OWN_EVENTS.strip().splitlines(), "", "/** All calls by method and path: what each is given, and its answer and status if it succeeds. */",
               "export interface Operations {")
    for operation in operations:
        if operation.is_stream:
            continue
        writer.doc(2, operation.summary)
        writer.add(2, f"{quoted(f'{operation.method} {operation.path}')}: {{")
        query = []
        for parameter, type in operation.parameters:
            if parameter["in"] == "query":
                mark = "" if parameter.get("required") else "?"
                query.append(f"{parameter['name']}{mark}: {type.in_typescript}")
        line = f"query: {{ {'; '.join(query)} }};" if query else "query: {};"
        if len(line) <= 116:
            writer.add(4, line)
        else:
            writer.add(4, "query: {", *[f"  {member};" for member in query], "};")
        body = operation.body
        writer.add(4, f"body: {body.typescript + (' | undefined' if body.nullable else '') if body else 'undefined'};")
        writer.add(4, f"status: {' | '.join(operation.statuses)};")
        answer = [operation.answer.typescript] if operation.answer else []
        writer.add(4, f"answer: {' | '.join(answer + (['undefined'] if operation.may_be_empty else []))};")
        writer.add(2, "};")
    writer.add(0, "}", "")
    writer.add(0, *PATHS.strip().splitlines())
    return writer.text()
