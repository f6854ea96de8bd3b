import BellhopClient
import Testing

/// Expects each of the given members in an object, which may have others. `nil` means null or absent.
func expect(
    _ object: JSON, has members: [String: JSON], _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    for (name, value) in members {
        #expect(object[name] == value, comment ?? "\(name) of \(object)", sourceLocation: sourceLocation)
    }
}
