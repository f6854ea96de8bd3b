extension StringProtocol {
    /// Whether this host is the loopback interface: `localhost`, `::1` (with or without brackets), or an address from
    /// `127.0.0.0` to `127.255.255.255`. A name such as `127.a.example.org` is not; it can lead to another machine.
    public var isLoopbackHost: Bool {
        if self == "localhost" || self == "::1" || self == "[::1]" { return true }
        let parts = split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127"
            && parts.allSatisfy { part in
                part.utf8.allSatisfy { (48...57).contains($0) } && UInt8(part) != nil
            }
    }
}
