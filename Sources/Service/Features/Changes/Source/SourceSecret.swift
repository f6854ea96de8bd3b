import Cryptography
import Database

/// The secret that proves that `bellhop.notify` or `bellhop.publish` wrote a message: any role of a database may write
/// messages into its log.
struct SourceSecret {
    private let server: SourceServer
    private let clock: Clock
    private var known: [UInt8]?
    private var askedAt: Duration?

    init(_ server: SourceServer, _ clock: Clock) { (self.server, self.clock) = (server, clock) }

    /// Returns the message after the secret; nil if it has no secret or a wrong one.
    ///
    /// After a mismatch, the secret is read again at intervals: the setup may have run meanwhile.
    mutating func message(in content: ArraySlice<UInt8>) throws(SourceError) -> ArraySlice<UInt8>? {
        if let message = behindSecret(content) { return message }
        let now = clock.uptime()
        if let askedAt, now - askedAt < SourceLimits.secretPause { return nil }
        askedAt = now
        known = try server.secret()
        return behindSecret(content)
    }

    private func behindSecret(_ content: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let known, content.count > known.count, constantTimeEqual(content.prefix(known.count), known) else {
            return nil
        }
        return content.dropFirst(known.count)
    }
}

extension SourceServer {
    /// Returns the secret of `bellhop source setup`; nil if only an earlier version's setup has run, or if the role may
    /// not read it.
    func secret() throws(SourceError) -> [UInt8]? {
        guard try secretRights() == "t" else { return nil }
        var secret: [UInt8] = []
        do {
            // COPY only reads tables: a view would run with the reader's rights.
            try connection.copyOut("COPY bellhop.secret (value) TO STDOUT") { secret = Array($0.dropLast()) }
        } catch let error as SourceError {
            throw error
        } catch {
            return nil
        }
        // A shorter secret could be guessed, and was not created by the setup.
        return secret.count >= 32 ? secret : nil
    }

    /// Returns whether the role may read the secret, or nil without a secret.
    private func secretRights() throws(SourceError) -> String? {
        let row = try ask(
            """
            SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'bellhop' AND c.relname = 'secret' AND c.relkind = 'r'
            """
        ).first
        return row?.first ?? nil
    }

    /// Returns why events of the app's transactions are ignored; nil if they are accepted.
    func reasonToIgnoreEvents() throws(SourceError) -> String? {
        switch try secretRights() {
        case "t": nil
        case nil: "an earlier version set up the database: run bellhop source setup again"
        default: "the role may not read bellhop.secret: run bellhop source setup with --role"
        }
    }
}
