extension DatabaseStore {
    /// Opens the database, and creates an SQLite file if necessary.
    ///
    /// - Parameter tables: All tables with their policies. PostgreSQL derives the kinds of keys of a scope from them.
    /// - Throws: `.locked` if another service owns the file (the message names its process), `.corrupt`, `.readOnly`,
    ///   `.cannotOpen`; `.role` if the service connects to PostgreSQL as a role that could bypass the policies.
    public static func open(
        _ url: DatabaseURL, options: StoreOptions = StoreOptions(), tables: [Table] = []
    ) throws(DatabaseError) -> DatabaseStore {
        let backend: any StoreBackend
        switch url.location {
        case .file, .memory: backend = try SQLiteBackend(url, options: options)
        case .server(let address):
            backend = try PostgresBackend(address, options: options, vocabulary: ScopeVocabulary(tables))
        }
        return DatabaseStore(url, options: options, backend: backend)
    }
}
