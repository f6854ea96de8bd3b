// Reads the names of the machines of both clients: functions, fields of states, and cases of inputs and actions. The
// sources are read as texts: TypeScript with the parser of the installed `tsc`, Swift by its lines, which swift-format
// lays out.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const tsc = execFileSync("sh", ["-c", "command -v tsc"], { encoding: "utf8" }).trim();
const ts = createRequire(import.meta.url)(path.join(path.dirname(realpathSync(tsc)), "../lib/typescript.js"));

const sources = new URL("../../", import.meta.url);
const read = (name) => readFileSync(new URL(name, sources), "utf8");
const list = (folder) => readdirSync(new URL(folder, sources)).map((name) => `${folder}${name}`).sort();

/** Milliseconds end in `Ms` in TypeScript, as is usual there, and in `Milliseconds` in Swift. A machine begins with
 * `initial` in TypeScript and with `init` in Swift. */
const spelled = (name) => name.replaceAll("Milliseconds", "Ms").replaceAll("milliseconds", "ms")
  .replace(/^init$/, "initial").replace(/-(\w)/g, (_, letter) => letter.toUpperCase());

// MARK: TypeScript

const parsed = (name) => ts.createSourceFile(name, read(name), ts.ScriptTarget.Latest, true);

/** Returns the texts of a discriminating member of a type's union, such as `type` or `do`. */
function discriminants(node, member, aliases) {
  const found = [];
  const visit = (one) => {
    if (ts.isTypeReferenceNode(one) && aliases.has(one.typeName.getText())) visit(aliases.get(one.typeName.getText()));
    if (ts.isPropertySignature(one) && one.name.getText() === member) {
      one.type.forEachChild(function literal(part) {
        if (ts.isStringLiteral(part)) found.push(part.text);
        part.forEachChild(literal);
      });
      return;
    }
    one.forEachChild(visit);
  };
  visit(node);
  return found;
}

/** Returns the commands of each store, and their members as `command.member`. */
function commandsOf(name) {
  const node = parsed(name).statements.find((one) => ts.isInterfaceDeclaration(one) && one.name.text === "Commands");
  return Object.fromEntries(node.members.map((store) => {
    const found = [];
    store.type.forEachChild(function visit(part) {
      if (ts.isTypeLiteralNode(part)) found.push(part);
      else part.forEachChild(visit);
    });
    const all = ts.isTypeLiteralNode(store.type) ? [store.type] : found;
    const commands = all.flatMap((one) => discriminants(one, "type", new Map()).flatMap((command) => {
      const members = one.members.map((member) => member.name.getText()).filter((member) => member !== "type");
      return [command, ...members.map((member) => `${spelled(command)}.${member}`)];
    }));
    return [store.name.getText().replaceAll('"', ""), commands];
  }));
}

/** Returns the fields of an interface that states extend, with those that it extends itself. */
function fieldsOf(name) {
  const node = ["list", "filters"].flatMap((file) => [...parsed(`bellhop.js/machines/${file}.ts`).statements])
    .find((one) => ts.isInterfaceDeclaration(one) && one.name.text === name);
  return node ? [...inherited(node), ...node.members.map((member) => member.name.getText())] : [];
}

/** Returns the fields that a state has from another machine. */
const inherited = (node) =>
  (node.heritageClauses ?? []).flatMap((clause) => clause.types.flatMap((type) => fieldsOf(type.expression.getText())));

/** Returns the names of a TypeScript machine. */
function typescript(name) {
  const functions = [];
  const fields = [];
  for (const node of parsed(name).statements) {
    if (ts.isFunctionDeclaration(node)) functions.push(node.name.text);
    if (ts.isInterfaceDeclaration(node) && ["State", "WrittenState", "FilterState"].includes(node.name.text)) {
      fields.push(...inherited(node), ...node.members.map((member) => member.name.getText()));
    }
    if (ts.isInterfaceDeclaration(node) && node.name.text === "Rules") {
      functions.push(...node.members.filter(ts.isMethodSignature).map((member) => member.name.getText()));
    }
    if (!ts.isVariableStatement(node)) continue;
    for (const { name, initializer } of node.declarationList.declarations) {
      if (initializer && ts.isArrowFunction(initializer)) functions.push(name.text);
      // What a list's store does by hand.
      if (name.text === "rules") functions.push(...initializer.properties.filter((one) =>
        ts.isMethodDeclaration(one) || ts.isArrowFunction(one.initializer ?? one)).map((one) => one.name.getText()));
    }
  }
  return { functions, fields };
}

