import Foundation

/// What the contract says of a list (`x-stores`). `Generated/Lists.swift` has one for each.
struct ListDescription: Sendable {
    /// The name of the answer with the first page.
    let name: String
    /// The path of the first page, with the names of the store's parameters in braces.
    let path: String
    /// The name of the answer with a further page; `{next}` is its cursor.
    let more: String
    let storedMax: Int
    let keptMax: Int
    let isAscending: Bool
    var refused: ListRefusal?
    let events: [String: ListChange]
    let writes: [String: ListWrite]

    func path(with parameters: [String: String]) -> String {
        parameters.reduce(path) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value.pathSegment) }
    }
}

/// What an event does to a list.
struct ListChange: Sendable {
    enum Kind: Sendable { case upsert, add, patch, patchEach, remove, byHand }

    let kind: Kind
    /// The member with the item or with the change; nil for the whole event.
    var of: String?
    /// The member with the key or the keys.
    var by: String?
    /// The member with the name of the store.
    var `in`: String?
    /// The members that a patch takes.
    var set: [String]?
    /// Whether it is not repeated on a page that was fetched meanwhile.
    var isOnce = false
}

/// A write of the user, which shows before it is answered.
struct ListWrite: Sendable {
    let method: String
    let path: String
    /// The first part of the answer's name.
    let name: String
    var isRemoval = false
    /// The change, if each such write makes the same one.
    var set: JSON?
    /// The member of the answer with the item.
    var answer: String?
    /// The members of the answer that change the item.
    var members: [String] = []
    /// Whether the item is removed if the service does not have it.
    var removesMissing = false
}

/// The event that reports a refused write to the app.
struct ListRefusal: Sendable {
    let event: String
    /// The member with the key.
    let member: String
    var areSeveral = false
}

/// The generated data of a list.
protocol ListData {
    associatedtype Item: Codable & Sendable
    static var list: ListDescription { get }
    static func key(_ item: Item) -> String
    static func precedes(_ one: Item, _ other: Item) -> Bool
}
