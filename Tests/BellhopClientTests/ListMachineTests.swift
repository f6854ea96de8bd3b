import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// What the vectors do not show of the list machine, because the lists of the contract are long: its bounds.
@Suite(.timed) struct ListMachineTests {
    private struct Thing: Codable {
        let id: String
        let place: Int

        init(_ place: Int) { (id, self.place) = ("i\(place)", place) }
    }

    private enum Descending: ListData {
        static let list = ListDescription(
            name: "list", path: "/v1/things", more: "more", storedMax: 2, keptMax: 2, isAscending: false, events: [:],
            writes: [:])

        static func key(_ item: Thing) -> String { item.id }
        static func precedes(_ one: Thing, _ other: Thing) -> Bool { one.place > other.place }
    }

    private enum Ascending: ListData {
        static let list = ListDescription(
            name: "list", path: "/v1/things", more: "more", storedMax: 2, keptMax: 2, isAscending: true, events: [:],
            writes: [:])

        static func key(_ item: Thing) -> String { item.id }
        static func precedes(_ one: Thing, _ other: Thing) -> Bool { one.place < other.place }
    }

    private struct Rules<Data: ListData>: ListRules {}

    private static func things(_ places: Int...) -> [Thing] { places.map(Thing.init) }

    @Test func list_keepsTheItemsThatComeFirstInItsOrder() {
        var list = ListMachine(Rules<Descending>())
        list.stored = Self.things(3, 1)
        list.merge(Self.things(2))
        #expect(list.stored.map(\.place) == [3, 2])
        var ascending = ListMachine(Rules<Ascending>())
        ascending.stored = Self.things(1, 3)
        ascending.merge(Self.things(2))
        #expect(ascending.stored.map(\.place) == [2, 3])
    }

    @Test func fullList_hasNoFurtherPage() {
        let page: JSON = ["items": [["id": "i2", "place": 2]], "next": "n2"]
        var list = ListMachine(Rules<Descending>())
        (list.stored, list.next, list.countMax) = (Self.things(3), "n1", 3)
        var isTaken = list.takeMore("more", ClassifiedAnswer(status: 200, body: page))
        #expect(isTaken)
        #expect(list.next == "n2")
        (list.stored, list.countMax) = (Self.things(3), 2)
        isTaken = list.takeMore("more", ClassifiedAnswer(status: 200, body: page))
        #expect(isTaken)
        #expect(list.stored.map(\.place) == [3, 2])
        #expect(list.next == nil)
    }
}
