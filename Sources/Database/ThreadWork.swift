import Foundation

/// Work that is handed to a thread together with what belongs to that thread alone, and let go at its end.
///
/// `@unchecked Sendable`: made before the thread starts, which is then the only one to call `run`, once.
final class ThreadWork: @unchecked Sendable {
    private var body: (() -> Void)?

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func run() {
        let work = body
        body = nil
        work?()
    }

    @discardableResult
    static func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> ObjectIdentifier {
        let thread = Thread(block: body)
        thread.name = name
        let identity = ObjectIdentifier(thread)
        thread.start()
        return identity
    }
}
