import BellhopClient
import Foundation

// Sends a message to another user, then prints all changes of the caller's counts and notifications. BELLHOP_URL is the
// address of the service. BELLHOP_TOKEN is the user's token; `bellhop token --subject ada` prints one. Stop the service
// and start it again in the meantime: no event is lost.
let environment = ProcessInfo.processInfo.environment
let url = environment["BELLHOP_URL"] ?? "http://127.0.0.1:8080"
guard let token = environment["BELLHOP_TOKEN"], !token.isEmpty else {
    fail("BELLHOP_TOKEN is not set. Run: export BELLHOP_TOKEN=$(bellhop token --subject ada)", code: 64)
}
let bell = Bell(url: url, token: .init { token })

do {
    let conversation = try await bell.client.createConversation(.init(kind: .direct, memberIds: ["ben"])).value
    try bell.conversation(conversation.id).send("Hello from Swift")
} catch {
    fail("The message cannot be sent to \(url): \(error)", code: 1)
}

Task {
    for await connection in bell.connectionUpdates { print("stream: \(connection.status)") }
}
Task {
    for await shown in bell.notifications.updates { print("newest: \(shown.items.first?.title ?? "-")") }
}
for await badges in bell.badges.updates {
    print("unread messages: \(badges?.messages ?? 0), bell: \(badges?.bell ?? 0)")
}

/// Ends the program with a message. An error that leaves the main file would end it with a trap and a stack trace.
func fail(_ message: String, code: Int32) -> Never {
    FileHandle.standardError.write(Data("example: \(message)\n".utf8))
    exit(code)
}
