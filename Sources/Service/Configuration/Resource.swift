import CResources

/// The files that are embedded in the binary: pages, scripts, the API description and the shipped tables.
enum Resource {
    /// Returns the bytes of a file.
    ///
    /// - Parameter name: The name without its folder, as `CResources` lists it.
    static func bytes(_ name: String) -> [UInt8] {
        var count = 0
        guard let bytes = cresources_find(name, &count) else {
            preconditionFailure("the resource \(name) does not exist")
        }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }
}
