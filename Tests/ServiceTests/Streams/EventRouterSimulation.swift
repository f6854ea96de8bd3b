import Database
import Domain
import MicroHTTP
import Realtime
import Rows
import TestSupport
import Threads
import Values
import Visibility

@testable import Service

/// Streams on two shards, under a seeded schedule of events, row changes, changes of scopes, and requests. Batches have
/// any size, shards and workers lag, and clients read slowly, disconnect and resume on either shard.
///
/// Router, hub, replay, subscriptions and memberships are the real ones, and so is the log, in a real database. Time and
/// threads are simulated.
///
/// Invariant: each stream receives every event after its position that its scope, its topics and its subscriptions
/// allow, once, in the order of the log, and no other. The model walks over all events. Where a stream is read from the
/// log, an event may meet an earlier or a later scope.
final class EventRouterSimulation {
    /// The same name twice, composed and decomposed, belongs to two tenants.
    private static let owners = [
        ("default", "ada"), ("default", "ben"), ("\u{E9}", "ada"), ("e\u{301}", "ada"),
    ]
    static let topics = ["queue:1", "queue:2"]
    private static let shards = 2
    private static let staffKey = "shop:s1:staff"
    private static let clubs = ["1", "2"]
    /// Makes the users of each run unique, because they keep the rows of earlier ones.
    private static let runs = Locked(0)

    let schedule: Schedule
    let service: SteppedService
    let replica: SteppedReplica
    private let uptime: Locked<Duration>
    private let runNumber: Int
    let start: Int64
    private var model = Model()
    private var log: [LoggedEvent] = []
    /// How many events of the log the router has published, and each shard has handled.
    private var published = 0
    private var handled: [Int64]
    var inboxes: [[Item]]
    var sessions: [Session?]
    private var sessionCount = 0
    private var numbers = 0
    private(set) var found: String?

    /// What waits for a shard.
    enum Item {
        case event(Int)
        case opening(Session)
        case wishes(Session, Wishes)
        case restart(Int64)
    }

    init(_ schedule: Schedule, _ service: SteppedService) throws {
        (self.schedule, self.service) = (schedule, service)
        let uptime = Locked(Duration.zero)
        self.uptime = uptime
        runNumber = Self.runs.withLock { runs in
            runs += 1
            return runs
        }
        // The log of the runs is one, and a resuming stream looks back for some seconds.
        service.service.clock.advance(seconds: 3600)
        let begin = service.service.clock.now
        start = try service.service.app.store.read { try EventLog.newestSequence(in: $0) }
        let clock = Clock(
            now: { begin.adding(seconds: uptime.withLock { $0.components.seconds }) },
            uptime: { uptime.withLock { $0 } })
        replica = try SteppedReplica(of: service, shards: Self.shards, clock: clock, head: start) { _, _, _, _ in }
        handled = Array(repeating: start, count: Self.shards)
        inboxes = Array(repeating: [], count: Self.shards)
        sessions = Array(repeating: nil, count: Self.owners.count)
    }

    /// - Returns: the violated invariant, or nil.
    static func run(_ schedule: Schedule, _ service: SteppedService) -> String? {
        do {
            let simulation = try EventRouterSimulation(schedule, service)
            try simulation.play()
            return simulation.found
        } catch {
            return "\(error)"
        }
    }

    private func play() throws {
        for client in 0..<2 { open(client, on: client) }
        goOn()
        for _ in 0..<schedule.count(30...100) where found == nil {
            schedule.step()
            try act()
        }
        schedule.step()
        finish()
    }

    /// Lets everything arrive, and compares it with the model.
    func finish() {
        if found == nil { settle() }
        for client in sessions.indices { check(client, isComplete: true) }
    }

    func number(_ bound: Int) -> Int { schedule.number(bound) }
    private func one<Element>(of all: [Element]) -> Element { all[number(all.count)] }

    private func owner(_ client: Int) -> Owner {
        Owner(tenant: ID(Self.owners[client].0), userId: ID("\(Self.owners[client].1)\(runNumber)"))
    }

    func name(_ client: Int) -> String { "\(Self.owners[client].1) of client \(client)" }

    private var committedHead: Int64 { start + Int64(log.count) }
    private var publishedHead: Int64 { start + Int64(published) }

