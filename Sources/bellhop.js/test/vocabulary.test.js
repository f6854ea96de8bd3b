// Both clients use the same names. The differences are listed here, each with its reason; an entry without a difference
// fails too.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readsByText, vocabulary } from "./vocabulary.js";

/** By reason: `kind machine language: names`. */
const differences = {
  "A function returns the new state in TypeScript. In Swift, `receive` changes the state in place.": [
    "functions filters typescript: updated",
    "functions booking typescript: fields restore",
    "functions connection typescript: again filtered isShared lost ready subscribed topics",
    "functions conversation typescript: settle pagePath",
    "functions conversations typescript: fetchOne replaced restore own take",
    "functions counts typescript: only",
    "functions dj typescript: handle put session",
    "functions feed typescript: follow followed has own restore counted",
    "functions invalidation typescript: own timer",
    "functions leaderboard typescript: mine",
    "functions notifications typescript: newest own countMax take",
    "functions offline typescript: changed flush sized timer",
    "functions outbox typescript: mark",
    "functions push typescript: closed message remove",
    "functions queue typescript: restore",
    "functions list typescript: handle countMax",
    "functions requests typescript: own restore",
    "functions rows typescript: apply own",
    "functions tables typescript: isTaken timer",
    "functions visible-rows typescript: changing fresh own update",
  ],
  "`receive` hands a part of its work to a function in Swift, which TypeScript does in place.": [
    "functions booking swift: answered change handle take",
    "functions connection swift: expect handle omitTopic",
    "functions conversations swift: change handleLocal",
    "functions dj swift: merge showPending withdraw",
    "functions feed swift: advance asked isIn",
    "functions invalidation swift: becomeStale closeWindows note refetchEvent staleEvent watch",
    "functions offline swift: write",
    "functions push swift: apply command perform registeredPath",
    "functions requests swift: command show",
    "functions tables swift: refuse",
    "functions visible-rows swift: take",
  ],
  "A property is computed in Swift, or belongs to a type of its own. TypeScript has it as a member of an object.": [
    "functions booking swift: held path plan",
    "functions conversations swift: id preview",
    "functions counts swift: adjusted stateVersion",
    "functions dj swift: downvotes score share upvotes",
    "functions loading swift: badges isFetched problem refusal",
    "functions notifications swift: isFetch apply",
    "functions push swift: actions isLasting",
    "functions rows swift: name",
    "functions session swift: belongs",
    "functions tables swift: id",
    "fields booking swift: isPending",
    "fields leaderboard swift: ownVersion",
  ],
  "Swift decodes JSON into types, and compares texts as Unicode. TypeScript reads members, and has UTF-16.": [
    "functions counts typescript: isBadges",
    "functions filters swift: engagement id key",
    "functions dj typescript: compare",
    "functions dj swift: precedes",
    "functions invalidation typescript: isPrefix",
    "functions list typescript: key",
    "functions loading typescript: problemOf",
    "functions loading swift: items model page placedProblem",
    "functions push swift: of parsed",
    "functions tables typescript: isSame",
    "functions visible-rows typescript: bytesOf",
    "functions visible-rows swift: name",
    "fields booking swift: early",
    "fields rows swift: isLoaded",
  ],
  "Swift gives the machine the queued writes of an earlier start. bellhop.js repeats the command.": [
    "functions conversation swift: wait",
    "functions conversations swift: wait",
    "functions dj swift: wait",
    "functions feed swift: wait",
    "functions notifications swift: wait",
    "functions outbox swift: answerName createdAt match",
    "functions list swift: wait",
    "inputs store swift: waiting",
  ],
  "A machine that begins anew for another user is a copy in Swift.": [
    "functions filters swift: forAnotherUser",
    "functions feed swift: forAnotherUser",
    "functions loading swift: begin forAnotherUser initial noteAccepted refresh replaces restore",
    "functions loading typescript: beginAnew restored",
  ],
  "Constants are static in Swift, or stand in `limits`. In TypeScript those that vectors set stand in the state.": [
    "fields invalidation typescript: staleMs windowMs",
    "fields token swift: limits",
  ],
  "The refusal of a topic belongs to `WatchedTopic` in Swift, and what the service sent to `DJQueueState`.": [
    "fields dj typescript: refusal stored",
    "fields leaderboard typescript: refusal",
    "fields queue typescript: refusal",
  ],
  "Apps read the properties of a ConnectionMachine in Swift. The outbox shares the delay in TypeScript.": [
    "functions connection typescript: backoff snapshot unconnected",
  ],
  "Lists and filters are values in Swift, with methods of their own.": [
    "functions filters swift: initial lifecycle update",
    "functions list swift: applySince confirmSettled find initial kept list merge newName plan remove",
    "functions loading swift: sinceCount",
    "fields list swift: path rules countMax",
  ],
  "A Swift enum has functions of its own.": [
    "functions inputs swift: initial restored",
  ],
  "Swift has one input for what a connection sends, and one for the commands of a store.": [
    "inputs connection swift: from",
    "inputs store swift: command",
  ],
  "A platform of Apple gives no reason for its refusal.": [
    "commands push typescript: status.problem",
  ],
  "Only pages have tabs, and all machines of bellhop.js get the same events.": [
    "inputs reconciliation typescript: event refresh",
    "inputs store typescript: tabSwitch",
  ],
  "Swift filters the events of tables by a function; vectors drive it in TypeScript as an input.": [
    "inputs tables typescript: seen",
    "actions tables typescript: seen",
  ],
  "The machine of push messages is a store in Swift, and so it has the store's actions.": [
    "actions store swift: push",
  ],
  "Swift has `==`, inputs beside their machines, and versions and topics in Loading.swift. Tokens stand with streams.": [
    "files machines typescript: Digest Identity Same Version Watching",
    "files machines swift: Feature JSON+Members",
  ],
};

/** Returns `kind machine language: name` for each difference. */
function found() {
  return Object.entries(vocabulary()).flatMap(([kind, machines]) =>
    Object.entries(machines).flatMap(([machine, names]) => ["typescript", "swift"].flatMap((language) =>
      names[language].map((name) => `${kind} ${machine} ${language}: ${name}`))));
}

/** Returns the number of names that both clients have, by kind. */
function common() {
  return Object.fromEntries(Object.entries(vocabulary()).map(([kind, machines]) =>
    [kind, Object.values(machines).reduce((sum, names) => sum + names.common, 0)]));
}

test("the machines of both clients have the same names, but for the listed ones", () => {
  const listed = Object.values(differences).flat().flatMap((line) => {
    const [place, names] = line.split(": ");
    return names.split(" ").map((name) => `${place}: ${name}`);
  });
  const all = found();
  assert.deepEqual(all.filter((one) => !listed.includes(one)), [], "not listed");
  assert.deepEqual(listed.filter((one) => !all.includes(one)), [], "listed, but no difference");
  assert.equal(new Set(listed).size, listed.length, "listed twice");
});

test("the comparison finds the names of both clients", (context) => {
  const counts = common();
  context.diagnostic(`names in common: ${JSON.stringify(counts)}`);
  const least = { files: 24, functions: 225, fields: 240, inputs: 62, actions: 37, commands: 75 };
  for (const [kind, count] of Object.entries(least)) assert.ok(counts[kind] >= count, `${kind}: ${counts[kind]}`);
});

test("the machines of Swift read members as types, and few by their texts", (context) => {
  context.diagnostic(`reads by text: ${readsByText().join("; ")}`);
  assert.ok(readsByText().length <= 10);
});
