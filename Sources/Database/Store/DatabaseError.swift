import CSQLite

/// A failure of the database, with a code that callers may switch on.
///
/// `sql` is the statement's text with its `?`. Bound values never appear in an error, so an error may be logged.
public struct DatabaseError: Error, Sendable, CustomStringConvertible {
    /// The class of an error. It is a struct, so that adding codes does not break an exhaustive `switch`.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Another connection or process holds the required lock for longer than the busy timeout.
        public static let busy = Code(rawValue: "busy")
        /// Another service owns this database. Two writers would each trust their own queue and caches.
        public static let locked = Code(rawValue: "locked")
        /// No space is left on the disk, or the database has reached its configured size.
        public static let full = Code(rawValue: "full")
        /// The file, or one of its companion files, was removed, moved or replaced while it was open.
        public static let moved = Code(rawValue: "moved")
        /// The file is not a database, or is damaged.
        public static let corrupt = Code(rawValue: "corrupt")
        public static let readOnly = Code(rawValue: "read_only")
        public static let cannotOpen = Code(rawValue: "cannot_open")
        public static let ioError = Code(rawValue: "io_error")
        public static let constraintUnique = Code(rawValue: "constraint_unique")
        public static let constraintCheck = Code(rawValue: "constraint_check")
        public static let constraintForeignKey = Code(rawValue: "constraint_foreign_key")
        public static let constraintNotNull = Code(rawValue: "constraint_not_null")
        /// Another kind of constraint, such as one raised by a trigger.
        public static let constraint = Code(rawValue: "constraint")
        /// The written row is outside the scope's write policy.
        public static let notPermitted = Code(rawValue: "not_permitted")
        /// The statement's text is wrong, or names something that does not exist.
        public static let statement = Code(rawValue: "statement")
        /// The schema does not match this build: a migration is changed, unknown or missing.
        public static let schema = Code(rawValue: "schema")
        /// A column is null, or has another type than the reader asked for.
        public static let column = Code(rawValue: "column")
        /// Nothing of this job was stored, for a reason outside the job: the group's commit failed, or the store is
        /// closed. `cause` has the details. A later retry makes sense.
        public static let unavailable = Code(rawValue: "unavailable")
        public static let interrupted = Code(rawValue: "interrupted")
        public static let tooBig = Code(rawValue: "too_big")
        public static let outOfMemory = Code(rawValue: "out_of_memory")
        /// The URL of the database is malformed.
        public static let url = Code(rawValue: "url")
        /// The service may not connect as this role, because the role could bypass the policies.
        public static let role = Code(rawValue: "role")
        /// The engine cannot store the text: PostgreSQL accepts no U+0000.
        public static let text = Code(rawValue: "text")
        /// Another transaction has locked what this one needs, or the two would deadlock. The job is retried.
        public static let contended = Code(rawValue: "contended")
        /// A COMMIT was sent, and its outcome is unknown. The job can be reported neither as done nor as failed.
        public static let undecided = Code(rawValue: "undecided")
        public static let other = Code(rawValue: "other")

        /// See ``DatabaseError/isTransient``.
        public var isTransient: Bool {
            [.busy, .full, .ioError, .unavailable, .interrupted, .outOfMemory, .contended].contains(self)
        }
    }

    public let code: Code
    public let detail: String
    public let sql: String?
    /// The cause of an `.unavailable`: `.full`, `.ioError`, `.busy`, `.moved`.
    public let cause: Code?

    public init(_ code: Code, _ detail: String, sql: String? = nil, cause: Code? = nil) {
        self.code = code
        self.detail = detail
        self.sql = sql
        self.cause = cause
    }

    public var description: String { "\(code.rawValue): \(reason)" }

    /// The detail, with its cause and the statement.
    public var reason: String {
        var text = detail
        if let cause { text += " (\(cause.rawValue))" }
        if let sql { text += " in: \(sql)" }
        return text
    }

    /// `.full` or `.moved`, either as the code or as the cause.
    public var storageTrouble: Code? { [code, cause].compactMap(\.self).first { $0 == .full || $0 == .moved } }

    /// Whether the same work may succeed later without intervention.
    public var isTransient: Bool { code.isTransient }
}

/// The bounded queue of writes is full. Nothing of the job was done; retry after a while.
public struct StoreBusy: Error, Sendable, Hashable {
    public let queueDepth: Int
    public let retryAfterSeconds: Int

    public init(queueDepth: Int, retryAfterSeconds: Int = 1) {
        self.queueDepth = queueDepth
        self.retryAfterSeconds = retryAfterSeconds
    }
}

extension DatabaseError.Code {
    /// Creates the code for an extended result code of SQLite.
    init(sqliteExtended result: Int32) {
        self = Self.ofSQLite[result] ?? Self.ofSQLite[result & 0xFF] ?? .other
    }

    /// The codes by extended and primary result code. The header builds the extended codes from other macros, which
    /// Swift cannot import.
    private static let ofSQLite: [Int32: DatabaseError.Code] = [
        SQLITE_CONSTRAINT | 1 << 8: .constraintCheck, SQLITE_CONSTRAINT | 3 << 8: .constraintForeignKey,
        SQLITE_CONSTRAINT | 5 << 8: .constraintNotNull,
        // PRIMARYKEY, UNIQUE, ROWID.
        SQLITE_CONSTRAINT | 6 << 8: .constraintUnique, SQLITE_CONSTRAINT | 8 << 8: .constraintUnique,
        SQLITE_CONSTRAINT | 10 << 8: .constraintUnique,
        // The index of the write-ahead log could not grow.
        SQLITE_IOERR | 19 << 8: .full,
        SQLITE_CONSTRAINT: .constraint, SQLITE_BUSY: .busy, SQLITE_LOCKED: .busy, SQLITE_FULL: .full,
        SQLITE_IOERR: .ioError, SQLITE_CORRUPT: .corrupt, SQLITE_NOTADB: .corrupt, SQLITE_READONLY: .readOnly,
        SQLITE_CANTOPEN: .cannotOpen, SQLITE_PERM: .cannotOpen, SQLITE_INTERRUPT: .interrupted,
        SQLITE_TOOBIG: .tooBig, SQLITE_NOMEM: .outOfMemory, SQLITE_ERROR: .statement, SQLITE_SCHEMA: .schema,
    ]
}