    // MARK: Steps

    private func act() throws {
        let (client, shard) = (number(Self.owners.count), number(Self.shards))
        switch number(44) {
        case 0...6: try commit(client)
        case 7...10: publish(1 + number(6))
        case 11...16: turn(shard)
        case 17...20: work()
        case 21, 22: read(client, 1 + number(4))
        case 23...26: open(client, on: shard)
        case 27, 28: disconnect(client)
        case 29, 30: replaceTopics(client)
        case 31: replaceTables(client)
        case 32...34: replaceTablesWithReplay(client)
        case 35: renew(client)
        case 36...38: try changeMembership(client)
        case 39: try changeFollowing(client)
        case 40: pass(.milliseconds(100 * (1 + number(20))))
        case 41: if number(2) == 0 { try revoke(client) } else { restart() }
        default: goOn()
        }
    }

    /// Lets everything arrive that can.
    func goOn() {
        publish(.max)
        for shard in inboxes.indices { turn(shard) }
        while replica.work() { for shard in inboxes.indices { turn(shard) } }
        for session in sessions { session?.client.read() }
        pass(.milliseconds(300))
    }

    private func keys(of client: Int) -> [String] {
        ["user:\(owner(client).userId)", "everyone", Self.staffKey, followedKey]
            + Self.clubs.map { "club:\($0)" }
    }

    private var author: ID<User> { ID("zoe\(runNumber)") }
    private var followedKey: String { PostsFeature.followed.grantedKey.key { [author] _ in author.text } ?? "" }

    // MARK: The log

    /// Commits a transaction for a tenant. Its events follow the present ones.
    private func write(
        for tenant: ID<Tenant>, _ body: @escaping @Sendable (Transaction) throws -> Void
    ) throws {
        let reader = service.service.app.runner.reader
        let events = try reader.store.writeAndWait { db -> [LoggedEvent] in
            let caller = Caller.system(tenant: tenant)
            try db.enter(caller.scope)
            let tx = Transaction(db: db, caller: caller, reader: reader)
            try body(tx)
            guard let pending = try tx.finish() else { return [] }
            return try EventLog.append([pending], by: "simulation", in: db)
        }
        precondition(events.first?.sequence ?? committedHead + 1 == committedHead + 1, "another process writes events")
        log += events
    }

    /// Commits events and row changes for the tenant of a client.
    private func commit(_ client: Int) throws {
        var entries: [Entry] = []
        for place in 0..<1 + number(3) {
            numbers += 1
            let audience = Set((0..<1 + number(2)).map { _ in one(of: keys(of: client)) }).sorted()
            let change = number(3) == 0 ? rowChange(numbers, readers: audience) : nil
            let topic = change == nil && number(3) == 0 ? one(of: Self.topics) : nil
            entries.append(
                Entry(
                    sequence: committedHead + Int64(place) + 1, tenant: owner(client).tenant, number: numbers,
                    audience: audience,
                    topic: topic, change: change))
            schedule.tell(
                "\(change == nil ? "event" : "row") \(numbers) of \(owner(client).tenant) for \(audience), topic \(topic ?? "-")"
            )
        }
        try commit(entries, text: String(repeating: "x", count: number(2) == 0 ? 5000 : 0))
    }

    /// Commits an event for some keys.
    func commitEvent(of client: Int, audience: [String]) throws {
        numbers += 1
        let entry = Entry(
            sequence: committedHead + 1, tenant: owner(client).tenant, number: numbers, audience: audience, topic: nil,
            change: nil)
        try commit([entry], text: "")
    }

    /// Commits an inserted row for some keys.
    func commitRow(of client: Int, readers: [String]) throws {
        numbers += 1
        let entry = Entry(
            sequence: committedHead + 1, tenant: owner(client).tenant, number: numbers, audience: [], topic: nil,
            change: RowChange(
                ofOwn: ("public", "orders"), .insert, recordId: "\(numbers)", old: nil,
                new: ["id": .integer(Int64(numbers))], readers: readers))
        try commit([entry], text: "")
    }

