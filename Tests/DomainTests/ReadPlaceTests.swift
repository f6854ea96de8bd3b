import TestSupport
import Testing
import Values

@testable import Domain

/// R-CNT-COUNTS-3: unread counts without reading the messages.
@Suite(.timed) struct ReadPlaceTests {
    @Test func joiningMember_hasNothingUnread_andCannotMarkUnread() throws {
        var place = ReadPlace(joining: 7)
        #expect(place.unread(of: 7) == 0)
        #expect(place.unread(of: 9) == 2)
        let target = try place.target(of: ReadPositionChange(sequence: 1, allowsRewind: true), last: 9)
        #expect(target == 7)
        place.move(to: 9, last: 9) { _ in fatalError("reading up to the last message must not count") }
        #expect(place.unread(of: 9) == 0)
    }

    @Test func ownMessages_areNotUnread_andMoveNothing() {
        var place = ReadPlace(joining: 0)
        place.addOwnMessage()
        #expect(place.unread(of: 1) == 0)
        #expect(place.unread(of: 2) == 1)
        #expect(place.position == 0)
    }

    @Test func deletion_countsOnce_andOnlyAfterThePosition() {
        var place = ReadPlace(joined: 0, position: 3, excluded: 0)
        let wasUnread = (place.addDeletion(of: 3), place.addDeletion(of: 4))
        #expect(wasUnread == (false, true))
        #expect(place.unread(of: 5) == 1)
    }

    @Test func position_onlyGrows_unlessMarkedUnread() throws {
        let place = ReadPlace(joined: 0, position: 5, excluded: 0)
        #expect(try place.target(of: ReadPositionChange(sequence: 3, allowsRewind: false), last: 9) == 5)
        #expect(try place.target(of: ReadPositionChange(sequence: 3, allowsRewind: true), last: 9) == 3)
        #expect(try place.target(of: ReadPositionChange(sequence: 8, allowsRewind: false), last: 9) == 8)
        #expect(throws: Failure.self) {
            try place.target(of: ReadPositionChange(sequence: 10, allowsRewind: false), last: 9)
        }
    }

    @Test func stepBackOverTooMany_isRefused() throws {
        let far = ReadPlace(joined: 0, position: ConversationLimits.rewindMax + 1, excluded: 0)
        let last = far.position
        func target(_ sequence: Int) throws -> Int {
            try far.target(of: ReadPositionChange(sequence: sequence, allowsRewind: true), last: last)
        }
        #expect(throws: Failure.self) { try target(0) }
        #expect(try target(1) == 1)
    }

    /// A move asks once for the number of excluded messages that it passes, and asks only if it stops before the last
    /// message while excluded messages remain.
    @Test func move_countsTheMessagesItPasses() {
        var place = ReadPlace(joined: 0, position: 2, excluded: 3)
        var asked: [ClosedRange<Int>] = []
        place.move(to: 6, last: 9) { run in
            asked.append(run)
            return 2
        }
        #expect(place.excluded == 1)
        place.move(to: 4, last: 9) { run in
            asked.append(run)
            return 1
        }
        #expect(place.excluded == 2)
        place.move(to: 9, last: 9) { _ in fatalError("reading up to the last message must not count") }
        #expect(asked == [3...6, 5...6])
        place.move(to: 9, last: 12) { _ in fatalError("an unchanged position must not count") }
        var clean = ReadPlace(joined: 0, position: 2, excluded: 0)
        clean.move(to: 6, last: 9) { _ in fatalError("a place without excluded messages must not count") }
        #expect(clean.unread(of: 9) == 3)
    }

    /// Random operations of several users on several devices, a million in CI. After each one, the unread messages of
    /// every member are counted one by one, and their sums must equal the badges.
    @Test func noCountDrifts_overManyOperations() {
        let seed = randomSeed()
        var random = SeededGenerator(seed: seed)
        var operations = 0
        var kinds = Set<Int>()
        while operations < effort(quick: 100_000, full: 400_000, long: 10_000_000) {
            var world = ConversationWorld()
            for _ in 0..<250 {
                kinds.insert(world.step(&random))
                operations += 1
                if let drift = world.drift {
                    Issue.record("seed \(seed), operation \(operations): \(drift)")
                    return
                }
            }
        }
        // All kinds of operation have occurred: send, delete, read, rewind, leave, join.
        #expect(kinds.isSuperset(of: 0..<6))
    }
}

/// Several users in several conversations: the stored numbers, and the messages that they count.
private struct ConversationWorld {
    private struct Room {
        /// The sender of each message, and whether it is deleted. The first message has number 1.
        var senders: [Int] = []
        var isDeleted: [Bool] = []
        /// The read place of each user, by user number; nil if the user is not a member.
        var places: [ReadPlace?]

