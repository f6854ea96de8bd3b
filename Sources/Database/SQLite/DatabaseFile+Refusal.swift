import Foundation

extension DatabaseFile {
    /// Returns an error that explains in one line why the system denies access to a file or folder, and how to fix it.
    ///
    /// - Parameter reason: The `errno` of the attempt.
    static func refusal(of path: String, because reason: Int32) -> DatabaseError {
        let plain = "cannot open \(path): \(String(cString: strerror(reason)))"
        switch reason {
        case EROFS:
            return DatabaseError(
                .readOnly, "\(path) is on a file system that is mounted read-only: mount a writable volume")
        case EACCES, EPERM:
            guard let attributes = Attributes(closestTo: path) else { break }
            return DatabaseError(.readOnly, attributes.denial(to: geteuid()) ?? plain)
        case ELOOP:
            return DatabaseError(
                .cannotOpen, "\(path) is a symbolic link: use the path of the file itself, or remove the link")
        default: break
        }
        return DatabaseError(.cannotOpen, plain)
    }

    /// A file or folder, with the attributes that decide access to it.
    struct Attributes {
        let path: String
        let isFolder: Bool
        let owner: uid_t
        let ownerName: String?
        let mode: Int

        /// Returns the reason for the denial. Nil if the mode already grants the calling owner everything needed; then
        /// something else denies access.
        func denial(to user: uid_t) -> String? {
            guard owner == user else {
                let name = ownerName.map { "\($0) (uid \(owner))" } ?? "uid \(owner)"
                let volume = isFolder ? ", or mount a volume that this user owns" : ""
                return
                    "\(path) belongs to \(name), but the service runs as uid \(user): run chown \(user) \(path)\(volume)"
            }
            let needed = isFolder ? 0o700 : 0o600
            guard mode & needed != needed else { return nil }
            return "\(path) has mode \(String(mode, radix: 8)): run chmod u+\(isFolder ? "rwx" : "rw") \(path)"
        }
    }
}

extension DatabaseFile.Attributes {
    /// Finds the file itself; its folder if the file does not exist or the folder hides it; and so on upwards.
    init?(closestTo path: String) {
        var place = path
        var found = try? FileManager.default.attributesOfItem(atPath: place)
        while found == nil, place != "/" {
            place = DatabaseFile.folder(of: place)
            found = try? FileManager.default.attributesOfItem(atPath: place)
        }
        guard let found, let owner = found[.ownerAccountID] as? NSNumber,
            let mode = found[.posixPermissions] as? NSNumber
        else { return nil }
        self.init(
            path: place, isFolder: found[.type] as? FileAttributeType == .typeDirectory, owner: owner.uint32Value,
            ownerName: found[.ownerAccountName] as? String, mode: mode.intValue)
    }
}
