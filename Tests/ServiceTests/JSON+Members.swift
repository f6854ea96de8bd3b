import BellhopClient
import Testing

/// Expects members of an object, each by itself; it may have others. What is `nil` is null or absent.
func expect(
    _ object: JSON, has members: [String: JSON], _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    for (name, value) in members {
        #expect(object[name] == value, comment ?? "\(name) of \(object)", sourceLocation: sourceLocation)
    }
}
