import BellhopClient
import Foundation

// An app that a test kills while it writes: `outbox-writer URL TOKEN CONVERSATION DIRECTORY FROM TO` sends the
// messages FROM up to, but not including, TO in order. It exits when its outbox is empty.
let arguments = CommandLine.arguments
guard arguments.count == 7, let from = Int(arguments[5]), let end = Int(arguments[6]), from <= end else { exit(64) }
let storage = FileStorage(directory: URL(fileURLWithPath: arguments[4]))
var options = Bell.Options()
options.user = "ada"
options.storage = storage
options.limits.firstMilliseconds = 20
let bell = Bell(url: arguments[1], token: .fixed(arguments[2]), options: options)
let talk = bell.conversation(arguments[3])

var commands: [Command] = []
for number in from..<end {
    // A conversation queues at most 200 messages.
    if commands.count >= 100 { try await commands.removeFirst().answer() }
    commands.append(try talk.send("M\(number)", id: "m\(number)"))
}
for command in commands { try await command.answer() }
// Messages of an earlier process may still be queued.
while try await storage.keys(beginningWith: "").contains(where: { $0.contains("outbox/") }) {
    try await Task.sleep(for: .milliseconds(5))
}
