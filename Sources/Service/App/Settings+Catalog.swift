import Configuration

extension Settings {
    /// Reads the settings, with the tables of all features as those whose names the file of tables may not take.
    ///
    /// - Parameter verifiesTokens: false for work on the database alone, which needs no keys.
    public init(reader: ConfigReader, verifiesTokens: Bool = true) throws {
        try self.init(reader: reader, reserved: Catalog.tables, verifiesTokens: verifiesTokens)
    }
}
