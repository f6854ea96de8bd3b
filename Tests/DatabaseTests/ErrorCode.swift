@testable import Database

/// Returns the code of the database error that `body` throws; nil if it throws no error, or another kind.
///
/// A separate function, because the compiler cannot check `#expect(throws:)` in a closure with a connection.
func errorCode(_ body: () throws -> Void) -> DatabaseError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? DatabaseError)?.code
    }
}
