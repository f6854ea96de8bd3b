"""Defects that are planted in the code, one after the other, to see that a test finds each of them: a simulation, an
example, or the judge of what leaves the service (Tests/exits/judge.py)."""

import dataclasses

REPLICAS = "ReplicaSimulationTests/streamsGetEveryEntryOnce_orAreToldOfTheGap_underAnySchedule"
REPLAY = "SubscriptionTests/everyInterleaving_losesNothing_andDoublesNothing"
SOURCE = "SourceSimulationTests/everyRowArrivesOnce_orTheSnapshotRestarts_underAnySchedule"
HUB = "HubTests/eventsReachTheStreamsThatMaySeeThem_underAnySchedule"
ROWS = "SubscriptionIndexTests/changesMatchTheirSubscriptions_underAnySchedule"
OUTBOX = "OutboxSimulationTests/receiversShowWhatIsUnseen_andTheTotal_underAnySchedule"
ROUTER = "EventRouterSimulationTests/streamsGetWhatTheirScopesAndSubscriptionsAllow_onceAndInOrder_underAnySchedule"
REQUESTS = "ReplicaRequestsSimulationTests/requestsAreAnsweredOnce_andNotPerformedAfterAFailure_underAnySchedule"
ROUNDS = "ErasureRoundTests"
SOURCES = "SourceCatalogTests"
SHARES = "SubscriptionShareTests/replacedSubscriptions_succeed_whenAllWorkersAreBusy"
# Suites whose service sends the exits that the judge reads.
EXITS = "WebhooksTests"