    private func commit(_ entries: [Entry], text: String) throws {
        guard let tenant = entries.first?.tenant else { return }
        try write(for: tenant) { [entries] tx in
            for entry in entries {
                if let change = entry.change {
                    tx.publish(change)
                } else {
                    tx.publish(
                        "sim:event", audience: entry.audience, topic: entry.topic,
                        data: JSONWriter.object { writer in
                            writer.member("number", entry.number)
                            writer.member("text", text)
                        })
                }
            }
        }
        model.entries += entries
    }

    /// Returns a change that moves a row between two kinds.
    private func rowChange(_ number: Int, readers: [String]) -> RowChange {
        func row() -> RowChange.Row {
            ["id": .integer(Int64(number)), "kind": .integer(Int64(self.number(2)))]
        }
        let operation = one(of: RowOperation.allCases)
        let old = operation == .insert ? nil : row()
        let new = operation == .delete ? nil : row()
        return RowChange(
            ofOwn: ("public", "orders"), operation, recordId: "\(number)", old: old, new: new, readers: readers)
    }

    func changeMembership(_ client: Int) throws {
        let (owner, club, isMember) = (owner(client), one(of: Self.clubs), number(2) == 0)
        var update = MembershipUpdate()
        update.holders = [.init(tenant: owner.tenant, key: "user:\(owner.userId)")]
        update.facts = [
            MembershipFact(
                tenant: owner.tenant, membership: "member", row: "\(owner.userId)/\(club)", subject: owner.userId.text,
                object: club, counts: isMember)
        ]
        let version = committedHead + 1
        let rules = MembershipRegistry.rules(of: service.start.settings.tables)
        try write(for: owner.tenant) { [update] tx in
            _ = try MembershipRegistry.store(update, by: rules, after: version - 1, tx)
        }
        model.steps.append(
            KeyStep(sequence: version, owner: owner, key: "club:\(club)", isHeld: isMember, isGrant: false))
        schedule.tell("\(name(client)) \(isMember ? "joins" : "leaves") club \(club)")
    }

    private func changeFollowing(_ client: Int) throws {
        let (owner, follows, author) = (owner(client), number(2) == 0, author)
        let before = log.count
        try write(for: owner.tenant) { tx in
            let following = Following(followerId: owner.userId, authorId: author, followedAt: tx.now)
            let isNew =
                follows
                ? try PostsFeature.insert(following, tx)
                : try PostsFeature.unfollow(author, by: owner.userId, tx)
            if isNew { try PostsFeature.note(owner.userId, follows: author, follows, tx) }
        }
        guard let event = log[before...].first(where: { $0.event.name == "\(KeyGrants.event)" }) else { return }
        model.steps.append(
            KeyStep(sequence: event.sequence, owner: owner, key: followedKey, isHeld: follows, isGrant: true))
        schedule.tell("\(name(client)) \(follows ? "follows" : "leaves") an author")
    }

    /// Revokes the token of a stream.
    private func revoke(_ client: Int) throws {
        guard let session = sessions[client] else { return }
        let revocation = Revocation(tenant: session.owner.tenant, kind: .token, subject: session.tokenId)
        try write(for: session.owner.tenant) { $0.publish(Revocation.event, audience: [], data: revocation.json) }
        schedule.tell("the token of \(name(client)) is revoked")
    }

    // MARK: Router and shards

    func publish(_ count: Int) {
        let events = Array(log[published...].prefix(count))
        guard !events.isEmpty else { return }
        for shard in inboxes.indices { inboxes[shard] += events.indices.map { .event(published + $0) } }
        published += events.count
        replica.router.publish(events)
        schedule.tell("the router publishes \(events.count) events")
    }

    /// Lets the replica miss the events that it has not published. It would read missed changes of scopes and
    /// revocations from the database, so there must be none.
    private func restart() {
        guard published < log.count, log[published...].allSatisfy({ !$0.event.isInternal }) else { return }
        published = log.count
        for shard in inboxes.indices { inboxes[shard].append(.restart(publishedHead)) }
        replica.router.restartStreams(after: publishedHead)
        schedule.tell("the replica misses events")
    }

    func work() {
        if replica.work() { schedule.tell("a worker does a job") }
    }

    private func pass(_ duration: Duration) {
        uptime.withLock { $0 += duration }
        schedule.tell("\(duration) pass")
    }

