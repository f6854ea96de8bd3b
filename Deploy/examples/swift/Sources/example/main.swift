import BellhopClient
import Foundation

// Sends a message to another user, then prints all changes of the caller's counts and notifications. BELLHOP_URL is the
// address of the service. BELLHOP_TOKEN is the user's token; `bellhop token --subject ada` prints one. Stop the service
// and start it again in the meantime: no event is lost.
let environment = ProcessInfo.processInfo.environment
let bell = Bell(
    url: environment["BELLHOP_URL"] ?? "http://127.0.0.1:8080", token: .init { environment["BELLHOP_TOKEN"] })

let conversation = try await bell.client.createConversation(.init(kind: .direct, memberIds: ["ben"])).value
try bell.conversation(conversation.id).send("Hello from Swift")

Task {
    for await connection in bell.connectionUpdates { print("stream: \(connection.status)") }
}
Task {
    for await shown in bell.notifications.updates { print("newest: \(shown.items.first?.title ?? "-")") }
}
for await badges in bell.badges.updates {
    print("unread messages: \(badges?.messages ?? 0), bell: \(badges?.bell ?? 0)")
}