        func isExcluded(_ sequence: Int, for user: Int) -> Bool {
            senders[sequence - 1] == user || isDeleted[sequence - 1]
        }

        func countUnread(of user: Int) -> Int {
            guard let place = places[user] else { return 0 }
            var count = 0
            var sequence = place.position + 1
            while sequence <= senders.count {
                if !isExcluded(sequence, for: user) { count += 1 }
                sequence += 1
            }
            return count
        }
    }

    private static let users = 3
    private var rooms: [Room]
    private var badges = [Int](repeating: 0, count: users)
    /// Positions that devices have seen and report later.
    private var seen: [(room: Int, sequence: Int)] = []

    init() {
        rooms = [Room(places: [ReadPlace(joining: 0), ReadPlace(joining: 0), nil])]
        rooms.append(Room(places: [ReadPlace(joining: 0), nil, ReadPlace(joining: 0)]))
    }

    /// The first difference between the stored numbers and the actual messages.
    var drift: String? {
        for user in 0..<Self.users {
            var sum = 0
            for room in rooms {
                let counted = room.countUnread(of: user)
                sum += counted
                if let place = room.places[user], place.unread(of: room.senders.count) != counted {
                    return "user \(user) has \(counted) unread, and \(place) of \(room.senders.count) says otherwise"
                }
            }
            if badges[user] != sum { return "user \(user) has \(sum) unread, and the badge is \(badges[user])" }
        }
        return nil
    }

    /// Performs one random operation.
    ///
    /// - Returns: the kind of the operation.
    mutating func step(_ random: inout SeededGenerator) -> Int {
        let index = Int(random.next() % UInt64(rooms.count))
        let user = Int(random.next() % UInt64(Self.users))
        let last = rooms[index].senders.count
        guard let place = rooms[index].places[user] else {
            rooms[index].places[user] = ReadPlace(joining: last)
            return 5
        }
        switch random.next() % 16 {
        case 0..<6 where last < 24: return send(user, index)
        case 6..<9 where last > 0: return delete(1 + Int(random.next() % UInt64(last)), index)
        case 9: return leave(user, index, place)
        case 10..<12:
            // A device that was offline reports the position that it saw then.
            let late = seen.last { $0.room == index }?.sequence ?? last
            return read(ReadPositionChange(sequence: late, allowsRewind: false), user, index)
        case 12..<14:
            let change = ReadPositionChange(sequence: Int(random.next() % UInt64(last + 1)), allowsRewind: true)
            return read(change, user, index)
        default:
            let sequence = random.next() % 2 == 0 ? last : Int(random.next() % UInt64(last + 1))
            if random.next() % 4 == 0 { seen.append((index, sequence)) }
            return read(ReadPositionChange(sequence: sequence, allowsRewind: false), user, index)
        }
    }

    private mutating func send(_ user: Int, _ index: Int) -> Int {
        rooms[index].senders.append(user)
        rooms[index].isDeleted.append(false)
        rooms[index].places[user]?.addOwnMessage()
        for other in 0..<Self.users where other != user && rooms[index].places[other] != nil { badges[other] += 1 }
        return 0
    }

    private mutating func delete(_ sequence: Int, _ index: Int) -> Int {
        guard !rooms[index].isDeleted[sequence - 1] else { return 1 }
        rooms[index].isDeleted[sequence - 1] = true
        let sender = rooms[index].senders[sequence - 1]
        for other in 0..<Self.users where other != sender {
            if rooms[index].places[other]?.addDeletion(of: sequence) == true { badges[other] -= 1 }
        }
        return 1
    }

    private mutating func leave(_ user: Int, _ index: Int, _ place: ReadPlace) -> Int {
        badges[user] -= place.unread(of: rooms[index].senders.count)
        rooms[index].places[user] = nil
        return 4
    }

    private mutating func read(_ change: ReadPositionChange, _ user: Int, _ index: Int) -> Int {
        let room = rooms[index]
        let last = room.senders.count
        guard var place = room.places[user], let target = try? place.target(of: change, last: last) else { return 2 }
        let before = place
        place.move(to: target, last: last) { run in run.count { room.isExcluded($0, for: user) } }
        badges[user] += place.unread(of: last) - before.unread(of: last)
        rooms[index].places[user] = place
        return target < before.position ? 3 : 2
    }
}

extension ReadPlace {
    /// Counts the newest message as the service does if the reader sent it.
    fileprivate mutating func addOwnMessage() {
        self = ReadPlace(joined: joined, position: position, excluded: excluded + 1)
    }

    /// Counts the deletion of another member's message, as the service does. Returns true if the message was unread.
    fileprivate mutating func addDeletion(of sequence: Int) -> Bool {
        guard sequence > position else { return false }
        addOwnMessage()
        return true
    }
}
