import Database
import Threads

/// The ended attempts of an outbox whose outcomes are not stored yet. Attempts end on other threads than the one that
/// stores their outcomes.
final class EndedAttempts<Attempt: Sendable>: Sendable {
    private let list = Locked([Attempt]())

    func add(_ attempt: Attempt) { list.withLock { $0.append(attempt) } }

    /// Passes all ended attempts to an action that stores their outcomes in one transaction. If the database refuses
    /// that, each is tried alone, so that an outcome that cannot be stored holds up no other. An outcome that is not
    /// stored stays for the next call.
    ///
    /// - Parameter refused: Called with the error of an outcome that was refused alone.
    /// - Returns: What the action returns for the stored outcomes.
    /// - Throws: If the database cannot store anything at the moment.
    func store<Result>(
        _ action: ([Attempt]) throws -> [Result], refused: (any Error) -> Void
    ) throws -> [Result] {
        let ended = list.withLock { list in
            defer { list = [] }
            return list
        }
        guard !ended.isEmpty else { return [] }
        var (stored, rest) = ([Result](), ended)
        // Also if the action throws below.
        defer { list.withLock { $0 = rest + $0 } }
        do {
            stored = try action(ended)
            rest = []
        } catch  where (error as? DatabaseError)?.isTransient == false {
            rest = []
            for (place, attempt) in ended.enumerated() {
                do {
                    stored += try action([attempt])
                } catch  where (error as? DatabaseError)?.isTransient == false {
                    rest.append(attempt)
                    refused(error)
                } catch {
                    rest += ended[place...]
                    break
                }
            }
        }
        return stored
    }
}