    func turn(_ shard: Int) {
        let wasLive = sessions.map { $0?.isLive ?? false }
        for item in inboxes[shard] { take(item, on: shard) }
        inboxes[shard] = []
        replica.turn(shard)
        schedule.tell("shard \(shard) goes on")
        for (client, session) in sessions.enumerated() {
            guard let session, session.shard == shard, session.joinedAt != nil else { continue }
            observe(session, wasLive: wasLive[client])
        }
    }

    private func take(_ item: Item, on shard: Int) {
        switch item {
        case .event(let index):
            let sequence = log[index].sequence
            handled[shard] = sequence
            guard let entry = model.entries.firstIndex(where: { $0.sequence == sequence }) else { return }
            for case let session? in sessions where session.shard == shard && session.joinedAt != nil {
                if !session.isOver { session.pending.append((entry, session.wishes.count - 1)) }
            }
        case .opening(let session):
            session.joinedAt = handled[shard]
            guard let cursor = session.cursor else { return }
            for (entry, known) in model.entries.enumerated()
            where known.sequence > cursor && known.sequence <= handled[shard] {
                session.pending.append((entry, 0))
            }
        case .wishes(let session, let wishes): session.wishes.append(wishes)
        case .restart(let head): handled[shard] = head
        }
    }

    /// Determines what the events that have met a stream had to show, once its replay has ended.
    private func observe(_ session: Session, wasLive: Bool) {
        guard !session.isOver else { return }
        let hub = replica.hubs[session.shard]
        let slot = hub.sessions.firstIndex { $0?.caller.tokenId == session.tokenId && $0?.isEnding == false }
        let phase = slot.map { hub.subscriptions[$0].phase }
        if phase == .live || phase == .replaying, session.begunAt == nil { session.begunAt = committedHead }
        session.isLive = phase == .live
        session.isOver = slot == nil
        let wasAsked = session.asked != nil
        if let asked = session.asked, session.isOver || asked.isAnswered.withLock({ $0 }) { end(asked, of: session) }
        guard session.isOver || session.isLive && session.asked == nil else { return }
        settle(session, isExact: wasLive && session.isLive && !wasAsked)
    }

    /// Adds the rows that the answer of a request has brought.
    private func end(_ asked: RowsRequest, of session: Session) {
        session.asked = nil
        session.wishes.append(asked.wishes)
        var asked = asked
        asked.through = committedHead
        session.pending.removeAll { asked.contains(model.entries[$0.entry]) }
        // A stream that ends may have received them or not.
        let wishes = session.wishes.count - (session.isOver ? 2 : 1)
        session.pending += model.entries.indices.filter { asked.contains(model.entries[$0]) }.map { ($0, wishes) }
        session.answered = asked
    }

    /// - Parameter isExact: Whether each event met the stream when its shard handled it, and no event was replayed.
    private func settle(_ session: Session, isExact: Bool) {
        guard let joinedAt = session.joinedAt else { return }
        let begunAt = session.begunAt ?? committedHead
        for (index, wishes) in session.pending {
            let entry = model.entries[index]
            let window = Window(
                wishes: isExact ? session.wishes[wishes...wishes] : session.wishes[wishes...],
                start: max(entry.sequence, joinedAt), membershipsEnd: isExact ? joinedAt : handled[session.shard],
                grantsEnd: isExact ? begunAt : committedHead)
            session.expectations[index, default: Expectation()]
                .add(model.expectation(of: entry, for: session.owner, in: window))
        }
        session.pending = []
    }

    // MARK: Clients

    func caller(_ client: Int, tokenId: String, _ keys: Set<String>) -> Caller {
        let owner = owner(client)
        return Caller(
            tenant: owner.tenant, userId: owner.userId, role: "", isService: false,
            scope: Scope(tenant: owner.tenant, keys: keys), tokenId: tokenId)
    }

    /// Returns the keys of a token: always the user's own, and sometimes further ones.
    func tokenKeys(_ client: Int) -> Set<String> {
        Set(["user:\(owner(client).userId)", "everyone"] + (number(3) == 0 ? [Self.staffKey] : []))
    }