/** Returns the cases of the TypeScript types that match a pattern, by type. */
function unions(name, pattern, member) {
  const isType = (node) => ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node);
  const nodes = parsed(name).statements.filter(isType);
  const aliases = new Map(nodes.map((node) => [node.name.text, node]));
  const matching = nodes.filter((node) => pattern.test(node.name.text));
  return Object.fromEntries(matching.map((node) => [node.name.text, discriminants(node, member, aliases)]));
}

// MARK: Swift

const modifiers = String.raw`(?:@\w+ |(?:public|package|private|fileprivate|mutating|static|private\(set\)) )*`;

/** Returns the lines of a Swift declaration's body, without the indentation. */
function body(text, head) {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => head.test(line));
  if (first < 0) return [];
  const indent = /^ */.exec(lines[first])[0];
  if (!lines[first].endsWith("{")) return [];
  const last = lines.findIndex((line, index) => index > first && line === `${indent}}`);
  return lines.slice(first + 1, last).map((line) => line.slice(indent.length + 4));
}

/** Returns the cases of a Swift enum that is declared in the text. */
function cases(text, name) {
  return body(text, new RegExp(`^ *${modifiers}enum ${name}\\b`)).flatMap((line) => {
    const found = /^(?:indirect )?case (.*)$/.exec(line);
    if (!found) return [];
    return found[1].replace(/\(.*$/, "").split(", ").map((one) => one.replaceAll("`", ""));
  });
}

/** Returns the cases of a Swift enum, and their labels as `case.label`. */
function commands(text, name) {
  return body(text, new RegExp(`^ *${modifiers}enum ${name}\\b`)).flatMap((line) => {
    const [, command, members] = /^case (\w+)(?:\((.*)\))?$/.exec(line) ?? [];
    if (!command) return [];
    return [command, ...[...(members ?? "").matchAll(/(\w+): /g)].map(([, label]) => `${command}.${label}`)];
  });
}

/** Whether a declaration of a property has a body that computes it. */
const isComputed = (rest) => /^: [^=]*\{/.test(rest);

/** Returns the properties of a Swift type: those that it stores, and those that it computes. */
function properties(text, type) {
  const found = body(text, new RegExp(`^${modifiers}struct ${type}\\b`)).flatMap((line) => {
    const match = new RegExp(`^${modifiers}(?:var|let) (\\w+)(.*)$`).exec(line);
    return match && !/\bstatic\b/.test(line) ? [match.slice(1)] : [];
  });
  const [stored, computed] = [[], []];
  for (const [name, rest] of found) {
    const part = /^(?:: | = )([A-Z]\w+)(?:<[\w.]+>)?(?:\(|$)/.exec(rest)?.[1] ?? "";
    const pattern = new RegExp(`^(?:public |private )?struct ${part}\\b`, "m");
    const isPart = part !== "" && part !== "Loading" && pattern.test(text);
    // A part of the state has a type of its own.
    if (!isPart) (isComputed(rest) ? computed : stored).push(name);
    else {
      const own = properties(text, part);
      // A store uses what it needs of a list.
      (part === "ListMachine" ? computed : stored).push(...own.stored);
      computed.push(...own.computed);
    }
  }
  return { stored, computed };
}

/** Returns the names of a Swift machine, from the text of its files. `encode` and `decode` belong to Swift's coding. */
function swift(text, machine, all) {
  const functions = [...text.matchAll(new RegExp(`^ *${modifiers}(?:func (\\w+)|(init)[(<?])`, "gm"))]
    .map(([, name, initializer]) => name ?? initializer).filter((name) => name !== "encode" && name !== "decode");
  const variables = [...text.matchAll(new RegExp(`^ *${modifiers}var (\\w+)(.*)$`, "gm"))];
  const computed = variables.filter(([, , rest]) => isComputed(rest)).map(([, name]) => name);
  return { functions: [...functions, ...computed], ...properties(all, machine) };
}

/** Returns what the machines of Swift read by its text, such as `body["badges"]`, and commands that are texts. What is a
 * list of texts or an assignment is no read. */
export function readsByText() {
  return [...swiftFiles().values()].flatMap((text) =>
    text.match(/[\w)]\["\w+"\](?! = )|\.command\("[\w-]+"/g) ?? []);
}

// MARK: Both

const pascal = (name) => name.replace(/(?:^|-)(\w)/g, (_, letter) => letter.toUpperCase()).replace(/^Dj/, "DJ");

/** Returns what only one of two lists of names has, and how many both have. A name in `others` may stand in Swift's list,
 * and need not. */
function compare(one, other, others = []) {
  const [first, second, third] = [one, other, others].map((names) => new Set(names.map(spelled)));
  return {
    common: [...first].filter((name) => second.has(name) || third.has(name)).length,
    typescript: [...first].filter((name) => !second.has(name) && !third.has(name)).sort(),
    swift: [...second].filter((name) => !first.has(name)).sort(),
  };
}

/** Returns the Swift files of the machines, by the name of the machine. A file that begins with the name of a machine has a
 * part of its state. */
function swiftFiles() {
  const files = [...list("BellhopCalls/Machines/"), ...list("BellhopClient/Machines/")];
  const names = files.map((file) => path.basename(file, ".swift"));
  const machines = names.filter((name) => name.endsWith("Machine")).map((name) => name.replace(/Machine$/, ""));
  const found = new Map();
  files.forEach((file, index) => {
    const name = names[index].replace(/Machine$/, "");
    const owner = machines.includes(name) ? name : machines.find((one) => name.startsWith(one)) ?? name;
    found.set(owner, `${found.get(owner) ?? ""}${read(file)}`);
  });
  return found;
}

/** Returns the names of both clients, by kind and machine. What TypeScript keeps in a state, Swift may compute. */
export function vocabulary() {
  const names = list("bellhop.js/machines/").map((file) => path.basename(file, ".ts"));
  const files = swiftFiles();
  const inputs = unions("bellhop.js/machines/inputs.ts", /Input$/, "type");
  const actions = unions("bellhop.js/actions.ts", /Action$/, "do");
  const machines = compare(names.map(pascal), [...files.keys()]);
  const found = { files: { machines }, functions: {}, fields: {}, inputs: {}, actions: {}, commands: {} };
  for (const name of names.filter((one) => files.has(pascal(one)))) {
    const text = files.get(pascal(name));
    const one = typescript(`bellhop.js/machines/${name}.ts`);
    const other = swift(text, `${pascal(name)}Machine`, [...files.values()].join("\n"));
    const isField = (property) => one.fields.map(spelled).includes(spelled(property));
    const functions = other.functions.filter((own) => !isField(own) && !other.stored.includes(own));
    found.functions[name] = compare(one.functions, functions);
    found.fields[name] = compare(one.fields, other.stored, other.computed);
    const [input, action] = [cases(text, "Input"), cases(text, "Action")];
    // Inputs of a connection carry its number in Swift.
    const events = cases(text, "TransportEvent");
    if (input.length > 0) found.inputs[name] = compare(inputs[`${pascal(name)}Input`], [...input, ...events]);
    if (action.length > 0) found.actions[name] = compare(actions[`${pascal(name)}Action`], action);
  }
  const shared = files.get("Feature");
  found.inputs.store = compare(inputs.SharedInput, cases(files.get("Inputs"), "FeatureInput"));
  for (const [name, all] of Object.entries(commandsOf("bellhop.js/machines/inputs.ts"))) {
    found.commands[name] = compare(all, commands(files.get(pascal(name)), `${pascal(name)}Command`));
  }
  found.actions.store = compare(actions.StoreAction, cases(shared, "FeatureAction"));
  found.actions.push = compare(actions.MessageAction, cases(files.get("Push"), "PushAction"));
  return found;
}
