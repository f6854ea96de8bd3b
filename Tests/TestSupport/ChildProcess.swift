import CSpawn
import Foundation

/// A process that a test starts, with nothing of the tests open but its output.
///
/// Instead of Foundation's `Process`, which lists /proc/self/fd and copies 256 bytes of each name: where so many
/// descriptors are open that the last name stands at the end of what was read, that is behind the end of its memory.
public final class ChildProcess {
    /// No process of that name could be started.
    public struct NotStarted: Error {
        let command: [String]
        let reason: Int32
    }

    public let identifier: pid_t
    /// What it writes to standard output and, unless that is dropped, to standard error.
    public let output: FileHandle
    /// How it ended; nil before that is known.
    private var status: Int32?

    /// - Parameters:
    ///   - command: a program of the path, and its arguments.
    ///   - dropsErrors: whether what it writes to standard error goes nowhere.
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
        // As a shell starts it: no signal is blocked, and those that the tests ignore do what they do.
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

    /// Nothing once its end is known: its number may be another's by then.
    public func send(_ signal: Int32) {
        if status == nil { kill(identifier, signal) }
    }

    /// Whether it has not ended.
    public var isRunning: Bool {
        if status == nil { noteEnd(WNOHANG) }
        return status == nil
    }

    /// Waits for its end; gives what it exited with, or 128 and the signal that ended it, as shells do.
    @discardableResult
    public func wait() -> Int32 {
        while status == nil { noteEnd(0) }
        return status ?? 0
    }

    private func noteEnd(_ options: Int32) {
        var raw: Int32 = 0
        let ended = waitpid(identifier, &raw, options)
        guard ended == identifier else {
            // Somebody else has asked for its end: how it ended is not known.
            if ended < 0, errno == ECHILD { status = 128 }
            return
        }
        let signal = raw & 0x7F
        status = signal == 0 ? raw >> 8 & 0xFF : 128 + signal
    }

    /// Waits for its end; gives how it ended, as ``wait()`` does, and everything it has written since.
    public func finish() -> (status: Int32, text: String) {
        let text = String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        return (wait(), text)
    }
}