    func open(_ client: Int, on shard: Int) {
        if let session = sessions[client], !session.isOver { return }
        let last = check(client, isComplete: false)
        let isResumed = number(4) > 0
        let cursor = isResumed ? last : nil
        sessionCount += 1
        let (tokenId, keys) = ("t\(runNumber)-\(sessionCount)", tokenKeys(client))
        let topics = Self.topics.filter { _ in number(3) == 0 }
        let socket = replica.connect(
            caller(client, tokenId: tokenId, keys), topics: topics,
            lastEventID: cursor.map { service.start.log.ids.cursor($0).text }, shard: shard,
            sendBytes: number(3) == 0 ? 4096 : nil)
        let session = Session(
            owner(client), shard: shard, tokenId: tokenId, client: socket, cursor: cursor,
            Wishes(tokenKeys: keys, topics: topics))
        sessions[client] = session
        inboxes[shard].append(.opening(session))
        let place = cursor.map { "after \($0 - start)" } ?? "anew"
        schedule.tell("\(name(client)) opens a stream on shard \(shard) \(place), with \(keys.sorted()) and \(topics)")
    }

    private func disconnect(_ client: Int) {
        guard let session = sessions[client], !session.isOver, session.joinedAt != nil else { return }
        session.client.close()
        session.isOver = true
        if let asked = session.asked { end(asked, of: session) }
        settle(session, isExact: false)
        schedule.tell("\(name(client)) disconnects")
    }

    private func read(_ client: Int, _ kilobytes: Int) {
        sessions[client]?.client.read(bytesMax: kilobytes * 1024)
        schedule.tell("\(name(client)) reads \(kilobytes) KiB")
    }

    // MARK: Invariants

    /// Lets everything arrive.
    private func settle() {
        schedule.tell("everything goes on")
        var (received, quietRounds) = (0, 0)
        for _ in 0..<200 where found == nil {
            goOn()
            let isSettled = sessions.allSatisfy { $0.map { $0.isOver || $0.isLive } ?? true }
            // The socket of a slow client takes one event at a time.
            let count = sessions.reduce(0) { $0 + ($1?.client.received.count ?? 0) }
            quietRounds = isSettled && count == received ? quietRounds + 1 : 0
            received = count
            if quietRounds > 3 { return }
        }
        found = found ?? "a stream does not go on"
    }

    /// Compares what a client has received with the model.
    ///
    /// - Parameter isComplete: Whether everything must have arrived; false if the stream may end in its middle.
    /// - Returns: The position of the client; nil without a position.
    @discardableResult
    private func check(_ client: Int, isComplete: Bool) -> Int64? {
        guard let session = sessions[client], found == nil else { return nil }
        var (base, last) = (session.cursor ?? -1, session.cursor)
        var seen: Set<String> = []
        var isClosing = false
        for event in Self.received(by: session.client, service.start.log.ids) {
            if isClosing { fail(client, "gets \(event.name) after the end") }
            isClosing = event.name == "stream:closing"
            if let id = event.id, id < last ?? -1 { fail(client, "gets \(event.name) at an earlier position") }
            last = event.id ?? last
            if event.name == "stream:ready" || event.name == "stream:resync" { base = event.id ?? base }
            guard let text = event.text else { continue }
            guard let index = model.entries.firstIndex(where: { $0.number == event.number }) else {
                fail(client, "gets the unknown event \(text)")
                continue
            }
            let isMissed = session.answered?.contains(model.entries[index]) == true
            if event.id != model.entries[index].sequence, !(isMissed && event.id == nil) {
                fail(client, "gets \(text) with a wrong id")
            }
            if model.entries[index].sequence <= base, event.id != nil {
                fail(client, "gets \(text), which is before its position")
            }
            if !seen.insert(text).inserted { fail(client, "gets \(text) twice") }
            if session.expectations[index]?.may.contains(text) != true { fail(client, "must not get \(text)") }
        }
        let isWhole = isComplete && !session.isOver
        for (index, expectation) in session.expectations.sorted(by: { $0.key < $1.key }) {
            let sequence = model.entries[index].sequence
            // Missed rows have no ids, so a client that has lost its stream asks for them again.
            let isMissed = session.answered?.contains(model.entries[index]) == true
            guard sequence > base, isWhole || !isMissed && sequence <= last ?? -1 else { continue }
            for text in expectation.must ?? [] where !seen.contains(text) { fail(client, "does not get \(text)") }
        }
        return last
    }

    private func fail(_ client: Int, _ failure: String) { found = found ?? "\(name(client)) \(failure)" }
}
