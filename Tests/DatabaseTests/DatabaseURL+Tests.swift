import Database

extension DatabaseURL {
    static let memory = sqlite(":memory:")

    static func file(_ path: String) -> DatabaseURL { sqlite(path) }

    private static func sqlite(_ place: String) -> DatabaseURL {
        do {
            return try DatabaseURL("sqlite:" + place)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