SEEDS = {
    "the end of an earlier attempt sends the withdrawal": 16_000,
    "a stream that resumes after a gap of its replica misses events": 1_300,
    "events of topics are lost when the log is read again": 600,
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A defect. `place` occurs once in the file, and its part between « and » is replaced by `after`."""

    file: str
    place: str
    after: str
    meaning: str
    simulation: str
    is_sql: bool = False
    is_exit: bool = False
    """Whether the judge finds it in what left the service, and not the tests themselves."""

    @property
    def seed(self):
        """The first seed of the search. Some defects need a rare order of many events."""
        return SEEDS.get(self.meaning, 1)

    @property
    def before(self):
        return self.place[self.place.index("«") + 1:self.place.index("»")]

    @property
    def text(self):
        return self.place.replace("«", "").replace("»", "")


def of(file, simulation, *mutants, is_sql=False, is_exit=False):
    return [Mutant(f"Sources/{file}", place, after, meaning, simulation, is_sql, is_exit) for place, after, meaning in mutants]


MUTANTS = [
    *of(
        "Realtime/LogFollower.swift", REPLICAS,
        ("guard «term == self.term», !isOld", "true", "entries of before a failover are published"),
        ("let first = entries.first, «first.sequence == head + 1»", "first.sequence >= head + 1",
         "own entries are published before entries of other replicas between them"),
        ("if «state.isMoved» {", "false", "another timeline is not noticed"),
        ("if «state.epoch != epoch» {", "false", "a new epoch is not adopted"),
        ("«term += 1»", "term += 0", "entries that were appended before the failover count as safe"),
        ("read from the log.\n        «waiting = [:]»", "_ = waiting", "entries that wait survive the failover"),
        ("«head = sequence»\n        (last", "head = max(head, sequence)", "a replica goes on after entries that were lost"),
        ("next.last(where: «\\.isErased»)", "{ _ in false }", "a replica that was behind passes over erased entries"),
        ("{ «now - caughtUpAt > Self.memoryMax» }", "false", "a replica that was suspended publishes an erased entry"),
        ("guard «now - request.askedAt <= Self.memoryMax» else", "true", "an answer of before the suspension is used"),
        ("outcome.isCaughtUp = true\n            caughtUpAt = max(caughtUpAt, «request.askedAt»)", "now",
         "a late answer counts as a new one"),
    ),
    *of(
        "Realtime/StreamReplay.swift", REPLAY,
        ("guard «sequence > floor» else", "sequence >= floor", "the last replayed event is sent again"),
        ("if «position > floor» {", "false", "a client that is ahead of its shard gets events twice"),
        ("queue.removeAll { «$0.sequence <= position» }", "$0.sequence < position",
         "the event at the client's position is sent again"),
        ("phase == .replaying, «!isReading» else { return [] }\n        return advance()", "true",
         "the stream goes live while it reads the log"),
        ("[.send(chunk, collapse: 0)] + «(chunks.isEmpty ? finish() : [])»", "finish()",
         "waiting events overtake the rest of the replay"),
        ("let after = floor\n        «floor = missed»", "_ = missed", "events are read from the log and sent live"),
        ("guard missedThrough == nil else {\n            «missedThrough = item.sequence»", "_ = item.sequence",
         "events after a full queue are lost"),
        ("queueBytes > StreamReplay.queueBytesMax else { return }\n        «queue = []»", "_ = queue",
         "events of a full queue are sent and read again"),
        (".load(after: «after», through", "after + 1", "the first missed event is not read"),
        ("phase = .replaying\n        «isReading = false»", "isReading = true", "a stream waits for ever"),
    ),
    *of(
        "Rows/Source/SourceContinuity.swift", SOURCE,
        ("{ «stored == description» }", "stored.hasPrefix(log)", "another timeline counts as the same log"),
        ("if «lsn > end» {", "false", "a log that ends before the position counts as complete"),
        ("let confirmed = slot.confirmed, «confirmed <= lsn»", "confirmed.rawValue <= lsn.rawValue + 2",
         "a slot that begins after the position counts as complete"),
        ("} else if «!wasPublished» {", "false", "rows that were not published count as read"),
    ),
    *of(
        "Rows/Source/SourcePublication.swift", SOURCE,
        ("earlier.entries[table].map { «$0 == entry» }", "$0.count == entry.count",
         "an entry with another number counts as the same"),
    ),
    *of(
        "Realtime/Hub.swift", HUB,
        ("guard «keys[Int(key)].audienceStamp != stamp» else", "true", "a stream has a key twice"),
        ("guard «streams[Int(slot)].visitStamp != stamp» else", "true", "an event for two keys of a stream arrives twice"),
        ("where «keys[Int(streams[Int(slot)].entries[index].key)].audienceStamp == stamp»",
         "keys[Int(streams[Int(slot)].entries[index].key)].audienceStamp + 2 > stamp",
         "a topic shows events for the audience of an earlier event"),
        ("for text in topics { add(slot, Route(tenant: tenant, isTopic: «true», text: text), to: &entries) }", "false",
         "a topic counts as a key of the scope"),
        ("at: count)\n        «streams[Int(slot)].scopeCount += 1»", "_ = count", "a key that is added counts as a topic"),
        ("remove(at: index)\n        «streams[Int(slot)].scopeCount -= 1»", "_ = index",
         "after a key was removed, a topic counts as a key"),
        ("let topics = «topics(of: slot)»", "[String]()", "a new scope removes the topics"),
        ("for entry in scope { «self.keys[Int(entry.key)].audienceStamp = stamp» }", "_ = entry", "a key that is granted again is there twice"),
        ("«streams[Int(slot)].scopeCount = Int32(entries.count)»\n        streams[Int(slot)].entries = entries + topics", "()",
         "keys that are granted count as topics"),
        ("guard «tenants[Int(number)]!.streamCount == 0» else { return }", "tenants[Int(number)]!.streamCount <= 1",
         "the last but one stream of a tenant takes the tenant along"),
        ("«tenantNumbers[tenants[Int(number)]!.id] = nil»\n        tenants",
         "_ = tenantNumbers", "a tenant gets the events of another that has left"),
        ("if keys[key].streams.isEmpty {\n            «keyNumbers[keys[key].route] = nil»", "_ = keyNumbers",
         "a key without streams leads to the streams of another key"),
        ("«streams[Int(moved)].entries[index].place = entry.place»", "_ = index", "a stream that moved is removed in place of another"),
    ),
    *of(
        "Rows/Filters/SubscriptionIndex.swift", ROWS,
        ("guard let old, «!(new.map(old.isSame) ?? false)» else", "new == nil", "the old value of a changed column is not looked up"),
        ("guard «entries[Int(candidate)].visitStamp != stamp» else", "true", "a filter that both rows find matches twice"),
        ("if «!isSorted» { matches.sort", "false", "the matches of a stream are not in order"),
        ("«candidates += tables[Int(table)].unfiltered»", "_ = candidates", "subscriptions without a filter get nothing"),
        ("«candidates += tables[Int(table)].scanned»", "_ = candidates", "filters that no value finds get nothing"),
        ("guard «events.contains(change.event)» else", "true", "a subscription to inserts gets deletes"),
        ("guard «matches.old || matches.new» else", "matches.new", "a row that leaves a filter is not reported"),
    ),
    *of(
        "Service/Streams/ReplicaRequests.swift", REQUESTS,
        ("if «(error as? DatabaseError)?.code != .undecided» {", "true", "a request that may be stored is reported as failed"),
        ("waiting.withLock { «$0.removeValue(forKey: id)» }", "$0[id]", "a request is answered twice"),
        ("defer { «events = []» }", "_ = events", "a replica performs a request again"),
        ("let stream = members.string(\"stream\"), «directory.contains(stream)»,\n            let asker", "true",
         "a replica answers for the stream of another"),
        ("as: asker, kind, until: «until») { result in", "nil", "a request is performed after it was reported as failed"),
        ("waiting.withLock { $0.filter { «$0.value.until <= now» }", "false", "the requests of a replica that is gone wait for ever"),
    ),
    *of(
        "Service/Streams/StreamHub+Messages.swift", REQUESTS,
        ("sessions[place.slot]?.isEnding == false,\n            «place == StreamNames.Location(handles[place.slot])»", "true",
         "a request about a stream that has ended reaches the next one in its place"),
        ("«session.caller.userId == request.asker.userId»", "true", "a user asks about the stream of another"),
        ("if let until = request.until, «dependencies.now >= until» {", "dependencies.now.microseconds >= until.microseconds + 2_000_000",
         "a shard performs a request that is a little late"),
    ),
    *of(
        "Service/Streams/EventRouter.swift", ROUTER,
        ("rest.prefix { «!$0.event.isInternal» }", "true", "scopes do not follow the log"),
        ("return pieces + «[piece]»", "[]", "the last piece of a batch is lost"),
    ),
    *of(
        "Service/Streams/StreamHub.swift", ROUTER,
        ("opener.renewed(for: «scoped(opener.caller)»)", "opener.caller",
         "a stream opens without its memberships"),
        ("let (head, lastEventID) = («head», opener.lastEventID)", "max(0, head - 1)", "the newest event is missing from the replay"),
    ),
    *of(
        "Service/Streams/StreamHub+Scopes.swift", ROUTER,
        ("if change.isGranted {\n                «hub.add(change.key, toScopeOf: slot)»", "()", "a granted key does not reach open streams"),
        ("«hub.add(keys, toScopeOf: slot)»", "()", "granted keys show no live events"),
        ("for key in lost { «hub.remove(key, fromScopeOf: slot)» }", "()", "a key that a token has lost stays"),
        ("dependencies.memberships.scoped(caller, by: «memberships»)", "dependencies.memberships.known",
         "scopes follow memberships that are later in the log than the events"),
    ),
    *of(
        "Service/Streams/StreamHub+Messages.swift", ROUTER,
        (".restart(let head, let ids, let memberships):\n            «self.head = head»", "_ = head",
         "a stream that resumes after a gap of its replica misses events"),
        ("caller: session.caller, topics: «hub.topics(of: slot)»,\n            tables", "[]",
         "events of topics are lost when the log is read again"),
    ),
    *of(
        "Service/Streams/StreamHub+Rows.swift", ROUTER,
        ("let caller = «scoped(session.caller)»", "session.caller",
         "open streams do not gain or lose memberships"),
    ),
    *of(
        "Service/Streams/StreamReader.swift", ROUTER,
        ("EventRoutes(keys: «keys», topics: topics +", "caller.scope.keys", "a replay has no events of granted keys"),
        ("through = «max(sequence, head)»", "try EventLog.newestSequence(in: tx.db)",
         "missed rows are read by keys that are older than the rows"),
    ),
    *of(
        "Service/Outbox/Outbox+Attempts.swift", OUTBOX,
        ("q.lane = l.lane ORDER BY «q.due_at, q.number» LIMIT 1)\n        \"\"\"", "q.due_at DESC, q.number DESC",
         "the latest message of a lane is the first"),
        ("[\"l.route = \\(route)\", \"«l.next_at <= \\(now)»\", condition", "TRUE", "an attempt that runs is begun again"),
        ("SET next_at = «\\(until)», waits_from = \\(now), lease", "\\(now)", "an attempt has no lease"),
        ("let isUnchanged: SQL = \"«version = \\(attempt.version)»\"", "TRUE",
         "a message that came during an attempt counts as sent"),
        ("let own: SQL = \"id = \\(attempt.laneId) AND «lease = \\(attempt.lease)»\"", "TRUE",
         "the outcome of an earlier attempt ends the lease of a later one"),
        is_sql=True,
    ),
    *of(
        "Service/Outbox/Outbox+Attempts.swift", OUTBOX,
        ("isKept: «channel.isAlert(attempt.type) && attempt.attempt > 1», at", "false",
         "an alert is not withdrawn if the next one about its subject was refused"),
        ("guard «dueAt <= now» else {", "true", "a message is sent before its time"),
        ("if case .removed = result, try «!delivery.isDestinationPresent(in: db)» {", "false",
         "a former address that is gone removes the messages to the new one"),
    ),
    *of(
        "Service/Outbox/Outbox.swift", OUTBOX,
        ("\"number = \\(number) AND «lease = \\(lease)»\"", "TRUE", "the outcome of an earlier attempt ends a later one"),
        is_sql=True,
    ),
    *of(
        "Service/Outbox/Outbox+Adding.swift", OUTBOX,
        ("isUntouched: SQL = \"outbox.state = 0 AND «outbox.lease = 0»\"", "TRUE",
         "a message that comes during an attempt keeps the place of the one before"),
        ("next_at = CASE WHEN «outbox_lanes.lease = 0» AND outbox_lanes.failures", "TRUE",
         "a message is begun while the one before is on its way"),
        ("state = 0, «version = outbox.version + 1», route", "version = outbox.version",
         "a message that comes during an attempt is not sent"),
        is_sql=True,
    ),
    *of(
        "Service/Outbox/Outbox+Adding.swift", OUTBOX,
        ("let sent = «found.filter(\\.isMaybeSent)».map", "found.filter { _ in false }", "what was sent is not withdrawn"),
    ),
    *of(
        "Service/Outbox/Outbox+Upkeep.swift", OUTBOX,
        ("SET next_at = «next_at - (waits_from - \\(now))», waits_from", "next_at",
         "after the clock was set back, a lane waits for the old time"),
        ("SET due_at = «\\(dueAt)»,", "due_at", "after the clock was set back, a message waits for the old time"),
        is_sql=True,
    ),
    *of(
        "Service/Features/Push/PushChannel.swift", OUTBOX,
        ("if «type != .withdrawal» { try PushFeature.forgetBadge", "false",
         "the number of the device is known although the answer was lost"),
        ("if «type == .message» {\n                try Outbox.deleteWithdrawal", "false", "a withdrawal removes the alert that has replaced its own"),
        ("if «!withdrawals.isEmpty» { try deleteMessages", "false", "a browser's withdrawal is sent again"),
    ),
    *of(
        "Service/Features/Push/Push+Tables.swift", OUTBOX,
        ("registered_at = excluded.registered_at,\n                «badge = NULL»", "badge = badge",
         "an app that is installed again is not sent the number"),
        is_sql=True,
    ),
    *of(
        "Service/Features/Push/Push.swift", OUTBOX,
        ("let dueAt = «isCarried» ?", "false", "the withdrawal of a browser is sent alone"),
        ("«min(device.badgeAt, tx.now)».adding", "device.badgeAt", "after the clock was set back, a number waits for the old time"),
    ),
    *of(
        "Service/Features/Webhooks/Webhooks.swift", OUTBOX,
        ("return «withdrawal(.messageWithdrawn, id.text, data: data, tx)»", "nil", "a webhook about messages is not withdrawn"),
    ),
    *of(
        "Service/Features/Erasure/Erasure+Tables.swift", f"{ROUNDS}/closingErasure_refusesWhatNamesThePerson",
        ("FROM \\(all) WHERE «\\(isOfRound)»\") { row in\n            let tenant", "FALSE",
         "the last pass of an erasure begins before the person is closed"),
        is_sql=True,
    ),
    *of(
        "Service/Features/Erasure/Erasure+Routes.swift", f"{ROUNDS}/openErasures_areBounded",
        ("try «countOpen(tx) >= ErasureLimits.openMax» {", "false", "a tenant has more than 100 open erasures"),
    ),
    *of(
        "Service/HTTP/Idempotency.swift", f"{ROUNDS}/keysThatCallersChoose_areStoredAsDigests",
        ("key: «RFC4648.encodeURL(SHA256.hash([call.caller.tenant.text, userId, key].joined(separator: \"\\0\").utf8))»,", "key",
         "a key that a caller chose is stored as it is"),
    ),
    *of(
        "Service/HTTP/RequestTrace.swift", f"{ROUNDS}/keysThatCallersChoose_areStoredAsDigests",
        ("var storedId: String { «isChosen ? RequestId.digest(of: id) : id» }", "id",
         "a request id that a caller chose is stored as it is"),
    ),
    *of(
        "Service/Features/Changes/Changes.swift", f"{ROUNDS}/keysThatCallersChoose_areStoredAsDigests",
        ("-> String {\n        «RFC4648.encodeURL(SHA256.hash([tx.tenant.text, id].joined(separator: \"\\0\").utf8))»", "id",
         "the id of a delivery is stored as it is"),
    ),
    *of(
        "Service/Memberships/MembershipRegistry+Rules.swift", f"{SOURCES}/replicaWithTheNewFile_isNarrow_untilItReads",
        ("text in\n            «SHA256.hash(text.utf8).prefix(7).reduce(0) { $0 << 8 | Int64($1) } >> 3»", "0",
         "facts of another rule give memberships"),
    ),
    *of(
        "Service/Features/Changes/Source/SourceServer+States.swift", f"{SOURCES}/partitionDropped_whileNotReading_leavesNoKey",
        ("let ofCatalog = «found.first { $0[0] == table.schema && $0[1] == table.name }?[2] ?? \"missing\"»", "\"present\"",
         "a table whose partitions have changed is not read again"),
    ),
    *of(
        "Service/Features/Streams/Streams+Routes.swift", SHARES,
        ("resync(id, caller.tenant, parts)\n                    «complete(answer)»", "complete(.failure(Failure.tooMany))",
         "replaced subscriptions are answered with 503 if no worker is free"),
    ),
    *of(
        "Service/Features/Webhooks/WebhookChannel.swift", EXITS,
        ("«writer.members(of: data)»",
         "preferences == nil ? writer.members([UInt8(ascii: \",\")] + data.dropFirst().dropLast()) : writer.members(of: data)",
         "the webhook of a booking has a comma too many"),
        is_exit=True,
    ),
    *of(
        "Domain/Badges/Badges.swift", EXITS,
        ("«writer.member(\"bell\", badges.bell)»", "()", "the counts lack the bell"),
        ("«writer.member(\"asOf\", badges.asOf)»", "writer.member(\"asOf\", badges.asOf.seconds)", "the time of the counts is a number"),
        is_exit=True,
    ),
]
