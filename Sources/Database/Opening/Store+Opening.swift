extension Store {
    /// Opens the database; an SQLite file is made if need be.
    ///
    /// - Parameter tables: all tables with their policies, from which PostgreSQL learns which keys a scope has.
    /// - Throws: `.locked` when another service owns the file (the message names its process), `.corrupt`, `.readOnly`,
    ///   `.cannotOpen`; `.role` when the service connects to PostgreSQL as somebody who could pass by its policies.
    public static func open(
        _ url: DatabaseURL, options: StoreOptions = StoreOptions(), tables: [Table] = []
    ) throws(DatabaseError) -> Store {
        let backend: any StoreBackend
        switch url.location {
        case .file, .memory: backend = try SQLiteBackend(url, options: options)
        case .server(let address):
            backend = try PostgresBackend(address, options: options, vocabulary: ScopeVocabulary(tables))
        }
        return Store(url, options: options, backend: backend)
    }
}
