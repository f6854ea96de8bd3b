import ArgumentParser
import Service

struct Push: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create the keys of push messages, or replace the one that encrypts device tokens.",
        subcommands: [Keys.self, Rotate.self])

    struct Keys: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a new key that encrypts device tokens, and a new key pair for Web Push.",
            discussion: """
                Keep both secret, and keep them: without the first, no stored device can be reached, and with another key \
                pair every browser must register again. Pages find the public key in GET /v1/config.

                  bellhop push keys >>bellhop.env
                """)

        func run() {
            let keys = Operations.newPushKeys()
            Terminal.line("BELLHOP_PUSH_KEYS=\(keys.encryption)")
            Terminal.line("BELLHOP_VAPID_KEY=\(keys.vapid)")
            Terminal.line("# The public key of the pair: \(keys.vapidPublic)")
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Encrypt the tokens of all devices with the first key of BELLHOP_PUSH_KEYS.",
            discussion: """
                To replace a key: put the new one in front, restart the service (all replicas), run this command, then \
                remove the old key. On SQLite, stop the service while the command runs. It is safe to run again.

                  BELLHOP_PUSH_KEYS=<new>,<old> bellhop push rotate
                """)

        @OptionGroup var settings: SettingsFlags

        func run() async throws {
            let settings = try await settings.load(verifiesTokens: false)
            let counts = try SettingsLoading.explainingFailure { try Operations.rotatePushKeys(settings) }
            Terminal.line("\(Terminal.paint("✓", .green)) Devices encrypted with the first key: \(counts.changed).")
            guard counts.unreadable == 0 else {
                throw Terminal.failure(
                    "devices that no key decrypts: \(counts.unreadable). They receive nothing until they register again"
                )
            }
        }
    }
}
