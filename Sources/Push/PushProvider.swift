import Values

/// A push service: its settings, the addresses of its devices, its requests, and what its answers mean.
///
/// A provider is one file in `Providers` and one line of ``PushProviders``.
public protocol PushProvider: Sendable {
    associatedtype Address: PushAddress

    /// The platform of its devices in the API. Routes of the outbox begin with it; metrics and the log name it.
    static var name: String { get }
    /// Its settings, in the order of `--help`. The first one turns the provider on.
    static var settings: [PushSetting] { get }
    /// The member of a registration that contains an address.
    static var addressMember: String { get }
    /// Whether its devices name their app and its environment.
    static var hasApps: Bool { get }
    /// Whether its devices show something for each message. Then no message has the number alone, and an alert takes
    /// withdrawals along.
    static var showsEachMessage: Bool { get }
    /// The member of `GET /v1/config` with ``publicKey``; nil if clients need no key to register.
    static var publicKeyMember: StaticString? { get }

    /// Creates the provider from its settings; nil if it is not set up.
    ///
    /// - Throws: ``PushSetting/Mistake``.
    init?(_ values: PushSettingValues) throws

    var publicKey: String? { get }
    /// The address of a device that does not exist, which a check of the settings uses; nil if the provider is a set of
    /// ``services``, of which none can be asked.
    var absentDevice: Address? { get }
    /// The hosts of its services, if there are several.
    var services: [String] { get }

    /// Reads and checks the address of a registration.
    ///
    /// - Throws: The mistakes of the whole registration. Otherwise the caller throws those of `fields`.
    func address(reading fields: inout Fields, of app: PushApp) throws(Failure) -> Address

    /// Returns the name of one of its services; nil if there is one only. Each has a route of its own, so that one that is
    /// away delays no other.
    func service(of address: Address) -> String?

    /// Sends the request for a message.
    func send(_ message: PushMessage, to address: Address, in attempt: PushAttempt)
}

extension PushProvider {
    public static var hasApps: Bool { false }
    public static var showsEachMessage: Bool { false }
    public static var publicKeyMember: StaticString? { nil }

    public var publicKey: String? { nil }
    public var services: [String] { [] }

    public func service(of _: Address) -> String? { nil }

    public var name: String { Self.name }

    /// Whether messages of a route go to this provider.
    public static func isOn(_ route: String) -> Bool { route == name || route.hasPrefix("\(name) ") }

    /// Reads a stored address; nil if it is malformed or that of another provider.
    public func target(stored: [UInt8]) -> PushTarget? {
        guard stored.first == Address.letter, let address = Address(parts: stored.dropFirst()) else { return nil }
        return PushTarget(self, address)
    }

    /// Reads and checks the address of a registration.
    public func target(reading fields: inout Fields, of app: PushApp) throws(Failure) -> PushTarget {
        PushTarget(self, try address(reading: &fields, of: app))
    }

    /// A device that does not exist; see ``absentDevice``.
    public var absentTarget: PushTarget? { absentDevice.map { PushTarget(self, $0) } }
}

/// The address of a device at its provider.
public protocol PushAddress: Sendable, Equatable {
    /// A letter that no other provider has. Stored addresses and identities begin with it.
    static var letter: UInt8 { get }
    /// Bytes of the payload that the provider takes.
    static var payloadBytesMax: Int { get }

    /// The address as bytes.
    var parts: [UInt8] { get }
    /// What leads to the device, in one of its spellings: without the parts that only say how to reach it.
    var device: [UInt8] { get }

    /// Reads the address from its bytes; nil if they are malformed.
    init?(parts: ArraySlice<UInt8>)

    /// Returns the JSON that the provider, or for Web Push the browser, reads: for Web Push, the text before encryption.
    func payload(of message: PushMessage) -> [UInt8]
}

extension PushAddress {
    public static var payloadBytesMax: Int { PushLimits.payloadBytesMax }

    /// The address as it is encrypted and stored.
    public var stored: [UInt8] { [Self.letter] + parts }

    /// The device that the address leads to, however the address is written. A device has one user, so two registrations
    /// with the same name are one device.
    public var identity: [UInt8] { [Self.letter] + device }
}

/// A device: its provider, and its address there.
public struct PushTarget: Sendable {
    public let provider: any PushProvider
    public let address: any PushAddress
    /// The route of messages to the device: the provider, and its service if it has several.
    public let route: String
    private let deliver: @Sendable (PushMessage, PushAttempt) -> Void

    init<Provider: PushProvider>(_ provider: Provider, _ address: Provider.Address) {
        (self.provider, self.address) = (provider, address)
        route = Provider.name + (provider.service(of: address).map { " \($0)" } ?? "")
        deliver = { provider.send($0, to: address, in: $1) }
    }

    func send(_ message: PushMessage, in attempt: PushAttempt) { deliver(message, attempt) }
}

/// The app on a device that receives the messages.
public struct PushApp: Sendable, Equatable {
    /// Nil for the one of the settings.
    let id: String?
    /// Whether it is a development build.
    let isSandbox: Bool

    public init(id: String?, isSandbox: Bool) { (self.id, self.isSandbox) = (id, isSandbox) }

    /// Whether a text can be a bundle id, which becomes a header: "alphanumeric characters, hyphens and periods" (Apple,
    /// CFBundleIdentifier).
    public static func isBundleID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0.isAlphanumeric || "-.".utf8.contains($0) }
    }
}
