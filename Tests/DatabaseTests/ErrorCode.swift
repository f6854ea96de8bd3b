@testable import Database

/// The code of the error that a body ends with; nil for none, or another kind.
///
/// A function of its own: in a closure with a connection, `#expect(throws:)` is more than the compiler can take.
func errorCode(_ body: () throws -> Void) -> DatabaseError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? DatabaseError)?.code
    }
}
