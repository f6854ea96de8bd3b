import CSpawn
import Foundation

/// A child process of a test. The pipe for its output is the only descriptor that it inherits.
///
/// This replaces Foundation's `Process`, which lists /proc/self/fd and copies 256 bytes of each directory entry. With
/// many open descriptors, the last entry lies at the end of the buffer, and the copy reads past that end.
public final class ChildProcess {
    /// No program of that name could be started.
    public struct NotStarted: Error {
        let command: [String]
        let reason: Int32
    }

    public let identifier: pid_t
    /// The process's standard output and, unless `dropsErrors` is set, its standard error.
    public let output: FileHandle
    /// The exit status; nil until it is known.
    private var status: Int32?

    /// Starts a process.
    ///
    /// - Parameters:
    ///   - command: the name of a program in `PATH`, and its arguments.
    ///   - dropsErrors: whether standard error is discarded.
    public init(
        _ command: [String], environment: [String: String] = ProcessInfo.processInfo.environment,
        in folder: String = "/", dropsErrors: Bool = false
    ) throws {
        let pipe = Pipe()
        output = pipe.fileHandleForReading
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        let writing = pipe.fileHandleForWriting.fileDescriptor
        posix_spawn_file_actions_addchdir_np(&actions, folder)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, writing, 1)
        if dropsErrors {
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        } else {
            posix_spawn_file_actions_adddup2(&actions, writing, 2)
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        // Starts the child as a shell does: no signal is blocked, and signals that the tests ignore have their
        // default action.
        var (blocked, usual) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        sigfillset(&usual)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let result = posix_spawnp(&child, command[0], &actions, &attributes, &arguments, &variables)
        guard result == 0 else { throw NotStarted(command: command, reason: result) }
        try pipe.fileHandleForWriting.close()
        identifier = child
    }

    deinit {
        send(SIGKILL)
        wait()
    }

    /// Sends a signal. Does nothing once the process is known to have ended: the kernel may have reused its number.
    public func send(_ signal: Int32) {
        if status == nil { kill(identifier, signal) }
    }

    /// Whether the process is still running.
    public var isRunning: Bool {
        if status == nil { noteEnd(WNOHANG) }
        return status == nil
    }

    /// Waits until the process ends. Returns its exit code, or 128 plus the signal that ended it, as shells do.
    @discardableResult
    public func wait() -> Int32 {
        while status == nil { noteEnd(0) }
        return status ?? 0
    }

    private func noteEnd(_ options: Int32) {
        var raw: Int32 = 0
        let ended = waitpid(identifier, &raw, options)
        guard ended == identifier else {
            // Other code has already waited for the process, so its exit status is lost.
            if ended < 0, errno == ECHILD { status = 128 }
            return
        }
        let signal = raw & 0x7F
        status = signal == 0 ? raw >> 8 & 0xFF : 128 + signal
    }

    /// Waits until the process ends. Returns its exit status, as ``wait()`` does, and the rest of its output.
    public func finish() -> (status: Int32, text: String) {
        let text = String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        return (wait(), text)
    }
}
